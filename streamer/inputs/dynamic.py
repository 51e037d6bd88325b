"""The `dynamic` input: inputs that are added, changed and removed over HTTP while it runs.

They are read on the driver, side by side; what they give lands in the spool together with how far
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

from streamer.errors import StreamerError
from streamer.landing.following import (
    batches_of,
    chunks_between,
    execution,
    follow,
    records_of,
    told,
)
from streamer.landing.landed import Landed
from streamer.landing.lander import Lander, StoppedError
from streamer.landing.store import Store
from streamer.permissions import ALL, Permissions, limited
from streamer.source.opening import Branch, Room, opened
from streamer.source.replayable import Offset, Replayable
from streamer.spec import BuildContext, Field, Kind, Parsed, ParsedComponent, Spec

INPUTS: Final = "inputs"
PREFIX: Final = "prefix"

_STOP_SECONDS: Final = 30.0

SPEC: Final = Spec(
    Kind.INPUT,
    "dynamic",
    "Reads inputs that can be added, changed and removed over HTTP.",
    description=(
        "The stream's own HTTP server has `GET /inputs` (all of them), `GET`, `POST` and `DELETE "
        "/inputs/{id}` (the config of one, as YAML or JSON) and `GET /inputs/{id}/uptime`. They "
        "are read on the driver with their processors. How far those of the config were read is in "
        "the checkpoint; what was added over HTTP is gone at the next start, as in Benthos, and "
        "cannot refer to resources. The input does not end when all of its inputs have. Whoever "
        "reaches the server can run commands with it: set `http.basic_auth`, or keep it to this "
        "machine."
    ),
    fields=(
        Field(
            INPUTS, "input", "The inputs that are there from the start.", default={}, shape="map"
        ),
        Field(PREFIX, "string", "What the paths begin with.", default=""),
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

    def opened(self, room: Room) -> Landed:
        """Begin to read; return what has landed.

        Raises:
            StreamerError: an input of the config cannot be opened.
        """
        fan = _Fan(self, room)
        for name, component in self.inputs.items():
            fan.add(name, component)
        if room.endpoints is not None and room.endpoints.served:
            # Imported here: linting a config should not wait for aiohttp.
            from streamer.endpoints.crud import serve_kept

            endpoints = room.endpoints
            room.on_stop(serve_kept(endpoints, "inputs", self.prefix, fan, _yaml, self.file))
        else:
            text = "There is no HTTP server, so no inputs can be added to the input dynamic"
            room.log("WARN", text, {})
        return Landed(room.directory, inside=not room.local)


@dataclass
class _Input:
    """One that runs, or has ended by itself.

    Attributes:
        document: its config, without secrets.
        branch: its room.
        since: when it was started, `time.monotonic_ns`; None when it has ended.
        over: set when nothing of it lands any more.
        text: its config as it was given over HTTP; empty for one of the config.
    """

    document: Mapping[str, Any]
    branch: Branch
    since: int | None = field(default_factory=time.monotonic_ns)
    over: threading.Event = field(default_factory=threading.Event)
    text: str = ""


class _Fan:
    """The inputs that there are; the mark has the offset of each, and which config it is of."""

    def __init__(self, of: DynamicInput, room: Room) -> None:
        self._of = of
        self._room = room
        store = Store(room.directory, room.spool_limit)
        self._lander = Lander(room, store)
        self._mark: dict[str, dict[str, Any]] = store.mark or {}
        self._inputs: dict[str, _Input] = {}
        self._landing = threading.Lock()
        self._changing = threading.Lock()

    def running(self) -> Mapping[str, _Input]:
        """Return the inputs by their ids."""
        return dict(self._inputs)

    def put(self, name: str, text: str) -> None:
        """Start an input, or change it; the same config again changes nothing."""
        with limited(self._of.permissions):
            component = self._room.read_config(Kind.INPUT, text)
        with self._changing:
            before = self._inputs.get(name)
            if before is None or before.text != text:
                self._end(name)
                self.add(name, component, text)

    def remove(self, name: str) -> None:
        """Stop an input."""
        with self._changing:
            self._end(name)

    def add(self, name: str, component: ParsedComponent, text: str = "") -> None:
        """Open an input and begin to read it."""
        document = self._room.shown_config(component)
        config = hashlib.sha256(orjson.dumps(document, default=str)).hexdigest()[:16]
        known = self._mark.get(name, {})
        number = known.get("number", 0)
        if known.get("config") != config:
            # What another config has received, and how far it was read, is no business of this one.
            number, known = number + 1, {}
        source = self._of.context.build(component)
        branch = self._room.branch(f"{name}-{number}")
        try:
            ready = opened(source, branch.room)
        except Exception:
            branch.stop()
            raise
        at = known.get("at") or ready.initial()
        self._mark[name] = {"config": config, "number": number, "at": at}
        made = self._inputs[name] = _Input(document, branch, text=text)

        def take(start: Offset, end: Offset) -> bool:
            self._land(name, ready, branch.room, start, end)
            return False

        def run() -> None:
            try:
                if follow(branch.room, ready, at, take):
                    made.since = None
            except StoppedError:
                return
            finally:
                made.over.set()

        self._room.start("dynamic", run)

    def _land(self, name: str, source: Replayable, room: Room, start: Offset, end: Offset) -> None:
        ex = execution(room)
        chunks = chunks_between(source, start, end, ex)
        records = records_of(batch for chunk in chunks for batch in batches_of(chunk))
        with self._landing:
            self._mark[name] = {**self._mark[name], "at": end}
            self._lander.write(records, self._mark)
        source.committed(end)
        told(room, ex)

    def _end(self, name: str) -> None:
        """Stop an input, and wait until nothing of it lands."""
        found = self._inputs.pop(name, None)
        if found is not None:
            found.branch.stop()
            if not found.over.wait(_STOP_SECONDS):
                raise StreamerError(f"the input {name} does not stop")


def _yaml(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False)


def build(parsed: Parsed, context: BuildContext) -> DynamicInput:
    """Take the inputs; they are built when they are opened."""
    component = context.component
    return DynamicInput(
        parsed[INPUTS], parsed[PREFIX], context.whole(), component.file, component.permissions
    )
