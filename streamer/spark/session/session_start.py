"""Start Spark for one program: a quiet JVM, with the settings that the engine relies on.

Every setting below has its reason beside it; the figures are those of two cores in local mode.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

import streamer
from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.engine.report.start_progress import NO_PROGRESS, StartPhase, StartProgress
from streamer.spark.cluster.executors import watch_executors
from streamer.spark.cluster.worker_preflight import check_workers
from streamer.spark.cluster.worker_setup import (
    WorkerSetup,
    prepare_worker_setup,
    with_default_settings,
)
from streamer.spark.cluster.yarn import MASTER as YARN
from streamer.spark.cluster.yarn import SETTINGS as YARN_SETTINGS
from streamer.spark.cluster.yarn import check_configuration, check_manager
from streamer.spark.compat import adopt_gateway, note_missing_modules
from streamer.spark.fork_server.fork_client import DAEMONS, PLANNERS
from streamer.spark.fork_server.worker_daemon import WORKER_MODULES
from streamer.spark.jvm.class_preload import ClassPreload
from streamer.spark.jvm.gateway import (
    JvmExitError,
    JvmOptions,
    JvmProcess,
    can_start_directly,
    class_path,
    spark_home,
    submit_gateway,
)
from streamer.spark.jvm.java import find_java
from streamer.spark.jvm.java_reference_gc import JAVA_REFERENCES
from streamer.spark.jvm.launchers import write_launcher
from streamer.spark.jvm.lean_batches import make_batches_lean
from streamer.spark.jvm.local_files import use_unforked_files
from streamer.spark.session.class_archive import ClassArchive, draft_path, is_enabled
from streamer.spark.session.jvm_log import JvmLog
from streamer.spark.session.memory_transfers import FUNCTION_FILE_SETTINGS, transfer_in_memory

_STREAMING_PACKAGE = "org.apache.spark.sql.execution.streaming"

_ENVIRONMENT_VARIABLES: Mapping[str, str] = {
    "OPENBLAS_NUM_THREADS": "1",
    # The C library's allocator has eight arenas for each core: what RocksDB and the hundreds of a
    # JVM's threads give back to one no other can use, and its memory grew by 3 MB a minute.
    "MALLOC_ARENA_MAX": "2",
}
"""Variables of the driver, its JVM and all workers, unless set."""

SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    # Results of a micro-batch come to the driver, which prints them or appends them to files.
    "spark.driver.maxResultSize": "0",
    # One shuffle of a few rows: planning it anew costs more than it can win.
    "spark.sql.adaptive.enabled": "false",
    # Plans are a handful of operators over a few rows: generating code for them costs 30 ms more
    # of every micro-batch than it saves.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Each micro-batch's plan is described for pages: in the long form it is gone through thrice.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.streaming.stateStore.providerClass": (
        f"{_STREAMING_PACKAGE}.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # With version 1 a task that was given up can overwrite newer state.
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    # Packs carry their own checks; a sum file for every file doubles the cost of a commit.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # Version 2 names sources in place of numbering them: positions are read from version 1, and a
    # checkpoint that has begun with one cannot go on with the other.
    "spark.sql.streaming.offsetLog.formatVersion": "1",
    "spark.sql.streaming.minBatchesToRetain": "20",
    # Between two questions to the source: it waits itself (`StreamReader`), a stop is quick.
    "spark.sql.streaming.pollingDelay": "10ms",
    # A pack is up to 4 MB and the rows of a shard are few: batches are bounded by bytes.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    "spark.sql.session.timeZone": "UTC",
    # Of all workers, not only those of SQL: see `_WORKER_VARIABLES`.
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.python.unix.domain.socket.enabled": "true",
    # Half a dozen workers share one start of Python and its imports.
    "spark.python.daemon.module": "streamer.spark.fork_server.worker_daemon",
    **{f"spark.executorEnv.{name}": text for name, text in _ENVIRONMENT_VARIABLES.items()},
    # Of a hundred micro-batches by itself, and nobody asks: they are old when they go.
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    # What lasts for minutes and then goes stays in the heap until all of it is collected, which
    # Spark asks for each half hour by itself: it takes 0.3 to 0.7 s.
    "spark.cleaner.periodicGC.interval": "5min",
    "spark.log.structuredLogging.enabled": "false",
    **FUNCTION_FILE_SETTINGS,
    # The default forks a process for every look at a file in a directory (100 forks a micro-batch
    # against 37, a commit in 26 ms against 7); a rename within a file system is atomic with both.
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_STREAMING_PACKAGE}.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}

_WORKER_VARIABLES: Mapping[str, str] = {"SPARK_SIMPLIFIED_TRACEBACK": "1"}
"""What Spark puts into the environment of some Python workers, for all of them. Workers that differ
there are forked by daemons of their own, each of which imports all that is needed: 1.2 s of CPU and
88 MB, of which 48 are shared with nobody."""

_UI_RETENTION_SETTINGS: Mapping[str, str] = {
    f"spark.{kind}": "20"
    for kind in ("ui.retainedJobs", "ui.retainedStages", "sql.ui.retainedExecutions")
} | {"spark.ui.retainedTasks": "200"}
"""What Spark remembers of finished work for its pages, where nobody asked for these. By itself it
remembers a thousand micro-batches: they outlive their youth, and the heap grows until all of it is
collected (7 MB a minute at two micro-batches a second)."""

LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}

_GC_OPTION = "-XX:+UseSerialGC"
_EXECUTOR_OPTIONS_SETTING: Final = "spark.executor.extraJavaOptions"

_CRASH_EXIT_CODES: Final = tuple(
    -number for number in (signal.SIGABRT, signal.SIGBUS, signal.SIGSEGV)
)
"""How a JVM ends that meets what cannot be."""

JAVA_OPTIONS = (
    _GC_OPTION,
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xss4m",
    # 17,000 classes of Spark's own jars are loaded: verifying them takes a second of a start.
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
    # Classes come to take more than 100 MB: Java collects all of the heap four times on the way.
    "-XX:MetaspaceSize=256m",
)

_SECRET_SETTING = re.compile(r"secret|password|token|access[.]?key|account[.]key", re.I)
"""Names of settings whose values are secret: those of Spark's `spark.redaction.regex`, and more."""

SPARK_LEVELS: Mapping[str, str] = {"DEBUG": "warn", "TRACE": "info", "ALL": "info"}
"""How much of Spark's log is let through at a level of ours; nothing at the others."""


def with_task_retries(master: str) -> str:
    """Let a local master try a failed task again, as a cluster does: `local[2]` → `local[2,3]`."""
    if master == "local":
        return "local[1,3]"
    if master.startswith("local[") and "," not in master:
        return master[:-1] + ",3]"
    return master


def start_session(
    name: str,
    master: str,
    conf: Mapping[str, str],
    log: LogLine,
    level: str,
    keep_open: tuple[int, ...] = (),
    checks_workers: bool = True,
    progress: StartProgress = NO_PROGRESS,
) -> SparkSession:
    """Find a Java, start Spark and return its session; see `SessionStart`.

    Raises:
        NoJavaError: there is no Java.
        StreamerError: the JVM or Spark did not start; the text has its last words.
    """
    application = SparkApplication(name, master, conf, level, keep_open, checks_workers)
    return SessionStart(application, log, progress=progress).finish()


@dataclass(frozen=True, slots=True)
class SparkApplication:
    """An application of Spark's, as it is started.

    Attributes:
        name: its name.
        master: a Spark master URL.
        conf: the user's Spark settings, which win over ours.
        level: the program's log level; decides how much Spark logs.
        keep_open: file descriptors that the JVM inherits, so that a lock outlives a killed driver
            for as long as its JVM does.
        checks_workers: check that a cluster's workers can run streamer; if not,
            `check_cluster_workers` does later.
        has_state: whether a stream keeps state, so that RocksDB is made ready beside the rest.
    """

    name: str
    master: str
    conf: Mapping[str, str]
    level: str
    keep_open: tuple[int, ...] = ()
    checks_workers: bool = True
    has_state: bool = True


class SessionStart:
    """A session of Spark whose JVM boots while Python does other things.

    Attributes:
        archive: the archive of classes for this JVM; None where its command line is not ours.
        uses_archive: whether the JVM was started with it.
    """

    def __init__(
        self,
        application: SparkApplication,
        log: LogLine,
        on_connected: Callable[[], None] = lambda: None,
        progress: StartProgress = NO_PROGRESS,
    ) -> None:
        """Find a Java and start the JVM; `finish` waits for it.

        Args:
            application: what is started.
            log: takes what Spark has to say.
            on_connected: called when the JVM has booted, and is going to start Spark.
            progress: called when Java is started, and when Spark is.

        Raises:
            NoJavaError: there is no Java.
            StreamerError: the JVM did not start.
        """
        self._application, self._log = application, log
        self._on_connected, self._progress = on_connected, progress
        self._draft = draft_path(os.environ)
        self.archive: ClassArchive | None = None
        self.uses_archive = False
        progress.begin(StartPhase.JAVA)
        master, level = application.master, application.level
        if master == YARN:
            check_configuration(os.environ)
        self._java = find_java(os.environ)
        setup = _prepare_environment(application, self._java.home, log)
        self._settings = _build_settings(
            application.name, master, {**application.conf, **setup.settings}, level
        )
        self._jvm_log = JvmLog(log, logs_other_lines=level in SPARK_LEVELS)
        self._popen: dict[str, Any] = {
            "pass_fds": application.keep_open,
            "cwd": setup.directory,
            # Ctrl-C is for the program alone: it stops the JVM when a micro-batch is done.
            "start_new_session": True,
        }
        self._process: JvmProcess | None = None
        if can_start_directly(dict(self._settings.getAll()), os.environ):
            self._process = self._start_directly(is_enabled(os.environ))

    def _start_directly(self, with_archive: bool) -> JvmProcess:
        settings = dict(self._settings.getAll())
        options = JvmOptions.from_settings(self._java, settings)
        self.archive = ClassArchive.for_jvm(self._java, class_path(os.environ), os.environ)
        more: list[str] = []
        if self._draft is not None:
            more = self.archive.make_options(self._draft)
        elif with_archive:
            more = self.archive.use_options()
            self.uses_archive = bool(more)
        public = dict(_redact_settings(self._settings).getAll())
        try:
            with self._pipe_output() as output:
                return JvmProcess(options.command_line(more, public), {**self._popen, **output})
        except OSError as e:
            raise StreamerError(f"Spark did not start: {options.java} cannot be run: {e}") from e

    @contextmanager
    def _pipe_output(self) -> Iterator[Mapping[str, Any]]:
        """Give where a JVM writes what it says; a thread passes it on."""
        reader, writer = os.pipe()
        self._listener = threading.Thread(
            target=self._jvm_log.read, args=(reader,), daemon=True, name="jvm-log"
        )
        self._listener.start()
        try:
            yield {"stdout": writer, "stderr": subprocess.STDOUT}
        finally:
            os.close(writer)

    def finish(self) -> SparkSession:
        """Wait for the JVM, and start Spark in it.

        Raises:
            StreamerError: the JVM or Spark did not start; the text has its last words.
        """
        JAVA_REFERENCES.freeze_loaded()
        try:
            gateway = self._connect_gateway()
            adopt_gateway(gateway)
            self._on_connected()
            self._progress.begin(StartPhase.SPARK)
            preload = ClassPreload(gateway.jvm, self._application.has_state)
            if self._application.master == YARN:
                check_manager(gateway.jvm, self._application.conf)
                # A queue that is full lets it wait for as long as that lasts.
                self._log("INFO", "Waiting for YARN to start the application", {})
            use_unforked_files(gateway.jvm, self._settings, self._application.master)
            context = SparkContext(conf=self._settings, gateway=gateway)
            context.environment.update(_WORKER_VARIABLES)
            transfer_in_memory(context)
            # Spark takes PySpark for a shell, whose level it sets to WARN.
            context.setLogLevel(SPARK_LEVELS.get(self._application.level, "off").upper())
            if self._draft is not None and self._process is not None:
                # Java writes the archive when it ends, which takes longer than a run.
                atexit.register(self._process.wait)
        except StreamerError:
            self.cancel()
            raise
        except Exception as e:
            self._listener.join(1.0)
            self.cancel()
            reason = _failure_reason(e, self._jvm_log)
            raise StreamerError(
                f"Spark did not start (master {self._application.master}):\n  {reason}"
            ) from e
        note_missing_modules((*PLANNERS, *DAEMONS, *WORKER_MODULES))
        preload.join()
        session = SparkSession(context)
        make_batches_lean(session)
        if self._application.checks_workers:
            check_cluster_workers(session, self._log)
        return session

    def _connect_gateway(self) -> Any:
        if self._process is None:
            with self._pipe_output() as output:
                public = _redact_settings(self._settings).getAll()
                return submit_gateway(public, {**self._popen, **output})
        try:
            return self._process.connect()
        except JvmExitError:
            if not self.uses_archive:
                raise
        # Java takes no archive that it can see is not right; one that was damaged ends it.
        assert self.archive is not None
        text = "Java did not start with the archive of its classes, which is removed"
        self._log("WARN", text, {"archive": str(self.archive.file)})
        self.archive.discard()
        self.uses_archive = False
        self._process = self._start_directly(with_archive=False)
        return self._process.connect()

    @property
    def lacks_archive(self) -> bool:
        """Whether the JVM could have used an archive of classes, and there is none."""
        if self.archive is None or self._draft is not None or not is_enabled(os.environ):
            return False
        return not self.uses_archive and self.archive.should_be_made()

    def discard_bad_archive(self) -> None:
        """Remove the archive if the JVM has crashed with it: it may be damaged."""
        if not self.uses_archive or self._process is None or self.archive is None:
            return
        if self._process.process.poll() in _CRASH_EXIT_CODES:
            text = "Java has crashed; the archive of its classes is removed, and created again"
            self._log("WARN", text, {"archive": str(self.archive.file)})
            self.archive.discard()

    def cancel(self) -> None:
        """End a JVM that is not needed after all."""
        if self._process is not None:
            self._process.kill()


def _redact_settings(settings: SparkConf) -> SparkConf:
    """Return settings for the JVM's command line, which everybody sees; Spark gets all of them."""
    public = SparkConf(loadDefaults=False)
    for key, text in settings.getAll():
        if not _SECRET_SETTING.search(key):
            public.set(key, text)
    return public


def _failure_reason(error: Exception, jvm_log: JvmLog) -> str:
    if isinstance(error, Py4JJavaError):
        # What went wrong stands behind a line about the call, and before the Java stack.
        lines = str(error).splitlines()
        return next((line[2:] for line in lines if line.startswith(": ")), lines[0])
    return "\n  ".join(jvm_log.last_lines) or str(error)


def _prepare_environment(application: SparkApplication, java: Path, log: LogLine) -> WorkerSetup:
    """Set the variables that the JVM and workers start with; return how workers start Python."""
    # Workers import this very package, installed or not.
    root = str(Path(streamer.__file__).resolve().parent.parent)
    os.environ["JAVA_HOME"] = str(java)
    setup = (
        WorkerSetup(_write_python_launcher(root))
        if application.master.startswith("local")
        else prepare_worker_setup(application.conf, log, application.master)
    )
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = setup.python
    for variable, text in _ENVIRONMENT_VARIABLES.items():
        os.environ.setdefault(variable, text)
    # A packed PySpark has no jars: there, Spark is the worker's.
    if (spark_home() / "jars").is_dir():
        os.environ.pop("SPARK_HOME", None)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        dict.fromkeys([root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
    )
    return setup


def check_cluster_workers(session: SparkSession, log: LogLine) -> None:
    """Check that a cluster's workers can run streamer; there are none in local mode.

    Raises:
        StreamerError: they cannot, and Spark was stopped.
    """
    context = session.sparkContext
    if context.master.startswith("local"):
        return
    began = time.monotonic()
    try:
        count = check_workers(context)
    except StreamerError:
        context.stop()
        raise
    seconds = round(time.monotonic() - began, 1)
    log("INFO", "The cluster's workers can run streamer", {"executors": count, "seconds": seconds})
    watch_executors(context, log)


_PYTHON_LAUNCHER_SCRIPT = """#!/bin/sh
# Spark puts its own Python code before all else, as archives, which are compiled anew at every
# start: six starts of half a second. The same code is installed, and compiled, already.
export PYTHONPATH={path}
# Most are forked from one that has imported all (`streamer.spark.fork_server.fork_server`).
if [ -n "$STREAMER_FORKS" ]; then exec {python} -E -S {client} "$@"; fi
exec {python} "$@"
"""


def _write_python_launcher(root: str) -> str:
    """Return the interpreter for workers on this machine."""
    paths = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    path = shlex.quote(os.pathsep.join(dict.fromkeys(paths)))
    client = shlex.quote(str(Path(__file__).parents[1] / "fork_server" / "fork_client.py"))
    text = _PYTHON_LAUNCHER_SCRIPT.format(
        path=path, python=shlex.quote(sys.executable), client=client
    )
    mark = hashlib.sha256(text.encode()).hexdigest()[:8]
    return str(write_launcher(f"python-{mark}", "python3", text) / "python3")


def _build_settings(name: str, master: str, conf: Mapping[str, str], level: str) -> SparkConf:
    local = master.startswith("local")
    managers = YARN_SETTINGS if master == YARN else {}
    where = {**LOCAL_SETTINGS, **conf} if local else with_default_settings({**managers, **conf})
    merged = {**SETTINGS, **where}
    if merged["spark.ui.enabled"] == "false":
        merged = {**_UI_RETENTION_SETTINGS, **merged}
    config = Path(__file__).with_name("log4j2.properties")
    spark_level = SPARK_LEVELS.get(level, "off")
    options = [
        *JAVA_OPTIONS,
        f"-Dlog4j2.configurationFile={config.as_uri()}",
        f"-Dstreamer.spark.log={spark_level}",
        merged.get("spark.driver.extraJavaOptions", ""),
    ]
    merged["spark.driver.extraJavaOptions"] = " ".join(filter(None, options))
    if not local:
        # Each executor compiles for itself: optimising cost four of them more than their work.
        users = merged.get(_EXECUTOR_OPTIONS_SETTING, "")
        # Java does not start with two collectors.
        other = re.search(r"-XX:\+Use\w*GC\b", users)
        default_options = [
            option for option in JAVA_OPTIONS if not (other and option == _GC_OPTION)
        ]
        merged[_EXECUTOR_OPTIONS_SETTING] = " ".join(filter(None, (*default_options, users)))
    settings = SparkConf(loadDefaults=False).setAppName(name).setMaster(with_task_retries(master))
    for key, value in merged.items():
        settings.set(key, value)
    return settings
