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

from streamer.config import parse_config
from streamer.config.component_document import redact_component
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.message import Batch, Message
from streamer.core.permissions import limit_permissions
from streamer.engine.driver.file_routes import RefusedRoutesError
from streamer.engine.driver.table_commits import AheadWriter, CommittingWriter, TableCommits
from streamer.engine.report.result_frame import Frame, FrameKind, TaskReport
from streamer.plan import Plan
from streamer.plan.component_lookup import WRITER_OUTPUTS, find_driver_outputs, resolve_resource
from streamer.sdk.backoff import RESEND
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.output.protocols import DriverWrite
from streamer.sdk.output.retry import RetryingOutput, make_attempt_logger
from streamer.sdk.output.sender import Sender
from streamer.sdk.spec import ParsedComponent
from streamer.sdk.thread_pool import ComponentPool
from streamer.window.pack.metadata_codec import decode_meta

_POLL_INTERVAL_S: Final = 0.25
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_TEMPLATE: Final = "dynamic"


class FrameWriter(Protocol):
    """A writer of the frames of one output on the driver."""

    def write(self, batch: int, frames: Sequence[Frame]) -> None:
        """Write a micro-batch."""


class OutputRemovedError(Exception):
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
    origin: ComponentRef
    writers: Mapping[str, FrameWriter]
    document: Mapping[str, Any]
    since: int = field(default_factory=time.monotonic_ns)
    removed: threading.Event = field(default_factory=threading.Event)


class DynamicOutputWriter:
    """Sends the batches of a micro-batch to all outputs that there are; they may change meanwhile.

    A micro-batch that is written again is sent again.
    """

    def __init__(
        self,
        plan: Plan,
        component: ParsedComponent,
        writer: Callable[[ParsedComponent, Path], FrameWriter],
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
        self._context: InputContext | None = None
        for name, output in component.config["outputs"].items():
            self._outputs[name] = self._start_output(name, output)

    def open(self, context: InputContext) -> None:
        """Let the stream's HTTP server have the endpoints, if there is one."""
        self._context = context
        if context.endpoints is not None and context.endpoints.served:
            # Imported here: what has no server should not wait for aiohttp.
            from streamer.connectors.http_server.dynamic_api import serve_dynamic

            prefix = self._component.config["prefix"]
            file = self._component.file
            context.on_stop(
                serve_dynamic(context.endpoints, "outputs", prefix, self, _dump_yaml, file)
            )

    def running(self) -> Mapping[str, RunningOutput]:
        """Return the outputs by their ids."""
        with self._changed:
            return dict(self._outputs)

    def commits(self) -> TableCommits | None:
        """Return the newest commits of the first table in it; see `CommittingWriter`."""
        writers = (one for output in self.running().values() for one in output.writers.values())
        tables = (one.commits() for one in writers if isinstance(one, CommittingWriter))
        return next(filter(None, tables), None)

    def find_ahead(self, batch: int) -> str:
        """Return which table in it has a micro-batch already; see `AheadWriter`."""
        tables = (
            writer.find_ahead(batch)
            for output in self.running().values()
            for writer in output.writers.values()
            if isinstance(writer, AheadWriter)
        )
        return next(filter(None, tables), "")

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
            raise StreamerError(f"the config is not YAML: {error}") from None
        document = {"output": {_TEMPLATE: {"outputs": {name: body}}}}
        with limit_permissions(self._component.permissions):
            config = parse_config(orjson.dumps(document).decode(), env={})
        made = self._start_output(name, config.output.config["outputs"][name])
        with self._changed:
            self._remove_running(name)
            self._outputs[name] = made
            self._changed.notify_all()

    def remove(self, name: str) -> None:
        """Remove an output; what it is being sent is given up."""
        with self._changed:
            self._remove_running(name)

    def _remove_running(self, name: str) -> None:
        output = self._outputs.pop(name, None)
        if output is not None:
            output.removed.set()

    def _start_output(self, name: str, component: ParsedComponent) -> RunningOutput:
        output = resolve_resource(component, self._plan.resources)
        leaves = [output, *find_driver_outputs([output], self._plan.resources)]
        for leaf in leaves:
            if leaf.name in ("http_server", "inproc", _TEMPLATE):
                raise StreamerError(f"output {name!r}: a {leaf.name} cannot be inside of a dynamic")
        journal = quote(name, safe="")
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        writers = {
            leaf.path: self._writer(leaf, self._directory / f"{journal}-{number}.json")
            for number, leaf in enumerate(leaves)
            if leaf.name in WRITER_OUTPUTS
        }
        sender: Sender = self._plan.context().build(output)
        return RunningOutput(
            sender, output, ComponentRef(output), writers, redact_component(component)
        )

    def write(self, batch: int, frames: Sequence[Frame]) -> None:
        """Return when all outputs have what is in a micro-batch.

        Raises:
            OSError: the program stops before, or a file cannot be written.
        """
        if not frames:
            return
        batches = [_decode_batch(frame.body) for frame in frames]
        task = TaskReport(
            self._plan.level, log_address=self._plan.task_log_address, limits=self._plan.limits
        )
        outputs = list(self._wait_for_outputs().values())
        made = ComponentPool(lambda: None, len(outputs)).map(
            lambda _, output, ex: self._send_to_output(output, batches, ex), outputs, task.execution
        )
        refused: list[tuple[Frame, str]] = []
        for output, written in zip(outputs, made, strict=True):
            for path, writer in output.writers.items():
                mine = [one for one in written if one.leaf == path]
                try:
                    writer.write(
                        batch, [_make_frame(number, one) for number, one in enumerate(mine)]
                    )
                except RefusedRoutesError as error:
                    refused += error.refused
        for one in task.take_rejected():
            self._drop(one.text, one.messages)
        for _, text in refused:
            self._drop(text, 1)
        self._log_task(task)

    def _wait_for_outputs(self) -> Mapping[str, RunningOutput]:
        """Return the outputs, once there is one."""
        with self._changed:
            while not self._outputs:
                if self._stopping():
                    raise InterruptedError("the program stops, and there is no dynamic output")
                self._changed.wait(_POLL_INTERVAL_S)
            return dict(self._outputs)

    def _stopping(self) -> bool:
        return self._context is not None and self._context.stopping

    def _send_to_output(
        self, output: RunningOutput, batches: Sequence[Batch], ex: Any
    ) -> list[DriverWrite]:
        """Send all batches to one output, unless it is removed before it has taken them."""

        def sleep(ns: int) -> None:
            until = time.monotonic() + ns / SECOND
            while (left := until - time.monotonic()) > 0:
                if self._stopping():
                    raise InterruptedError("the program stops, and an output still fails")
                if output.removed.wait(min(left, _POLL_INTERVAL_S)):
                    raise OutputRemovedError

        ex.sleep = sleep
        log = make_attempt_logger(output.origin)
        retrying = RetryingOutput(output.sender.deliver, RESEND, log, output.component)
        written: list[DriverWrite] = []
        try:
            for one in retrying.send_until_done(batches, ex):
                written.append(one)
        except OutputRemovedError:
            output.origin.log(
                ex, "WARN", "The output was removed before it had accepted all messages"
            )
        return written

    def _drop(self, text: str, messages: int) -> None:
        """Report messages as lost to an output: it may be gone when they could be sent again."""
        if self._context is not None:
            self._context.log(
                "ERROR", f"Messages dropped, since an output rejects them: {text}", {}
            )
            self._context.count("output_dropped", messages, reason="rejected")

    def _log_task(self, task: TaskReport) -> None:
        """Log and count what the outputs have reported."""
        context = self._context
        if context is None:
            return
        for kind, body in task.frames():
            if kind == FrameKind.LOG:
                for level, text, fields in orjson.loads(body):
                    context.log(level, text, fields)
            elif kind == FrameKind.COUNT:
                for name, by, labels in orjson.loads(body):
                    context.count(name, by, **labels)


def _decode_batch(body: bytes) -> Batch:
    import msgpack

    batch = []
    for meta, raw in msgpack.unpackb(body):
        decoded, error = decode_meta(meta)
        batch.append(Message(raw, decoded, error))
    return batch


def _make_frame(number: int, written: DriverWrite) -> Frame:
    return Frame(FrameKind.DATA, 0, 0, number, 0, written.route, written.body)


def _dump_yaml(document: Any) -> str:
    text: str = yaml.safe_dump(document, sort_keys=False)
    return text
