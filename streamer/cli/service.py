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

from streamer.cli.exporting import exported
from streamer.cli.options import Watch
from streamer.cli.service_place import ServicePlace
from streamer.cli.serving import bound_connections
from streamer.cli.standby import Standby, advertised, opened, take
from streamer.cli.stopper import Stopper, delay_stop
from streamer.config import Config, load_config
from streamer.config.findings import Findings
from streamer.config.nodes import Mapping as MappingNode
from streamer.config.read import read_yaml
from streamer.config.secrets import with_variables
from streamer.config.source import Source
from streamer.config.templates.template import INSTALLED
from streamer.engine.clock_watch import ClockWatch
from streamer.engine.delivery import LogLine
from streamer.engine.start_progress import StartProgress
from streamer.errors import ConfigError, Lint, StreamerError
from streamer.logs import LogConfig, Logger
from streamer.logs.python_logging import take_python_logs
from streamer.service.replacing import OnReset
from streamer.service.streams.allowance import Allowance
from streamer.service.streams.boot import read_files
from streamer.service.streams.checkpoints import OWN, Checkpoints
from streamer.service.streams.configs import Reader
from streamer.service.streams.deploys import Wish
from streamer.service.streams.ids import file_ids
from streamer.service.streams.manager import Manager
from streamer.service.streams.registry import Registry
from streamer.service.streams.run import SparkRun
from streamer.service.streams.store import Draft, Store
from streamer.service.streams.supervisor import Restarts
from streamer.service.view import StreamView
from streamer.spec import Parsed

if TYPE_CHECKING:
    from streamer.spark.lock import DirectoryLock

_LOOK: Final = 1.0
_SWITCH: Final = 0.001
"""Seconds for which a thread may keep the interpreter from others, of which each stream has some.
The one that answers requests asks for it many times in each; Python's own 5 ms add up."""

_OF_STREAMS: Final = ("input", "buffer", "pipeline", "output")


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What the command line says; see the options of `streamer streams`."""

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
    watch: Watch | None = None
    standby: bool = False
    skip_damaged: bool = False


def run_service(options: ServiceOptions) -> int:
    """Run the service until it is told to stop.

    Returns:
        The exit code: 0 for a clean stop, 1 when Spark has ended.

    Raises:
        StreamerError: it cannot be started; the text says why.
    """
    root = read_root(options)
    log_config = LogConfig.from_parsed(root.logger, options.level)
    logger = Logger(log_config, secrets=with_variables(root.secrets))

    def log(level: str, text: str, fields: Mapping[str, Any]) -> None:
        logger.emit(level, text, fields, time.time_ns())

    take_python_logs(log)
    stopper = Stopper(lambda text: log("INFO", text, {}))
    place = ServicePlace(options.checkpoints, options.standby, os.environ)
    service = _Service(options, root, place, log, log_config.level, stopper)
    sys.setswitchinterval(_SWITCH)
    with closing(opened(place.directory / OWN)) as lock, closing(service):
        if not options.standby:
            take(lock, str(place))
            return service.run(lock)
        service.check()
        with closing(Standby(root, lock, log)) as standby:
            if standby.wait(stopper.asked, lambda: service.warm(lock)):
                return service.run(lock, standby.close)
            return 0


def template_files() -> tuple[str, ...]:
    """Return the files of templates that the command line has brought."""
    return tuple(one.file for one in INSTALLED.get({}).values())


def reader_of(options: ServiceOptions, root: Config, templates: tuple[str, ...]) -> Reader:
    """Return what reads the configs of a service's streams."""
    allowance = Allowance(options.programs, options.local)
    return Reader(root, allowance, options.resources, options.chilled, templates)


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
    for name in _OF_STREAMS:
        if isinstance(tree, MappingNode) and name in tree.entries:
            key = tree.entries[name][0]
            message = f"field {name} is for the config of a stream, and this is the service's own"
            hint = "put the stream into a file of its own, and name that file"
            place = key.source.place(key.start)
            wrong.append(Lint(root.path, *place, "unknown_field", message, hint))
    if wrong:
        raise ConfigError(wrong)
    return root


def about_access(http: Parsed, api: bool) -> Iterator[tuple[str, str]]:
    """Return lines of the log, each with its level, about who reaches the server.

    Args:
        http: the section.
        api: whether streams can be changed by it.
    """
    if not http.given("address"):
        text = "Only this machine is answered; Benthos would listen on all addresses"
        yield "INFO", f"{text}: http.address says where"
    local = http["address"].startswith(("127.", "localhost:", "[::1]:"))
    asked = http["basic_auth"]["enabled"] or http["bearer_auth"]["enabled"]
    if api and not local and not asked:
        text = "Whoever reaches this address can deploy streams"
        yield "WARN", f"{text}: set http.bearer_auth, http.basic_auth, or --no-api"


class _Service:
    def __init__(
        self,
        options: ServiceOptions,
        root: Config,
        place: ServicePlace,
        log: LogLine,
        level: str,
        stopper: Stopper,
    ) -> None:
        self._options = options
        self._root = root
        self._place = place
        self._log = log
        self._level = level
        self._stopper = stopper
        self._host: Any = None
        self._rest: Any = None
        self._conf: Mapping[str, str] = {}
        self._begun: set[str] = set()
        # They are there for the thread that has read them, and streams are deployed in others.
        self._templates = template_files()

    def check(self) -> dict[str, tuple[Config, Draft]]:
        """Read what the service would run, before there is a need for it.

        Raises:
            StreamerError: it could not run.
        """
        return read_files(
            self._reader(),
            file_ids(self._options.paths, self._root.http["root_path"]),
            time.time_ns,
        )

    def warm(self, lock: DirectoryLock) -> None:
        """Do what takes seconds of a start and needs no lock: imports, and Spark.

        On a cluster it has no executors yet, which others need.
        """
        import streamer.service.http.application
        import streamer.spark.stream  # noqa: F401

        self._start_spark(self.check(), lock, rests=True)

    def run(self, lock: DirectoryLock, free: Callable[[], None] = lambda: None) -> int:
        """Run until the end.

        Args:
            lock: of all streams; the JVM inherits it.
            free: called when this service is about to listen.
        """
        from streamer.service.http.application import Api
        from streamer.service.server import HttpServer

        options, root, log = self._options, self._root, self._log
        checkpoints = self._place.checkpoints()
        manager = Manager(self._registry(checkpoints))
        try:
            files = manager.boot.read(file_ids(options.paths, root.http["root_path"]))
        except StreamerError:
            manager.close()
            raise
        begun, restored = threading.Event(), threading.Event()
        flags = options.api, options.prefixed
        api = Api(
            *(manager, root, log, *flags),
            opened=begun,
            restored=restored,
            stopping=self._stopper.asked,
        )
        streams = manager.boot.count(files)
        log("INFO", "Starting", {"streams": streams, "checkpoints": str(self._place)})
        began = time.monotonic()
        server: HttpServer | None = None
        exports = ExitStack()
        try:
            free()
            bound_connections(root.http)
            if root.http["enabled"]:
                # Before Spark: whoever asks whether it lives is not to take a start for an end.
                server = HttpServer(root.http, api.application)
                lock.sign(advertised(server.url))
                self._tell(server.url)
            self._start_spark(files, lock)
            checkpoints.finish(log)
            exports.enter_context(exported(root.metrics, manager.registry.views, log))
            begun.set()
            manager.boot.start(files)
            restored.set()
            log("INFO", "Running", {"seconds": round(time.monotonic() - began, 1)})
            with self._watched(manager):
                code = self._wait(manager.registry.store)
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

    def close(self) -> None:
        """End Spark."""
        if self._host is not None:
            self._host.stop()

    def _start_spark(
        self,
        files: Mapping[str, tuple[Config, Draft]],
        lock: DirectoryLock,
        rests: bool = False,
    ) -> None:
        from streamer.spark.host import SparkHost
        from streamer.spark.jars import host_conf
        from streamer.spark.resting import Rest
        from streamer.spark.session import SessionStart, look_at_workers

        spark, log = self._root.spark, self._log
        inputs = (config.input for config, _ in files.values())
        conf = host_conf(spark, inputs, os.environ, log, checkpoints=self._place.url)
        local = spark["master"].startswith("local")

        def look(session: Any) -> None:
            place = self._place.reached(session)
            look_at_workers(session, log)
            if not local:
                from streamer.spark.preflight import check_checkpoint

                check_checkpoint(session, place)

        rest, self._rest = self._rest, None
        if self._host is not None:
            if conf == self._conf and self._host.alive():
                if rest is not None:
                    rest.end()
                    look(self._host.first)
                return
            self._host.stop()
        self._conf = conf
        # A service has no status line.
        progress = StartProgress()
        progress.log_to(log)

        def start(ours: Mapping[str, str]) -> Any:
            begun = SessionStart(
                "streamer streams",
                spark["master"],
                {**ours, **self._place.settings(), **conf},
                log,
                self._level,
                keep_open=(lock.file,),
                looks=False,
                progress=progress,
            )
            found = begun.finish()
            if begun.lacks_archive:
                # Imported here: one start of a machine needs it.
                from streamer.cli.warm import start_making

                start_making(os.environ)
            if not rests:
                look(found)
            return found

        self._host = SparkHost(start, forks=local or spark["environment"] != "installed")
        if rests and not local:
            self._rest = Rest(self._host.first)
        self._stopper.install()

    @contextmanager
    def _watched(self, manager: Manager) -> Iterator[None]:
        """Watch the files of streams, if that was asked for."""
        options = self._options
        if options.watch is None:
            yield
            return
        from streamer.service.streams.files import FileStreams
        from streamer.service.watcher import Watcher

        wish = Wish(
            "file",
            options.chilled,
            on_reset=options.watch.on_reset or "",
            probation=options.watch.probation,
        )
        shared = (*options.resources, *self._templates)
        files = FileStreams(manager, options.paths, lambda: shared, wish)
        folders = [path for path in options.paths if os.path.isdir(path)]
        watcher = Watcher(files.files, files.told, lambda: folders)
        try:
            yield
        finally:
            watcher.close()

    def _reader(self) -> Reader:
        return reader_of(self._options, self._root, self._templates)

    def _registry(self, checkpoints: Checkpoints) -> Registry:
        options = self._options
        return Registry(
            self._reader(),
            Store(checkpoints.own / "store.db", shared=options.standby),
            checkpoints,
            partial(self._run, checkpoints),
            self._log,
            replace(Restarts(), limit=options.restarts),
            prefixed=options.prefixed,
        )

    def _run(
        self,
        checkpoints: Checkpoints,
        stream_id: str,
        config: Config,
        log: LogLine,
        view: StreamView,
        back: Callable[[Config], None],
        of_api: bool,
    ) -> SparkRun:
        # A file may have changed while nothing ran, or a moment before the program was killed.
        watch = self._options.watch
        asked = watch.on_reset if watch is not None and not of_api else None
        return SparkRun(
            *(stream_id, config, checkpoints, self._host, log, self._level, view, back),
            on_reset=OnReset(asked) if asked else None,
            skips_damaged=self._options.skip_damaged and self._begins(stream_id),
        )

    def _begins(self, stream_id: str) -> bool:
        """Whether a stream has not run yet in this program; from now on it has."""
        if stream_id in self._begun:
            return False
        self._begun.add(stream_id)
        return True

    def _tell(self, url: str) -> None:
        self._log("INFO", "Listening for HTTP requests", {"url": url})
        for level, text in about_access(self._root.http, self._options.api):
            self._log(level, text, {"url": url})

    def _wait(self, store: Store) -> int:
        clocks = ClockWatch(self._log)
        while not self._stopper.asked.wait(_LOOK):
            clocks.look()
            if not self._host.alive():
                text = "Spark's JVM has ended (killed, or out of memory: spark.conf."
                hint = "spark.driver.memory sets its heap); start again to go on"
                self._log("ERROR", text + hint, {})
                return 1
            if self._options.standby and store.is_over():
                # Its lock was lost with a network's file system; an orderly end would write.
                self._log("ERROR", "Another service has taken over; this one ends at once", {})
                self._host.kill()
                os._exit(1)
        return 0
