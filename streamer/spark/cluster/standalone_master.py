"""Drivers on a standalone cluster: submitted to its master, looked at, stopped.

Spark's `spark-submit --deploy-mode cluster` refuses Python there, and its REST server is off unless
somebody turns it on. This talks to the master as Spark's own client for drivers does. The driver is
Spark's `PythonRunner`, which runs a Python file that the driver's host can read.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from streamer.core.errors import StreamerError
from streamer.spark.jvm.java import find_java

FINAL_STATES: Final = frozenset({"FINISHED", "FAILED", "KILLED", "ERROR"})
"""States that a driver does not leave."""

_DRIVER_WRAPPER_CLASS: Final = "org.apache.spark.deploy.worker.DriverWrapper"
_PYTHON_RUNNER_CLASS: Final = "org.apache.spark.deploy.PythonRunner"
# It only waits; the program's own JVM has the memory that the master gives.
_JAVA_OPTIONS: Final = (
    *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
    # Verifying Spark's own classes takes 0.3 of 1.7 CPU seconds until it calls Python.
    *("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"),
)


@dataclass(frozen=True, slots=True)
class DriverRequest:
    """A driver to be submitted.

    Attributes:
        jar: the URL of a jar that the worker copies; Spark asks for one.
        file: the Python file, as the driver's host sees it.
        python: what runs it there.
        memory: as Spark writes it, `1g` for example.
        cores: how many.
        supervise: whether the worker starts it again when it fails.
        variables: what its environment has beside the worker's. Who can talk to the master can read
            them, unless Spark authenticates.
    """

    jar: str
    file: str
    python: str
    memory: str
    cores: int
    supervise: bool
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DriverStatus:
    """The state of a driver.

    Attributes:
        state: `SUBMITTED`, `RUNNING`, `RELAUNCHING`, or one of `ENDED`.
        worker: host and port of its worker; empty before there is one.
        error: what the worker said of it; empty for nothing.
    """

    state: str
    worker: str = ""
    error: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether the state is final."""
        return self.state in FINAL_STATES

    @property
    def has_failed(self) -> bool:
        """Whether the driver has ended in another way than it should."""
        return self.has_ended and self.state != "FINISHED"


@dataclass(frozen=True, slots=True)
class SubmittedDriver:
    """A driver that a master knows.

    Attributes:
        id: what the master calls it: another one after the loss of its worker.
        file: the Python file that it runs.
        active: whether it runs, or is about to.
    """

    id: str
    file: str
    active: bool


class QuietJvm:
    """A JVM with Spark's classes that says nothing, until the block ends."""

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        """Start the client.

        Args:
            environ: this program's environment; it is told of the Java that was found.

        Raises:
            NoJavaError: there is no Java.
        """
        environ["JAVA_HOME"] = str(find_java(environ).home)
        environ.pop("SPARK_HOME", None)
        self._gateway: Any = launch_gateway(
            SparkConf(loadDefaults=False),
            {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the JVM."""
        self._gateway.shutdown()
        self._gateway.proc.stdin.close()
        self._gateway.proc.wait()


class StandaloneMaster(QuietJvm):
    """The active master of a standalone cluster."""

    def __init__(self, url: str, conf: Mapping[str, str]) -> None:
        """Start a JVM, and find the master.

        Args:
            url: `spark://HOST:PORT`, or several (`spark://A:7077,B:7077`).
            conf: the user's Spark settings.

        Raises:
            NoJavaError: there is no Java.
            StreamerError: none of them answers.
        """
        # By no argument: what stands in `conf` may be secret, and a command line is not.
        super().__init__(os.environ)
        self.url = url
        try:
            self._masters = self._connect(conf)
        except BaseException:
            self.close()
            raise

    def _connect(self, conf: Mapping[str, str]) -> list[Any]:
        jvm = self._gateway.jvm
        settings = jvm.org.apache.spark.SparkConf(False)
        for name, text in {"spark.rpc.askTimeout": "10s", **conf}.items():
            settings.set(name, text)
        rpc = jvm.org.apache.spark.rpc
        # It only asks, and listens nowhere.
        manager = _scala_object(jvm.org.apache.spark, "SecurityManager")
        security = jvm.org.apache.spark.SecurityManager(
            settings,
            *(getattr(manager, f"$lessinit$greater$default${number}")() for number in (2, 3)),
        )
        env = rpc.RpcEnv.create("streamer-submit", "127.0.0.1", 0, settings, security, True)
        masters, reason = [], ""
        for one in self.url.removeprefix("spark://").split(","):
            try:
                address = rpc.RpcAddress.fromSparkURL(f"spark://{one}")
                masters.append(env.setupEndpointRef(address, "Master"))
            except Py4JJavaError as e:
                reason = root_cause(e)
        if not masters:
            raise StreamerError(
                f"no master answers at {self.url}: {reason}; expected the URL that stands on the "
                "master's page, spark://HOST:7077 for example"
            )
        return masters

    def _request(self, message: str, *arguments: Any) -> Any:
        """Query all masters; return the answer of the one that is active.

        Without arguments a message is a Scala object.
        """
        jvm = self._gateway.jvm
        tag = _scala_object(jvm.scala.reflect, "ClassTag").AnyRef()
        deploy, name = jvm.org.apache.spark.deploy, f"DeployMessages${message}"
        words = getattr(deploy, name)(*arguments) if arguments else _scala_object(deploy, name)
        utils = _scala_object(jvm.org.apache.spark.util, "Utils")
        reason = ""
        for master in self._masters:
            try:
                answer = master.askSync(words, tag)
            except Py4JJavaError as e:
                reason = root_cause(e)
                continue
            # A master that stands by says so in the text of its answer.
            reason = answer.toString()
            if not utils.responseFromBackup(reason):
                return answer
        raise StreamerError(f"no active master at {self.url}: {reason}")

    def submit(self, driver: DriverRequest) -> str:
        """Submit a driver; return its id.

        Raises:
            StreamerError: the master refuses it.
        """
        jvm = self._gateway.jvm
        convert = jvm.org.apache.spark.api.python.PythonUtils
        seq, scala_map = convert.toSeq, convert.toScalaMap
        wrapped = ["{{WORKER_URL}}", "{{USER_JAR}}", _PYTHON_RUNNER_CLASS, driver.file, ""]
        # Nothing of this machine's environment: Spark's client would send all of it.
        environ = {"PYSPARK_PYTHON": driver.python, "PYSPARK_PIN_THREAD": "false"}
        environ.update(driver.variables)
        deploy = jvm.org.apache.spark.deploy
        command = deploy.Command(
            *(
                _DRIVER_WRAPPER_CLASS,
                seq(self._java_list(wrapped)),
                scala_map(self._java_map(environ)),
            ),
            *(
                seq(self._java_list(())),
                seq(self._java_list(())),
                seq(self._java_list(_JAVA_OPTIONS)),
            ),
        )
        memory = _scala_object(jvm.org.apache.spark.util, "Utils").memoryStringToMb(driver.memory)
        description = deploy.DriverDescription(
            *(
                driver.jar,
                memory,
                driver.cores,
                driver.supervise,
                command,
                seq(self._java_list(())),
            ),
        )
        answer = self._request("RequestSubmitDriver", description)
        if not answer.success():
            raise StreamerError(f"the master {self.url} refuses the driver: {answer.message()}")
        return str(answer.driverId().get())

    def drivers(self) -> list[SubmittedDriver]:
        """Return the drivers that the master knows and that Python runs, the newest first."""
        state = self._request("RequestMasterState")
        drivers_by_start = []
        for active, listed in ((True, state.activeDrivers()), (False, state.completedDrivers())):
            for one in listed:
                words = one.desc().command().arguments().mkString("\n").split("\n")
                if _PYTHON_RUNNER_CLASS in words[:-1]:
                    file = words[words.index(_PYTHON_RUNNER_CLASS) + 1]
                    drivers_by_start.append(
                        (int(one.startTime()), SubmittedDriver(str(one.id()), file, active))
                    )
        drivers_by_start.sort(key=lambda pair: (pair[0], pair[1].id), reverse=True)
        return [driver for _, driver in drivers_by_start]

    def status(self, driver: str) -> DriverStatus | None:
        """Return how a driver is; None when the master does not know it."""
        answer = self._request("RequestDriverStatus", driver)
        if not answer.found():
            return None
        worker, error = answer.workerHostPort(), answer.exception()
        return DriverStatus(
            answer.state().get().toString(),
            str(worker.get()) if worker.isDefined() else "",
            str(error.get().toString()) if error.isDefined() else "",
        )

    def kill(self, driver: str) -> None:
        """Have a driver stopped, as SIGTERM stops it.

        Raises:
            StreamerError: the master does not know it, or it has ended.
        """
        answer = self._request("RequestKillDriver", driver)
        if not answer.success():
            raise StreamerError(f"the master {self.url}: {answer.message()}")

    def _java_list(self, items: Any) -> Any:
        result = self._gateway.jvm.java.util.ArrayList()
        for item in items:
            result.add(item)
        return result

    def _java_map(self, items: Mapping[str, str]) -> Any:
        result = self._gateway.jvm.java.util.HashMap()
        for name, text in items.items():
            result.put(name, text)
        return result


def _scala_object(package: Any, name: str) -> Any:
    """Return a Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def root_cause(error: Py4JJavaError) -> str:
    """Return what is at the bottom of an exception."""
    root = error.java_exception
    while (cause := root.getCause()) is not None:
        root = cause
    return str(root.getMessage() or root.toString()).partition("\n")[0]
