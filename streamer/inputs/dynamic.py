"""The `dynamic` input: inputs that are added, changed and removed over HTTP while it runs.

They are read on the driver, side by side; what they give lands in the spool together with how far
each was read.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

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
from streamer.source.opening import Branch, Room, opened
from streamer.source.replayable import Offset
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
)


@dataclass(frozen=True)
class DynamicInput:
    """The input before it is opened.

    Attributes:
        inputs: those of the config, by name.
        prefix: what the paths begin with.
        context: builds inputs with their processors.
    """

    inputs: Mapping[str, ParsedComponent]
    prefix: str
    context: BuildContext

    def opened(self, room: Room) -> Landed:
        """Begin to read; return what has landed.

        Raises:
            StreamerError: an input of the config cannot be opened.
        """
        # Imported here: linting a config should not wait for aiohttp.
        from streamer.endpoints.dynamic import DynamicApi

        fan = _Fan(self, room)
        fan.api = DynamicApi("inputs", fan.update, fan.remove)
        for name, component in self.inputs.items():
            fan.api.started(name, fan.add(name, component))
        if room.endpoints is not None and room.endpoints.served:
            fan.api.serve(room.endpoints, self.prefix)
        else:
            text = "There is no HTTP server, so no inputs can be added to the input dynamic"
            room.log("WARN", text, {})
        return Landed(room.directory, inside=not room.local)


class _Fan:
    """The inputs that run; the mark has the offset of each, and which config it belongs to."""

    api: Any

    def __init__(self, of: DynamicInput, room: Room) -> None:
        self._of = of
        self._room = room
        store = Store(room.directory)
        self._lander = Lander(room, store)
        self._mark: dict[str, dict[str, Any]] = store.mark or {}
        self._running: dict[str, tuple[Branch, threading.Event]] = {}
        self._landing = threading.Lock()
        self._changing = threading.Lock()

    def update(self, name: str, text: str) -> str:
        """Add an input with a config, in the place of one that is there."""
        component = self._room.read_config(Kind.INPUT, text)
        with self._changing:
            self._end(name)
            return self.add(name, component)

    def remove(self, name: str) -> None:
        """Stop an input."""
        with self._changing:
            self._end(name)

    def add(self, name: str, component: ParsedComponent) -> str:
        """Open an input and begin to read it; return its config as it is shown."""
        shown = self._room.shown_config(component)
        config = hashlib.sha256(shown.encode()).hexdigest()[:16]
        known = self._mark.get(name, {})
        source = self._of.context.build(component)
        number = known.get("number", 0)
        if known.get("config") != config:
            # What another config has received, and how far it was read, is no business of this one.
            number, known = number + 1, {}
        branch = self._room.branch(f"{name}-{number}")
        ready = opened(source, branch.room)
        at = known.get("at") or ready.initial()
        self._mark[name] = {"config": config, "number": number, "at": at}
        over = threading.Event()
        self._running[name] = branch, over

        def take(start: Offset, end: Offset) -> bool:
            ex = execution(branch.room)
            chunks = chunks_between(ready, start, end, ex)
            records = records_of(batch for chunk in chunks for batch in batches_of(chunk))
            with self._landing:
                self._mark[name] = {**self._mark[name], "at": end}
                self._lander.write(records, self._mark)
            ready.committed(end)
            told(branch.room, ex)
            return False

        def run() -> None:
            try:
                if follow(branch.room, ready, at, take):
                    self.api.stopped(name)
            except StoppedError:
                return
            finally:
                over.set()

        self._room.start("dynamic", run)
        return shown

    def _end(self, name: str) -> None:
        """Stop an input that runs, and wait until it does not."""
        branch, over = self._running.pop(name, (None, None))
        if branch is None or over is None:
            return
        branch.stop()
        if not over.wait(_STOP_SECONDS):
            raise StreamerError(f"the input {name} does not stop")


def build(parsed: Parsed, context: BuildContext) -> DynamicInput:
    """Take the inputs; they are built when they are opened."""
    return DynamicInput(parsed[INPUTS], parsed[PREFIX], context.whole())
