"""Streams without Spark: runs that a test moves, and the service around them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamer.config import Config, parse_config
from streamer.core.errors import StreamerError
from streamer.engine.report.message_samples import MessageSamples
from streamer.engine.report.stream_metrics import Snapshot
from streamer.engine.report.window_questions import Answer, WindowQuestions
from streamer.service.fleet.api_permissions import ApiPermissions
from streamer.service.fleet.checkpoints import Checkpoints
from streamer.service.fleet.config_reader import ConfigReader
from streamer.service.fleet.deployment_store import DeploymentStore
from streamer.service.fleet.manager import Manager
from streamer.service.fleet.registry import Registry
from streamer.service.fleet.restart_schedule import RestartPolicy
from streamer.service.fleet.run_handle import RunRequest
from streamer.service.monitoring.stream_figures import StreamFigures
from streamer.service.monitoring.stream_view import StreamState
from streamer.service.monitoring.window_rows import DEFAULT_QUERY
from streamer.service.run.revision_switch import RevisionChange
from streamer.window.inspect.window_query import WindowQuery

ROOT = "http: { address: '127.0.0.1:0' }\nspark: { master: 'local[1]' }\n"
GENERATE = "input: { generate: { mapping: root = 1 } }\noutput: { drop: {} }\n"
NO_WINDOWS: Mapping[str, Any] = {"windows": [], "open": 0, "messages": 0, "bytes": 0}
QUICK = RestartPolicy(max_restarts=2, first_pause_s=0.01, max_pause_s=0.02)


def config_text(name: str) -> str:
    """A config whose only processor tells it from others: what a run does hangs on the name."""
    return f"{GENERATE}pipeline: {{ processors: [ {{ mapping: 'root = \"{name}\"' }} ] }}\n"


@dataclass
class Stage:
    """What runs do, which are on, and all that was ever started.

    Attributes:
        fails: texts; a config that has one of them does not start.
        breaks: texts; a run whose config has one fails at its next poll.
        ends: texts; a run whose config has one is over at its next poll.
        relapses: texts; a run that has got such a config on probation goes back at its next poll.
        on: what runs now, by stream.
        started: all starts, with what was started.
        wait: a start waits for it.
        now: what a run says of itself, by its stream and the number of its polls.
        windows: what a run says of its windows, by its stream.
        feed: gives figures to the history of a stream, at each poll.
    """

    fails: set[str] = field(default_factory=set)
    breaks: set[str] = field(default_factory=set)
    ends: set[str] = field(default_factory=set)
    relapses: set[str] = field(default_factory=set)
    on: dict[str, str] = field(default_factory=dict)
    started: list[tuple[str, str]] = field(default_factory=list)
    stopped: list[tuple[str, float | None]] = field(default_factory=list)
    wait: threading.Event | None = None
    error: type[Exception] = StreamerError
    now: Callable[[str, int], StreamState] = lambda _, polls: StreamState(
        Snapshot(messages=7, batch=polls), {}
    )
    windows: Callable[[str, WindowQuery, Answer | None], Mapping[str, Any]] = lambda *_: NO_WINDOWS
    feed: Callable[[str, StreamFigures], None] = lambda _, figures: None


class PretendedRun:
    def __init__(self, stage: Stage, checkpoints: Checkpoints, request: RunRequest) -> None:
        self.stage = stage
        self.stream_id = request.stream_id
        self.config = request.config
        self.directory = checkpoints.directory_of(request.stream_id)
        self.log = request.log
        self.view = request.view
        self.back = request.on_rollback
        self.of_api = request.is_of_api
        self.former: Config | None = None
        self.number = -1
        self.interrupted = False
        self.patience = 0.0
        self.samples = MessageSamples()
        self.questions = WindowQuestions()

    host = None

    def _has(self, texts: set[str], config: Config | None = None) -> bool:
        text = (config or self.config).text
        return any(one in text for one in texts)

    def begin(self) -> PretendedRun:
        if self.stage.wait is not None:
            self.stage.wait.wait(30)
        if self._has(self.stage.fails):
            raise self.stage.error("it cannot be started")
        assert self.stream_id not in self.stage.on, "two runs of one stream"
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "streamer.json").touch()
        self.stage.on[self.stream_id] = self.config.text
        self.stage.started.append((self.stream_id, self.config.text))
        self.view.set_running(lambda: self.stage.now(self.stream_id, self.number))
        self.stage.feed(self.stream_id, self.view.figures)
        return self

    def poll(self) -> bool:
        if self._has(self.stage.breaks):
            raise self.stage.error("it broke")
        self.stage.feed(self.stream_id, self.view.figures)
        self.number += 1
        if self.former is not None and self._has(self.stage.relapses):
            self._take(self.former)
            self.former = None
            self.back(self.config)
        return self._has(self.stage.ends)

    @property
    def newest_batch(self) -> int:
        return self.number

    def list_windows(self, query: WindowQuery = DEFAULT_QUERY) -> Mapping[str, Any]:
        return self.stage.windows(self.stream_id, query, self.questions.answer_to(query))

    def request_windows(self, query: WindowQuery) -> bool:
        return self.questions.request(query)

    def tap(self) -> MessageSamples:
        return self.samples

    def set_min_interval(self, seconds: float) -> None:
        self.patience = seconds

    def interrupt(self) -> None:
        self.interrupted = True

    def replace(self, change: RevisionChange) -> None:
        if self._has(self.stage.fails, change.config):
            raise self.stage.error("it cannot be started")
        self.former = self.config if change.probation is not None else None
        self._take(change.config)

    def _take(self, config: Config) -> None:
        self.config = config
        self.stage.on[self.stream_id] = config.text
        self.stage.started.append((self.stream_id, config.text))
        self.view.set_config(config)

    def stop(self, timeout: float | None = None, over: bool = False) -> None:
        self.stage.on.pop(self.stream_id, None)
        self.stage.stopped.append((self.stream_id, timeout))
        self.view.set_ended()


@dataclass
class Pretended:
    """A service on pretended runs."""

    manager: Manager
    stage: Stage
    log: list[tuple[str, str, Mapping[str, Any]]]
    directory: Path

    def state(self, stream_id: str) -> str:
        return str(self.manager.registry.get(stream_id).lifecycle.state)

    def wait_for(self, stream_id: str, state: str) -> None:
        self.wait_for_status(stream_id, state)

    def wait_for_status(self, stream_id: str, state: str) -> dict[str, Any]:
        """Wait for a state; return the status that has it: a moment later there is another one."""
        until = time.monotonic() + 20
        while True:
            status: dict[str, Any] = self.manager.registry.get(stream_id).status()
            if status["state"] == state:
                return status
            assert time.monotonic() < until, f"{stream_id} is {self.state(stream_id)}"
            time.sleep(0.01)


@contextmanager
def pretended(
    directory: Path,
    allowance: ApiPermissions = ApiPermissions(),  # noqa: B008
    stage: Stage | None = None,
    files: Mapping[str, str] | None = None,
    root: str = ROOT,
    prefixed: bool = True,
    templates: tuple[str, ...] = (),
) -> Iterator[Pretended]:
    """A service from its start to its end."""
    stage = stage or Stage()
    lines: list[tuple[str, str, Mapping[str, Any]]] = []
    directory.mkdir(parents=True, exist_ok=True)
    (directory / ".service").mkdir(exist_ok=True)
    checkpoints = Checkpoints(directory)
    store = DeploymentStore(directory / ".service" / "store.db")
    registry = Registry(
        ConfigReader(parse_config(root, "root.yaml"), allowance, templates=templates),
        store,
        checkpoints,
        lambda request: PretendedRun(stage, checkpoints, request).begin(),
        lambda *line: lines.append(line),
        QUICK,
        prefixed=prefixed,
    )
    manager = Manager(registry)
    try:
        manager.startup.start_streams(manager.startup.read_files(files or {}))
        yield Pretended(manager, stage, lines, directory)
    finally:
        manager.close()
