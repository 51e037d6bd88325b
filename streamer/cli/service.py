"""The service that `streamer streams` is, from its start to its end."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from streamer.cli.checkpoint_root import ServiceCheckpoints
from streamer.cli.log_output import LogConfig, Logger
from streamer.cli.log_output.python_logging import take_python_logs
from streamer.cli.options import WatchOptions
from streamer.cli.signal_handler import SignalHandler, delay_stop
from streamer.cli.standby import Standby, open_lock, resolve_public_url, take_lock
from streamer.components.plugins import report_name_problems
from streamer.config import Config, load_config
from streamer.config.findings import Findings
from streamer.config.nodes import Mapping as MappingNode
from streamer.config.secrets import add_variable_values
from streamer.config.source_map import Source
from streamer.config.templates.template import INSTALLED_TEMPLATES
from streamer.config.yaml_reader import read_yaml
from streamer.core.errors import ConfigError, Lint, StreamerError
from streamer.engine.driver.clock_watch import ClockWatch
from streamer.engine.report.start_progress import StartProgress
from streamer.plan import make_plan
from streamer.sdk.spec import ParsedFields
from streamer.service.api.stream_server import bound_connections
from streamer.service.fleet.api_permissions import ApiPermissions
from streamer.service.fleet.checkpoints import SERVICE_DIRECTORY, Checkpoints
from streamer.service.fleet.config_reader import ConfigReader
from streamer.service.fleet.deployment_store import DeploymentStore, RevisionDraft
from streamer.service.fleet.deploys import ChangeOptions
from streamer.service.fleet.manager import Manager
from streamer.service.fleet.registry import Registry
from streamer.service.fleet.restart_schedule import RestartPolicy
from streamer.service.fleet.run_handle import RunRequest
from streamer.service.fleet.service_log import ServiceLog
from streamer.service.fleet.startup import read_config_files, separate_config_files
from streamer.service.fleet.stream_ids import file_ids
from streamer.service.monitoring.metrics_export import export_metrics
from streamer.service.run.revision_switch import OnReset
from streamer.service.run.shared_start import open_run, start_run
from streamer.service.run.stream_run import StreamRun

if TYPE_CHECKING:
    from streamer.service.api.fleet_application import FleetApi
    from streamer.service.api.server import HttpServer
    from streamer.spark.checkpoint.directory_lock import DirectoryLock

_POLL_INTERVAL_S: Final = 1.0
_MAX_SHOWN_PATHS: Final = 50
_SWITCH_INTERVAL_S: Final = 0.001
"""Seconds for which a thread may keep the interpreter from others, of which each stream has some.
The one that answers requests asks for it many times in each; Python's own 5 ms add up."""

_STREAM_SECTIONS: Final = ("input", "buffer", "pipeline", "output")


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Options of the command line; they are those of `streamer streams`."""

    paths: tuple[str, ...]
    root: str | None
    sets: tuple[str, ...]
    resources: tuple[str, ...]
    checkpoints: str | None
    level: str | None
    chilled: bool
    api: bool
    prefixed: bool
    programs: bool
    local: bool
    restarts: int
    python: bool = False
    watch: WatchOptions | None = None
    standby: bool = False
    skip_damaged: bool = False
    strict: bool = False

    def to_document(self) -> dict[str, Any]:
        """Return the options as the service's page shows them, by the names of the command line."""
        return {
            "files": list(self.paths[:_MAX_SHOWN_PATHS]),
            "--observability": self.root,
            "--restarts": self.restarts,
            "--watch": self.watch is not None,
            "--standby": self.standby,
            "--chilled": self.chilled,
            "--allow-local": self.local,
            "--allow-programs": self.programs,
            "--allow-python": self.python,
            "--prefix-stream-endpoints": self.prefixed,
        }


def run_service(options: ServiceOptions) -> int:
    """Run the service until a signal stops it.

    Returns:
        The exit code: 0 for a clean stop, 1 when Spark has ended.

    Raises:
        StreamerError: it cannot be started; the text says why.
    """
    root = read_root(options)
    log_config = LogConfig.from_parsed(root.logger, options.level)
    secrets = add_variable_values(root.secrets, root.inputs)
    log = ServiceLog(Logger(log_config, secrets=secrets).emit, secrets)
    take_python_logs(log)
    stopper = SignalHandler(lambda text: log("INFO", text, {}))
    place = ServiceCheckpoints(options.checkpoints, options.standby, os.environ)
    service = _Service(options, root, place, log, log_config.level, stopper)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    with closing(open_lock(place.directory / SERVICE_DIRECTORY)) as lock, closing(service):
        if not options.standby:
            take_lock(lock, str(place))
            return service.run(lock)
        service.check()
        with closing(Standby(root, lock, log)) as standby:
            if standby.wait(stopper.stop_requested, lambda: service.warm(lock)):
                return service.run(lock, standby.close)
            return 0


def list_template_files() -> tuple[str, ...]:
    """Return the files of templates that the command line has brought."""
    return tuple(one.file for one in INSTALLED_TEMPLATES.get({}).values())


def make_reader(options: ServiceOptions, root: Config, templates: tuple[str, ...]) -> ConfigReader:
    """Return what reads the configs of a service's streams."""
    allowance = ApiPermissions(options.programs, options.local, options.python)
    return ConfigReader(root, allowance, options.resources, options.chilled, templates)


def read_root(options: ServiceOptions) -> Config:
    """Read the service's own config.

    Raises:
        ConfigError: there is something wrong with it, or it is the config of a stream.
    """
    root = load_config(
        options.root, sets=options.sets, resources=options.resources, chilled=options.chilled
    )
    tree = read_yaml(Source(root.path, root.text), Findings())
    wrong = []
    for name in _STREAM_SECTIONS:
        if isinstance(tree, MappingNode) and name in tree.entries:
            key = tree.entries[name][0]
            message = f"field {name} is for the config of a stream, and this is the service's own"
            hint = "put the stream into a file of its own, and name that file"
            place = key.source.locate(key.start)
            wrong.append(Lint(root.path, *place, "unknown_field", message, hint))
    if wrong:
        raise ConfigError(wrong)
    return root


def describe_access(http: ParsedFields, api: bool) -> Iterator[tuple[str, str]]:
    """Return lines of the log, each with its level, about who reaches the server.

    Args:
        http: the section.
        api: whether streams can be changed by it.
    """
    if not http.is_given("address"):
        text = "Only this machine is answered; Benthos would listen on all addresses"
        yield "INFO", f"{text}: http.address says where"
    local = http["address"].startswith(("127.", "localhost:", "[::1]:"))
    has_auth = http["basic_auth"]["enabled"] or http["bearer_auth"]["enabled"]
    if api and not local and not has_auth:
        text = "Whoever reaches this address can deploy streams"
        yield "WARN", f"{text}: set http.bearer_auth, http.basic_auth, or --no-api"


class _Service:
    def __init__(
        self,
        options: ServiceOptions,
        root: Config,
        place: ServiceCheckpoints,
        log: ServiceLog,
        level: str,
        stopper: SignalHandler,
    ) -> None:
        self._options = options
        self._root = root
        self._place = place
        self._log = log
        self._level = level
        self._stopper = stopper
        self._host: Any = None
        self._executor_release: Any = None
        self._conf: Mapping[str, str] = {}
        self._started_streams: set[str] = set()
        # They are there for the thread that has read them, and streams are deployed in others.
        self._templates = list_template_files()

    def check(self) -> dict[str, tuple[Config, RevisionDraft]]:
        """Read what the service would run, before there is a need for it.

        Raises:
            StreamerError: it could not run.
        """
        read = self._make_reader(), self._file_ids(), time.time_ns
        if self._options.strict:
            return read_config_files(*read)
        return separate_config_files(*read)[0]

    def _file_ids(self) -> dict[str, str]:
        return file_ids(self._options.paths, self._root.http["root_path"])

    def warm(self, lock: DirectoryLock) -> None:
        """Do what takes seconds of a start and needs no lock: imports, and Spark.

        On a cluster it has no executors yet, which others need.
        """
        import streamer.service.api.fleet_application
        import streamer.spark.query.stream  # noqa: F401

        self._start_spark(self.check(), lock, release_executors=True)

    def run(self, lock: DirectoryLock, free: Callable[[], None] = lambda: None) -> int:
        """Run until the end.

        Args:
            lock: of all streams; the JVM inherits it.
            free: called when this service is about to listen.
        """
        from streamer.service.api.fleet_application import FleetApi
        from streamer.service.fleet.service_facts import StartOptions

        options, root, log = self._options, self._root, self._log
        checkpoints = self._place.make_checkpoints()
        manager = Manager(self._make_registry(checkpoints))
        try:
            files = manager.startup.read_files(self._file_ids(), strict=options.strict)
        except StreamerError:
            manager.close()
            raise
        begun, restored = threading.Event(), threading.Event()
        flags = options.api, options.prefixed
        api = FleetApi(
            *(manager, root, log, *flags),
            streams_available=begun,
            streams_restored=restored,
            stopping=self._stopper.stop_requested,
            service_log=log.tail,
            options=StartOptions(checkpoints=str(self._place), options=options.to_document()),
        )
        streams = manager.startup.count_streams(files)
        report_name_problems(lambda text: log("WARN", text, {}))
        log("INFO", "Starting", {"streams": streams, "checkpoints": str(self._place)})
        began = time.monotonic()
        server: HttpServer | None = None
        exports = ExitStack()
        try:
            free()
            bound_connections(root.http)
            # Before Spark: whoever asks whether it lives is not to take a start for an end.
            server = self._open_server(api, lock)
            self._start_spark(files, lock)
            checkpoints.delete_pending(log)
            exports.enter_context(export_metrics(root.metrics, manager.registry.views, log))
            begun.set()
            manager.startup.start_streams(files)
            restored.set()
            log("INFO", "Running", {"seconds": round(time.monotonic() - began, 1)})
            with self._watch_files(manager):
                code = self._wait_for_end(manager.registry.store)
                if not code:
                    delay_stop(root.shutdown_delay, self._stopper, log)
                return code
        finally:
            # While the streams stop, whoever asks is told so; no message comes to one that has.
            manager.stop()
            if server is not None:
                server.stop()
            api.close()
            manager.close()
            # When the streams have stopped, their figures are the last.
            exports.close()

    def _open_server(self, api: FleetApi, lock: DirectoryLock) -> HttpServer | None:
        """Return the HTTP server, which listens; None where the config has none."""
        from streamer.service.api.server import HttpServer

        if not self._root.http["enabled"]:
            return None
        server = HttpServer(self._root.http, api.make_application)
        lock.sign(resolve_public_url(server.url))
        self._log_address(server.url)
        return server

    def close(self) -> None:
        """End Spark."""
        if self._host is not None:
            self._host.stop()

    def _start_spark(
        self,
        files: Mapping[str, tuple[Config, RevisionDraft]],
        lock: DirectoryLock,
        release_executors: bool = False,
    ) -> None:
        from streamer.plan.required_packages import list_requirements
        from streamer.spark.cluster.standby_executors import ExecutorRelease
        from streamer.spark.jars.spark_settings import stream_spark_settings
        from streamer.spark.session.shared_spark import SharedSpark

        spark = self._root.spark
        # Of what is deployed later, workers have what is sent along with these.
        requirements = list_requirements(*(config for config, _ in files.values()))
        conf = stream_spark_settings(spark, os.environ, self._log, self._place.url, requirements)
        local = spark["master"].startswith("local")
        executor_release, self._executor_release = self._executor_release, None
        if self._host is not None:
            if conf == self._conf and self._host.is_alive():
                if executor_release is not None:
                    executor_release.request_executors()
                    self._check_session(self._host.base_session)
                return
            self._host.stop()
        self._conf = conf

        def start(host_settings: Mapping[str, str]) -> Any:
            session = self._start_session(
                {**host_settings, **self._place.spark_settings(), **conf}, lock
            )
            if not release_executors:
                self._check_session(session)
            return session

        self._host = SharedSpark(
            start, with_fork_server=local or spark["environment"] != "installed"
        )
        if release_executors and not local:
            self._executor_release = ExecutorRelease(self._host.base_session)
        self._stopper.install()

    def _start_session(self, settings: Mapping[str, str], lock: DirectoryLock) -> Any:
        from streamer.spark.session.session_start import SessionStart, SparkApplication

        # A service has no status line.
        progress = StartProgress()
        progress.log_to(self._log)
        application = SparkApplication(
            "streamer streams",
            self._root.spark["master"],
            settings,
            self._level,
            keep_open=(lock.file,),
            checks_workers=False,
        )
        session_start = SessionStart(application, self._log, progress=progress)
        session = session_start.finish()
        if session_start.lacks_archive:
            # Imported here: one start of a machine needs it.
            from streamer.cli.warm import make_in_background

            make_in_background(os.environ)
        return session

    def _check_session(self, session: Any) -> None:
        """Check that Spark reaches the checkpoints, and that a cluster's workers can run streamer.

        Raises:
            StreamerError: it does not, or they cannot.
        """
        from streamer.spark.session.session_start import check_cluster_workers

        place = self._place.connect(session)
        check_cluster_workers(session, self._log)
        if not self._root.spark["master"].startswith("local"):
            from streamer.spark.cluster.worker_preflight import check_checkpoint

            check_checkpoint(session, place)

    @contextmanager
    def _watch_files(self, manager: Manager) -> Iterator[None]:
        """Watch the files of streams, if that was asked for."""
        options = self._options
        if options.watch is None:
            yield
            return
        from streamer.service.fleet.file_streams import FileStreams
        from streamer.service.run.file_watcher import FileWatcher

        wish = ChangeOptions(
            "file",
            options.chilled,
            on_reset=options.watch.on_reset or "",
            probation=options.watch.probation,
        )
        shared = (*options.resources, *self._templates)
        files = FileStreams(manager, options.paths, lambda: shared, wish)
        folders = [path for path in options.paths if os.path.isdir(path)]
        watcher = FileWatcher(files.files, files.apply_changes, lambda: folders)
        try:
            yield
        finally:
            watcher.close()

    def _make_reader(self) -> ConfigReader:
        return make_reader(self._options, self._root, self._templates)

    def _make_registry(self, checkpoints: Checkpoints) -> Registry:
        options = self._options
        return Registry(
            self._make_reader(),
            DeploymentStore(checkpoints.service_directory / "store.db", shared=options.standby),
            checkpoints,
            partial(self._start_run, checkpoints),
            self._log,
            replace(RestartPolicy(), max_restarts=options.restarts),
            prefixed=options.prefixed,
        )

    def _start_run(self, checkpoints: Checkpoints, request: RunRequest) -> StreamRun:
        """Start a run; it has a plan of its own: workers keep by it what outlives their tasks."""
        stream_id, config, log = request.stream_id, request.config, request.log
        # A file may have changed while nothing ran, or a moment before the program was killed.
        watch = self._options.watch
        on_reset = watch.on_reset if watch is not None and not request.is_of_api else None
        skips_damaged = self._options.skip_damaged and self._is_first_run(stream_id)
        plan = make_plan(config, self._level, stream_id)
        run = StreamRun(config, plan, checkpoints.acquire(stream_id, log), log, request.view)
        run.on_rollback = request.on_rollback
        run.checkpoint.should_skip_damaged = skips_damaged
        open_run(run, self._host, OnReset(on_reset) if on_reset else None)
        start_run(run, self._host, lambda: checkpoints.mark_started(stream_id))
        return run

    def _is_first_run(self, stream_id: str) -> bool:
        """Whether a stream has not run yet in this program; from now on it has."""
        if stream_id in self._started_streams:
            return False
        self._started_streams.add(stream_id)
        return True

    def _log_address(self, url: str) -> None:
        self._log("INFO", "Listening for HTTP requests", {"url": url})
        for level, text in describe_access(self._root.http, self._options.api):
            self._log(level, text, {"url": url})

    def _wait_for_end(self, store: DeploymentStore) -> int:
        clocks = ClockWatch(self._log)
        while not self._stopper.stop_requested.wait(_POLL_INTERVAL_S):
            clocks.check()
            if not self._host.is_alive():
                text = "Spark's JVM has ended (killed, or out of memory: spark.conf."
                hint = "spark.driver.memory sets its heap); start again to go on"
                self._log("ERROR", text + hint, {})
                return 1
            if self._options.standby and store.is_superseded():
                # Its lock was lost with a network's file system; an orderly end would write.
                self._log("ERROR", "Another service has taken over; this one ends at once", {})
                self._host.kill()
                os._exit(1)
        return 0
