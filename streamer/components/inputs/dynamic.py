"""The `dynamic` input: inputs that are added, changed and removed over HTTP while it runs.

They are read on the driver, side by side; what they give goes into the spool together with how far
each was read.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
import yaml

from streamer.connectors.spool.driver_reader import (
    batches_of_chunk,
    chunks_between,
    make_execution,
    read_until_end,
    records_of_batches,
    report_stats,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.spool_writer import SpoolWriter, StreamStoppedError
from streamer.connectors.spool.store import SpoolStore
from streamer.core.errors import StreamerError
from streamer.core.permissions import ALL, Permissions, limit_permissions
from streamer.sdk.input.input_context import InputContext, StoppableContext, open_input
from streamer.sdk.input.replayable import Offset, ReplayableSource
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedComponent, ParsedFields, Spec

INPUTS: Final = "inputs"
PREFIX: Final = "prefix"

_STOP_TIMEOUT_S: Final = 30.0

SPEC: Final = Spec(
    Kind.INPUT,
    "dynamic",
    "Reads inputs that can be added, changed and removed over HTTP.",
    description=(
        "The stream's own HTTP server has `GET /inputs` (all of them), `GET`, `POST` and "
        "`DELETE /inputs/{id}` (the config of one, as YAML or JSON) and `GET "
        "/inputs/{id}/uptime`. They are read on the driver with their processors. The "
        "checkpoint has the positions of the inputs in the config. Inputs added over HTTP are "
        "gone at the next start, as in Benthos, and cannot refer to resources. The input does "
        "not end when all of its inputs have. Every client of the server can run commands "
        "with it: set `http.basic_auth`, or restrict it to this machine."
    ),
    fields=(
        Field(
            INPUTS, "input", "The inputs that are there from the start.", default={}, shape="map"
        ),
        Field(PREFIX, "string", "Prefix of the paths.", default=""),
    ),
    categories=("Utility",),
    takes_configs=True,
    runs="children",
    limits="what was added over HTTP is gone at the next start",
)


@dataclass(frozen=True)
class DynamicInput:
    """The input before it is opened.

    Attributes:
        inputs: those of the config, by name.
        prefix: what the paths begin with.
        context: builds inputs with their processors.
        file: the file that it stands in.
        permissions: what those that are added may do.
    """

    inputs: Mapping[str, ParsedComponent]
    prefix: str
    context: BuildContext
    file: str = ""
    permissions: Permissions = ALL

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to read; return the source of what the spool holds.

        Raises:
            StreamerError: an input of the config cannot be opened.
        """
        fan = _DynamicInputs(self, context)
        for name, component in self.inputs.items():
            fan.add(name, component)
        if context.endpoints is not None and context.endpoints.served:
            # Imported here: linting a config should not wait for aiohttp.
            from streamer.connectors.http_server.dynamic_api import serve_dynamic

            endpoints = context.endpoints
            context.on_stop(
                serve_dynamic(endpoints, "inputs", self.prefix, fan, _format_yaml, self.file)
            )
        else:
            text = "There is no HTTP server, so no inputs can be added to the input dynamic"
            context.log("WARN", text, {})
        return SpoolSource.for_input(context)


@dataclass
class _Input:
    """One that runs, or has ended by itself.

    Attributes:
        document: its config, without secrets.
        branch: its context, and what stops it.
        since: when it was started, `time.monotonic_ns`; None when it has ended.
        is_over: set when nothing of it is spooled any more.
        text: its config as it was given over HTTP; empty for one of the config.
    """

    document: Mapping[str, Any]
    branch: StoppableContext
    since: int | None = field(default_factory=time.monotonic_ns)
    is_over: threading.Event = field(default_factory=threading.Event)
    text: str = ""


class _DynamicInputs:
    """The inputs that there are; the mark has the offset of each, and which config it is of."""

    def __init__(self, spec: DynamicInput, context: InputContext) -> None:
        self._of = spec
        self._context = context
        store = SpoolStore.for_input(context)
        self._spool_writer = SpoolWriter(context, store)
        self._mark: dict[str, dict[str, Any]] = store.mark or {}
        self._inputs: dict[str, _Input] = {}
        self._spool_lock = threading.Lock()
        self._change_lock = threading.Lock()

    def running(self) -> Mapping[str, _Input]:
        """Return the inputs by their ids."""
        return dict(self._inputs)

    def put(self, name: str, text: str) -> None:
        """Start an input, or change it; the same config again changes nothing."""
        with limit_permissions(self._of.permissions):
            component = self._context.read_config(Kind.INPUT, text)
        with self._change_lock:
            before = self._inputs.get(name)
            if before is None or before.text != text:
                self._end(name)
                self.add(name, component, text)

    def remove(self, name: str) -> None:
        """Stop an input."""
        with self._change_lock:
            self._end(name)

    def add(self, name: str, component: ParsedComponent, text: str = "") -> None:
        """Open an input and begin to read it."""
        document = self._context.redacted_config(component)
        config = hashlib.sha256(orjson.dumps(document, default=str)).hexdigest()[:16]
        known = self._mark.get(name, {})
        number = known.get("number", 0)
        if known.get("config") != config:
            # What another config has received, and how far it was read, is no business of this one.
            number, known = number + 1, {}
        source = self._of.context.build(component)
        branch = self._context.stoppable_child(f"{name}-{number}")
        try:
            ready = open_input(source, branch.context)
        except Exception:
            branch.stop()
            raise
        at = known.get("at") or ready.initial_offset()
        self._mark[name] = {"config": config, "number": number, "at": at}
        made = self._inputs[name] = _Input(document, branch, text=text)

        def take(start: Offset, end: Offset) -> bool:
            self._spool(name, ready, branch.context, start, end)
            return False

        def run() -> None:
            try:
                if read_until_end(branch.context, ready, at, take):
                    made.since = None
            except StreamStoppedError:
                return
            finally:
                made.is_over.set()

        self._context.start("dynamic", run)

    def _spool(
        self, name: str, source: ReplayableSource, context: InputContext, start: Offset, end: Offset
    ) -> None:
        ex = make_execution(context)
        chunks = chunks_between(source, start, end, ex)
        records = records_of_batches(batch for chunk in chunks for batch in batches_of_chunk(chunk))
        with self._spool_lock:
            self._mark[name] = {**self._mark[name], "at": end}
            self._spool_writer.write(records, self._mark)
        source.on_committed(end)
        report_stats(context, ex)

    def _end(self, name: str) -> None:
        """Stop an input, and wait until nothing of it is spooled."""
        entry = self._inputs.pop(name, None)
        if entry is not None:
            entry.branch.stop()
            if not entry.is_over.wait(_STOP_TIMEOUT_S):
                raise StreamerError(f"the input {name} does not stop")


def _format_yaml(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False)


def build(parsed: ParsedFields, context: BuildContext) -> DynamicInput:
    """Take the inputs; they are built when they are opened."""
    component = context.component
    return DynamicInput(
        parsed[INPUTS],
        parsed[PREFIX],
        context.with_processors(),
        component.file,
        component.permissions,
    )
