"""The writer of a `dynamic` output: outputs that run on the driver, and come and go."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote

import orjson
import yaml

from streamer.backoff import RESEND
from streamer.config import parse_config
from streamer.config.shown import shown
from streamer.durations import SECOND
from streamer.engine.file_routes import RefusedRoutesError
from streamer.engine.frame import Frame, FrameKind
from streamer.engine.task import Task
from streamer.errors import StreamerError
from streamer.failure import Origin
from streamer.lanes import Lanes
from streamer.message import Batch, Message
from streamer.permissions import limited
from streamer.plan import Plan
from streamer.plan.resources import resolved
from streamer.plan.written import written_inside
from streamer.sending import Written
from streamer.sending.retrying import Retrying, saying
from streamer.sending.sender import Sender
from streamer.source.opening import Room
from streamer.spec import ParsedComponent
from streamer.window.metadata import decode_meta

_NAP: Final = 0.25
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_TEMPLATE: Final = "dynamic"


class Writes(Protocol):
    """What writes the frames of one output on the driver."""

    def write(self, batch: int, frames: Sequence[Frame]) -> None:
        """Write a micro-batch."""


class RemovedError(Exception):
    """The output has been removed while it was tried again."""


@dataclass(frozen=True)
class RunningOutput:
    """One output that runs.

    Attributes:
        sender: the output.
        component: its component.
        origin: where it stands.
        writers: of what it gives to the driver, by path.
        document: its config, without secrets.
        since: when it was started, `time.monotonic_ns`.
        removed: set when it is to send no more.
    """

    sender: Sender
    component: ParsedComponent
    origin: Origin
    writers: Mapping[str, Writes]
    document: Mapping[str, Any]
    since: int = field(default_factory=time.monotonic_ns)
    removed: threading.Event = field(default_factory=threading.Event)


class DynamicWriter:
    """Sends the batches of a micro-batch to all outputs that there are; they may change meanwhile.

    A micro-batch that is written again is sent again.
    """

    def __init__(
        self,
        plan: Plan,
        component: ParsedComponent,
        writer: Callable[[ParsedComponent, Path], Writes],
        directory: Path,
    ) -> None:
        """Take what there is at the start.

        Args:
            plan: the stream's plan.
            component: the output.
            writer: makes the writer of an output inside of it, with the path of a journal.
            directory: where journals are.
        """
        self._plan = plan
        self._component = component
        self._writer = writer
        self._directory = directory
        self._changed = threading.Condition()
        self._outputs: dict[str, RunningOutput] = {}
        self._room: Room | None = None
        for name, output in component.config["outputs"].items():
            self._outputs[name] = self._started(name, output)

    def open(self, room: Room) -> None:
        """Let the stream's HTTP server have the endpoints, if there is one."""
        self._room = room
        if room.endpoints is not None and room.endpoints.served:
            # Imported here: what has no server should not wait for aiohttp.
            from streamer.endpoints.crud import serve_kept

            prefix = self._component.config["prefix"]
            file = self._component.file
            room.on_stop(serve_kept(room.endpoints, "outputs", prefix, self, _yaml, file))

    def running(self) -> Mapping[str, RunningOutput]:
        """Return the outputs by their ids."""
        with self._changed:
            return dict(self._outputs)

    def put(self, name: str, text: str) -> None:
        """Start an output, or change it.

        Raises:
            StreamerError: the id or the config is not right.
        """
        if not _NAME.fullmatch(name):
            raise StreamerError(f"the id {name!r} has other characters than A-Z a-z 0-9 . _ -")
        try:
            body = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise StreamerError(f"the config is no YAML: {error}") from None
        document = {"output": {_TEMPLATE: {"outputs": {name: body}}}}
        with limited(self._component.permissions):
            config = parse_config(orjson.dumps(document).decode(), env={})
        made = self._started(name, config.output.config["outputs"][name])
        with self._changed:
            self._removed(name)
            self._outputs[name] = made
            self._changed.notify_all()

    def remove(self, name: str) -> None:
        """Remove an output; what it is being sent is given up."""
        with self._changed:
            self._removed(name)

    def _removed(self, name: str) -> None:
        found = self._outputs.pop(name, None)
        if found is not None:
            found.removed.set()

    def _started(self, name: str, component: ParsedComponent) -> RunningOutput:
        output = resolved(component, self._plan.resources)
        leaves = [output, *written_inside([output], self._plan.resources)]
        for leaf in leaves:
            if leaf.name in ("http_server", _TEMPLATE):
                raise StreamerError(f"output {name!r}: a {leaf.name} cannot be inside of a dynamic")
        journal = quote(name, safe="")
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        writers = {
            leaf.path: self._writer(leaf, self._directory / f"{journal}-{number}.json")
            for number, leaf in enumerate(leaves)
            if leaf.name in ("file", "stdout")
        }
        sender: Sender = self._plan.context().build(output)
        return RunningOutput(sender, output, Origin(output), writers, shown(component))

    def write(self, batch: int, frames: Sequence[Frame]) -> None:
        """Return when all outputs have what is in a micro-batch.

        Raises:
            OSError: the program stops before, or a file cannot be written.
        """
        if not frames:
            return
        batches = [_batch(frame.body) for frame in frames]
        task = Task(self._plan.level, live=self._plan.live, limits=self._plan.limits)
        outputs = list(self._waited_for().values())
        made = Lanes(lambda: None, len(outputs)).map(
            lambda _, output, ex: self._sent(output, batches, ex), outputs, task.execution
        )
        refused: list[tuple[Frame, str]] = []
        for output, written in zip(outputs, made, strict=True):
            for path, writer in output.writers.items():
                mine = [one for one in written if one.leaf == path]
                try:
                    writer.write(batch, [_frame(number, one) for number, one in enumerate(mine)])
                except RefusedRoutesError as error:
                    refused += error.refused
        for one in task.rejected():
            self._drop(one.text, one.messages)
        for _, text in refused:
            self._drop(text, 1)
        self._say(task)

    def _waited_for(self) -> Mapping[str, RunningOutput]:
        """Return the outputs, once there is one."""
        with self._changed:
            while not self._outputs:
                if self._stopping():
                    raise InterruptedError("the program stops, and there is no dynamic output")
                self._changed.wait(_NAP)
            return dict(self._outputs)

    def _stopping(self) -> bool:
        return self._room is not None and self._room.stopping

    def _sent(self, output: RunningOutput, batches: Sequence[Batch], ex: Any) -> list[Written]:
        """Send all batches to one output, unless it is removed before it has taken them."""

        def sleep(ns: int) -> None:
            until = time.monotonic() + ns / SECOND
            while (left := until - time.monotonic()) > 0:
                if self._stopping():
                    raise InterruptedError("the program stops, and an output still fails")
                if output.removed.wait(min(left, _NAP)):
                    raise RemovedError

        ex.sleep = sleep
        log = saying(output.origin)
        retrying = Retrying(output.sender.deliver, RESEND, log, output.component)
        written: list[Written] = []
        try:
            for one in retrying.until_sent(batches, ex):
                written.append(one)
        except RemovedError:
            output.origin.log(ex, "WARN", "The output was removed before it had taken all messages")
        return written

    def _drop(self, text: str, messages: int) -> None:
        """Say that messages are lost to an output: it may be gone when they could be sent again."""
        if self._room is not None:
            self._room.log("ERROR", f"Messages dropped, since an output rejects them: {text}", {})
            self._room.count("output_dropped", messages, reason="rejected")

    def _say(self, task: Task) -> None:
        """Log and count what the outputs have said."""
        room = self._room
        if room is None:
            return
        for kind, body in task.said():
            if kind == FrameKind.LOG:
                for level, text, fields in orjson.loads(body):
                    room.log(level, text, fields)
            elif kind == FrameKind.COUNT:
                for name, by, labels in orjson.loads(body):
                    room.count(name, by, **labels)


def _batch(body: bytes) -> Batch:
    import msgpack

    batch = []
    for meta, raw in msgpack.unpackb(body):
        decoded, error = decode_meta(meta)
        batch.append(Message(raw, decoded, error))
    return batch


def _frame(number: int, written: Written) -> Frame:
    return Frame(FrameKind.DATA, 0, 0, number, 0, written.route, written.body)


def _yaml(document: Any) -> str:
    found: str = yaml.safe_dump(document, sort_keys=False)
    return found
