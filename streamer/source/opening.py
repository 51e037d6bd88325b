"""What an input may ask for when its stream starts: the room that it is opened in, on the driver.

An input's `build` only reads its fields. One that has to look or to listen before it can be read
is an `Opening`: `opened` is called once for every start of the program, on the driver, and returns
the source that is read from then on. Three kinds of inputs need it:

- one that must see the same again after a restart (the files that a glob matched):
  `room.known()` is what an earlier start remembered, `room.remember(…)` what the next one gets;
- one that cannot be read twice (a pipe, a socket, HTTP): it lands what comes in a spool under
  `room.directory`, by a receiver that it starts with `room.start`, and is read from there
  (see `streamer.landing`; `streamer.source.spool` keeps plain bytes);
- one that holds others opens them with `room.inner(name)`.

An input that reads a bounded answer (a query's rows) needs none of it when it can ask again and get
the same; otherwise it lands the rows like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from streamer.answering import Answers
from streamer.limits import Limits, stream_limits
from streamer.source.replayable import Replayable
from streamer.spec import Kind, ParsedComponent


class Room(Protocol):
    """What the driver lends to one input while it is opened, and while its receiver runs."""

    @property
    def name(self) -> str:
        """The input's name among all of the stream, the same at every start; "" for the only."""

    @property
    def directory(self) -> Path:
        """A directory of its own in the checkpoint; it goes when a bounded stream has ended."""

    @property
    def spool_limit(self) -> int:
        """Bytes that may wait in a spool for the checkpoint; above it nothing more is taken."""

    @property
    def limits(self) -> Limits:
        """What one message may come to; they hold in what `start` runs."""

    @property
    def local(self) -> bool:
        """Whether the workers see this machine's files."""

    @property
    def answers(self) -> Answers | None:
        """Where requests wait for their answer; None when nothing in the stream gives any."""

    @property
    def endpoints(self) -> Any:
        """The stream's HTTP server, which takes more paths; None when there is none."""

    def known(self) -> Any:
        """Return what an earlier start remembered; None when there was none."""

    def remember(self, what: Any) -> None:
        """Keep a JSON value for the next start."""

    def inner(self, name: str) -> Room:
        """Return the room of an input within this one."""

    def branch(self, name: str) -> Branch:
        """Return the room of an input within this one that can be stopped by itself."""

    def read_config(self, kind: Kind, text: str) -> ParsedComponent:
        """Read the config of a component that is added while the stream runs.

        Raises:
            StreamerError: it is not right.
        """

    def shown_config(self, component: ParsedComponent) -> Mapping[str, Any]:
        """Return the config of a component as a document, without secrets."""

    def claim(self, what: str) -> None:
        """Take something that only one input can have, such as the standard input.

        Raises:
            StreamerError: another input has it.
        """

    def start(self, what: str, run: Callable[[], None]) -> None:
        """Run a receiver in a thread of its own until it returns; `what` names it."""

    def on_stop(self, stop: Callable[[], None]) -> None:
        """Have something called when the stream stops taking messages. It must not wait."""

    @property
    def stopping(self) -> bool:
        """Whether the stream has stopped taking messages."""

    def wait(self, seconds: float) -> bool:
        """Wait, but no longer than until the stream stops; return whether it has."""

    def log(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Log a line."""

    def count(self, name: str, by: int = 1, **labels: str) -> None:
        """Add to a counter."""

    def report_waiting(self, what: str) -> None:
        """Say in the stream's state what the input waits for, such as a server; "" for nothing."""

    def read_stdin(self, size: int) -> bytes:
        """Read up to so many bytes of the standard input, b"" at its end."""


class Branch(NamedTuple):
    """A room, and what stops all that was begun in it."""

    room: Room
    stop: Callable[[], None]


@runtime_checkable
class Opening(Protocol):
    """A built input that must be opened on the driver before it can be read."""

    def opened(self, room: Room) -> Replayable:
        """Open it, and begin to receive what it is sent.

        Raises:
            StreamerError: what it needs is not there; the text says what to do.
        """


def opened(source: Any, room: Room) -> Replayable:
    """Open a built input, or return it as it is when it needs no opening."""
    if not isinstance(source, Opening):
        found: Replayable = source
        return found
    with stream_limits(room.limits):
        return source.opened(room)
