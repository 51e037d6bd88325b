"""Context of an input when its stream starts: threads, directories and claims of the driver.

An input's `build` only reads its fields. One that has to poll or to listen before it can be read
is an `OpenableInput`: `open` is called once for every start of the program, on the driver, and
returns the source that is read from then on. Three kinds of inputs need it:

- one that must see the same again after a restart (the files that a glob matched):
  `context.load_state()` is what an earlier start saved with `context.save_state(…)`;
- one that cannot be read twice (a pipe, a socket, HTTP): it keeps what comes in a spool under
  `context.directory`, by a receiver that it starts with `context.start`, and is read from there
  (see `streamer.connectors.spool`; `streamer.connectors.spool.byte_spool` keeps plain bytes);
- one that holds others opens them with `context.child(name)`.

An input that reads a bounded answer (a query's rows) needs none of it when it can repeat the query
and get the same; otherwise it spools the rows like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from streamer.core.limits import Limits, stream_limits
from streamer.core.message import Message
from streamer.sdk.input.replayable import ReplayableSource
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.sdk.sync_response import PendingRequests


class InputContext(Protocol):
    """The driver's context for one input while it is opened, and while its receiver runs."""

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
        """The limits of one message; they hold in what `start` runs."""

    @property
    def is_local(self) -> bool:
        """Whether the workers see this machine's files."""

    @property
    def pending_requests(self) -> PendingRequests | None:
        """The pending requests of the stream; None when none of its components answers any."""

    @property
    def endpoints(self) -> Any:
        """The stream's HTTP server, which takes more paths; None when there is none."""

    def load_state(self) -> Any:
        """Return what an earlier start remembered; None when there was none."""

    def save_state(self, state: Any) -> None:
        """Keep a JSON value for the next start."""

    def open_spool(self) -> MessageSpool:
        """Open the place on the driver's disk for messages that cannot be read twice."""

    def child(self, name: str) -> InputContext:
        """Return the context of an input within this one."""

    def stoppable_child(self, name: str) -> StoppableContext:
        """Return the context of an input within this one that can be stopped by itself."""

    def read_config(self, kind: Kind, text: str) -> ParsedComponent:
        """Read the config of a component that is added while the stream runs.

        Raises:
            StreamerError: it is not right.
        """

    def redacted_config(self, component: ParsedComponent) -> Mapping[str, Any]:
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

    def wake_planner(self) -> None:
        """Have the planner poll now: there is more to read. It is cheap, from any thread."""

    def log(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Log a line."""

    def count(self, name: str, by: int = 1, **labels: str) -> None:
        """Add to a counter."""

    def report_waiting(self, what: str) -> None:
        """Show in the stream's state what the input waits for, such as a server; "" for nothing."""

    def read_stdin(self, size: int) -> bytes:
        """Read up to so many bytes of the standard input, b"" at its end."""


class MessageSpool(Protocol):
    """The messages of one input on the driver's disk, from where the stream reads them."""

    @property
    def source(self) -> ReplayableSource:
        """The source of what is on the disk."""

    @property
    def mark(self) -> Any:
        """The newest mark on the disk, of this start or an earlier one; None for none."""

    @property
    def was_ended(self) -> bool:
        """Whether an earlier start has closed it: nothing more comes."""

    def write(self, messages: Sequence[Message], mark: Any, as_batch: bool) -> None:
        """Return when messages are safe; see `MessageReceiver.put`."""

    def close(self) -> None:
        """End the spool: nothing more comes."""


class StoppableContext(NamedTuple):
    """A context, and the function that stops all that was begun in it."""

    context: InputContext
    stop: Callable[[], None]


@runtime_checkable
class OpenableInput(Protocol):
    """A built input that must be opened on the driver before it can be read."""

    def open(self, context: InputContext) -> ReplayableSource:
        """Open the input, and begin to receive.

        Raises:
            StreamerError: what it needs is not there; the text says what to do.
        """


@runtime_checkable
class DriverReadable(Protocol):
    """A built input that workers read, and of which the driver reads another form."""

    def for_driver(self) -> OpenableInput:
        """Return the input for another one that reads it on the driver."""


def open_input(source: Any, context: InputContext) -> ReplayableSource:
    """Open a built input, or return it as it is when it needs no opening."""
    if not isinstance(source, OpenableInput):
        opened_source: ReplayableSource = source
        return opened_source
    with stream_limits(context.limits):
        return source.open(context)
