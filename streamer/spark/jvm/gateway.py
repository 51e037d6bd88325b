"""Start Spark's JVM and connect to it, without waiting in between.

PySpark starts a JVM through a shell script, and a second JVM that works out the command line of
the first: 0.25 s of every start. On this machine (`local[…]`) the command line is known, and Spark
needs nothing of what `spark-submit` does beside it, so the JVM is started at once. What asks for
more of `spark-submit` (a cluster's manager, jars to resolve, a Kerberos login, a `spark-env.sh`)
goes through it, as PySpark does.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from streamer.spark.jvm.java import Java

_POLL_INTERVAL_S: Final = 0.005
_EXIT_TIMEOUT_S: Final = 10.0
_ARCHIVE_TIMEOUT_S: Final = 300.0

_MAIN_CLASS: Final = "org.apache.spark.api.python.PythonGatewayServer"

_OPENED_PACKAGES: Final = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)

MODULE_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED_PACKAGES),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)
"""What Spark's launcher puts on the command line of every JVM (`JavaModuleOptions`), but for the
module `jdk.incubator.vector`: it serves Spark's machine learning, and a JVM with it cannot use all
of an archive of classes. A test compares this with what the launcher of the installed Spark says.
"""

_UNUSED_JARS: Final = ("spark-mllib_", "spark-hive")
"""Beginnings of names of Spark's jars that no stream uses. Machine learning registers functions in
every session, for which Scala's reflection reads its own signatures: 0.4 s for the first one."""

_SUBMIT_SETTINGS: Final = (
    "spark.jars.",
    "spark.submit.",
    "spark.kerberos.",
    "spark.archives",
    "spark.files",
    "spark.driver.extraLibraryPath",
    "spark.driver.extraClassPath",
    "spark.driver.userClassPathFirst",
    "spark.driver.defaultJavaOptions",
    "spark.plugins",
)
"""Beginnings of settings that `spark-submit` acts on before Spark starts."""

_SUBMIT_VARIABLES: Final = (
    "SPARK_CONF_DIR",
    "SPARK_CLASSPATH",
    "SPARK_PREPEND_CLASSES",
    "SPARK_SUBMIT_OPTS",
    "SPARK_TESTING",
    "PYSPARK_SUBMIT_ARGS",
    "PYSPARK_GATEWAY_PORT",
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
)
"""Variables that `spark-submit` turns into class path, options or settings."""


def spark_home() -> Path:
    """Return the directory of the installed PySpark, which has Spark's `bin` and `jars`."""
    return Path(pyspark.__file__).resolve().parent


def can_start_directly(settings: Mapping[str, str], environ: Mapping[str, str]) -> bool:
    """Whether Spark's JVM can be started without `spark-submit`.

    Args:
        settings: all settings of the session.
        environ: the variables of this process.

    Example:
        >>> can_start_directly({"spark.master": "yarn"}, {})
        False
    """
    if not settings.get("spark.master", "").startswith("local"):
        return False
    home = spark_home()
    # A packed PySpark has no jars; one that somebody configured has a directory `conf`.
    if not (home / "jars").is_dir() or (home / "conf").exists():
        return False
    if any(key.startswith(_SUBMIT_SETTINGS) for key in settings):
        return False
    if not all(map(os.path.isfile, [*_distribution_jars(environ), *user_jars(settings)])):
        return False
    return not any(environ.get(name) for name in _SUBMIT_VARIABLES)


def user_jars(settings: Mapping[str, str]) -> list[str]:
    """Return the jars that settings add to Spark's own (`spark.jars`)."""
    return [jar.strip() for jar in settings.get("spark.jars", "").split(",") if jar.strip()]


def class_path(environ: Mapping[str, str]) -> list[str]:
    """Return the class path of each JVM that is started directly; jars of a stream come after it.

    Args:
        environ: has `SPARK_DIST_CLASSPATH`, jars that an installation adds to Spark's own.
    """
    own = (spark_home() / "jars").glob("*.jar")
    used = sorted(str(jar) for jar in own if not jar.name.startswith(_UNUSED_JARS))
    return [*used, *_distribution_jars(environ)]


def _distribution_jars(environ: Mapping[str, str]) -> list[str]:
    jars: list[str] = []
    for entry in filter(None, environ.get("SPARK_DIST_CLASSPATH", "").split(os.pathsep)):
        path = Path(entry)
        # As Java takes it, but in an order that is the same on each file system.
        jars += sorted(map(str, path.parent.glob("*.jar"))) if path.name == "*" else [entry]
    return jars


@dataclass(frozen=True, slots=True)
class JvmOptions:
    """The part of a JVM's command line that decides how it runs.

    Attributes:
        java: the executable.
        heap: the largest heap, as Java takes it: `1g`.
        options: from `spark.driver.extraJavaOptions`, one by one.
        class_path: jars, in order.
    """

    java: Path
    heap: str
    options: tuple[str, ...]
    class_path: tuple[str, ...]

    @classmethod
    def from_settings(cls, java: Java, settings: Mapping[str, str]) -> JvmOptions:
        """Return the options that a session's settings ask for."""
        return cls(
            java.executable,
            settings["spark.driver.memory"].strip().lower(),
            tuple(shlex.split(settings.get("spark.driver.extraJavaOptions", ""))),
            (*class_path(os.environ), *user_jars(settings)),
        )

    def command_line(self, more: Sequence[str], properties: Mapping[str, str]) -> list[str]:
        """Return the command line of a JVM that waits for Python.

        Args:
            more: further options of the JVM; those that the user gives come after them, and win.
            properties: Spark settings as system properties, as `spark-submit` leaves them: parts of
                Hadoop's client look for them there. Everybody on the machine can read them.
        """
        return [
            str(self.java),
            *("-cp", os.pathsep.join(self.class_path)),
            f"-Xmx{self.heap}",
            *more,
            *self.options,
            *MODULE_OPTIONS,
            *(f"-D{key}={text}" for key, text in properties.items()),
            _MAIN_CLASS,
        ]


class JvmExitError(Exception):
    """The JVM ended before Python could connect to it."""


class JvmProcess:
    """A JVM that was started and may still be booting.

    Attributes:
        process: the JVM.
    """

    def __init__(self, command: Sequence[str], popen: Mapping[str, Any]) -> None:
        """Start the JVM, and return at once.

        Args:
            command: see `JvmOptions.command`.
            popen: further arguments of `subprocess.Popen`.

        Raises:
            OSError: it cannot be started.
        """
        # The JVM writes its port and a secret into a file there: only this user reads it.
        self._directory = tempfile.mkdtemp(prefix="streamer-jvm-")
        self._file = Path(self._directory, "gateway")
        environment = {
            # All of it is on this machine: its name, which may be unknown, need not be resolved.
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_HOSTNAME": "localhost",
            **os.environ,
            "SPARK_HOME": str(spark_home()),
            "SPARK_CONNECT_MODE": "0",
            "SPARK_SCALA_VERSION": "2.13",
            # Python's processes hash text alike, whoever starts them.
            "PYTHONHASHSEED": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._file),
        }
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, env=environment, **dict(popen)
            )
        except BaseException:
            shutil.rmtree(self._directory, ignore_errors=True)
            raise

    def connect(self) -> Any:
        """Wait until the JVM serves Python, and return py4j's gateway to it.

        Raises:
            JvmExitError: the JVM has ended instead.
        """
        try:
            while not self._file.is_file():
                if self.process.poll() is not None and not self._file.is_file():
                    raise JvmExitError
                time.sleep(_POLL_INTERVAL_S)
            with self._file.open("rb") as file:
                port, secret = read_int(file), UTF8Deserializer().loads(file)
        finally:
            shutil.rmtree(self._directory, ignore_errors=True)
        variables = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
        with _set_variables(variables):
            gateway = launch_gateway()
        gateway.proc = self.process
        return gateway

    def wait(self) -> None:
        """Let the JVM end, and wait for that: it may write an archive of its classes first."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_ARCHIVE_TIMEOUT_S)

    def kill(self) -> None:
        """End the JVM, whatever it does."""
        self.process.kill()
        assert self.process.stdin is not None
        self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_EXIT_TIMEOUT_S)
        shutil.rmtree(self._directory, ignore_errors=True)


def submit_gateway(settings: Iterable[tuple[str, str]], popen: Mapping[str, Any]) -> Any:
    """Start a JVM by `spark-submit`, wait for it, and return py4j's gateway to it.

    Args:
        settings: for its command line, which everybody on the machine can read.
        popen: further arguments of `subprocess.Popen`.
    """
    conf = SparkConf(loadDefaults=False)
    for key, text in settings:
        conf.set(key, text)
    return launch_gateway(conf, popen_kwargs=dict(popen))


@contextlib.contextmanager
def _set_variables(variables: Mapping[str, str]) -> Any:
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)
