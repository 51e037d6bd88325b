"""The message: bytes plus metadata, parsed lazily, and what a run lends to its components."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from streamer.core.component_stats import ComponentStats
from streamer.core.custom_metrics import CustomMetrics
from streamer.core.errors import MessageError
from streamer.core.value import dump_json, parse_json

UNPARSED: Final = object()
"""Stands where a message's document will be once it is asked for."""

NO_META: Final[Mapping[str, Any]] = {}


class Failure(str):
    """The text of an error, and the component that it comes from.

    Attributes:
        name: the component's type (`mapping`).
        label: its label, or an empty string.
        path: where it stands in the config (`pipeline.processors.0`).
    """

    __slots__ = ("name", "label", "path")
    name: str
    label: str
    path: str

    def __new__(cls, text: str, name: str, label: str = "", path: str = "") -> Failure:
        """Make a text that knows its component."""
        self = super().__new__(cls, text)
        self.name, self.label, self.path = name, label, path
        return self

    def __reduce__(self) -> tuple[type[Failure], tuple[str, str, str, str]]:
        return (Failure, (str(self), self.name, self.label, self.path))


class Message:
    """A payload (bytes, or the value that they parse to), metadata, and an error mark.

    A document and a metadata mapping are never changed in place once they are in a message: both
    are shared between copies, between the messages of one source and between windows. A change
    puts a new one there. This is what makes `copy` cheap.

    Attributes:
        meta: metadata by key; values are Bloblang values. Shared, never mutated.
        error: the text of the failure that marks this message, or None; a `Failure` when it is
            known which component it comes from.
    """

    __slots__ = ("_raw", "_doc", "meta", "error")

    def __init__(
        self,
        raw: bytes | None,
        meta: Mapping[str, Any] = NO_META,
        error: str | None = None,
        doc: Any = UNPARSED,
    ) -> None:
        self._raw = raw
        self._doc = doc
        self.meta = meta
        self.error = error

    @classmethod
    def from_value(cls, doc: Any, meta: Mapping[str, Any] = NO_META) -> Message:
        """Make a message whose payload is the JSON of a value.

        Example:
            >>> Message.from_value({"id": 1}).with_added_metadata(lane="3")
            Message(b'{"id":1}', meta={'lane': '3'}, error=None)
        """
        return cls(None, meta, None, doc)

    @property
    def raw(self) -> bytes:
        """The payload as bytes; a value is serialised the first time."""
        if self._raw is None:
            self._raw = dump_json(self._doc)
        return self._raw

    @property
    def doc(self) -> Any:
        """The payload as a parsed value. It is shared: don't change it.

        Raises:
            MessageError: the payload is not JSON.
        """
        if self._doc is UNPARSED:
            try:
                self._doc = parse_json(self._raw or b"")
            except ValueError as e:
                raise MessageError(f"failed to parse message as JSON: {e}") from None
        return self._doc

    def has_doc(self) -> bool:
        """Whether the parsed value is at hand already."""
        return self._doc is not UNPARSED

    def copy(self) -> Message:
        """Return a message that shares payload and metadata with this one."""
        return Message(self._raw, self.meta, self.error, self._doc)

    def with_bytes(self, raw: bytes) -> Message:
        """Return this message with another payload."""
        return Message(raw, self.meta, self.error)

    def with_doc(self, doc: Any) -> Message:
        """Return this message with another payload, given as a value."""
        return Message(None, self.meta, self.error, doc)

    def with_added_metadata(self, **entries: Any) -> Message:
        """Return this message with more metadata."""
        return Message(self._raw, {**self.meta, **entries}, self.error, self._doc)

    def with_metadata(self, meta: Mapping[str, Any]) -> Message:
        """Return this message with other metadata."""
        return Message(self._raw, meta, self.error, self._doc)

    def with_error(self, error: str | None) -> Message:
        """Return this message marked as failed, or with its mark removed."""
        return Message(self._raw, self.meta, error, self._doc)

    def __repr__(self) -> str:
        return f"Message({self.raw!r}, meta={dict(self.meta)!r}, error={self.error!r})"


class IndexedMessage(Message):
    """A message that knows where it stood in a batch that a component has taken apart.

    What becomes of it knows so too, as long as it is made by these methods or by a mapping: so the
    parts can be put together in order again, as Benthos does it.

    Attributes:
        place: where it stood, the innermost component's place last.
    """

    __slots__ = ("place",)
    place: tuple[int, ...]

    @classmethod
    def at_index(cls, message: Message, number: int) -> IndexedMessage:
        """Return a message that knows its place."""
        around = message.place if isinstance(message, IndexedMessage) else ()
        return cls.with_place(message, (*around, number))

    @classmethod
    def with_place(cls, message: Message, place: tuple[int, ...]) -> IndexedMessage:
        """Return a message as one of that place."""
        self = cls(message._raw, message.meta, message.error, message._doc)
        self.place = place
        return self

    def without_innermost_place(self) -> Message:
        """Return the message without its innermost place."""
        if len(self.place) > 1:
            return IndexedMessage.with_place(self, self.place[:-1])
        return Message(self._raw, self.meta, self.error, self._doc)

    def copy(self) -> Message:
        """Return a message that shares payload and metadata with this one."""
        return IndexedMessage.with_place(super().copy(), self.place)

    def with_bytes(self, raw: bytes) -> Message:
        """Return this message with another payload."""
        return IndexedMessage.with_place(super().with_bytes(raw), self.place)

    def with_doc(self, doc: Any) -> Message:
        """Return this message with another payload, given as a value."""
        return IndexedMessage.with_place(super().with_doc(doc), self.place)

    def with_added_metadata(self, **entries: Any) -> Message:
        """Return this message with more metadata."""
        return IndexedMessage.with_place(super().with_added_metadata(**entries), self.place)

    def with_metadata(self, meta: Mapping[str, Any]) -> Message:
        """Return this message with other metadata."""
        return IndexedMessage.with_place(super().with_metadata(meta), self.place)

    def with_error(self, error: str | None) -> Message:
        """Return this message marked as failed, or with its mark removed."""
        return IndexedMessage.with_place(super().with_error(error), self.place)


def keep_place(message: Message, result: Message | None) -> Message | None:
    """Return what a message has become, at its place if it has one."""
    if result is None or not isinstance(message, IndexedMessage):
        return result
    return IndexedMessage.with_place(result, message.place)


Batch = list[Message]


class MicroBatch(NamedTuple):
    """The part of a micro-batch that a run is of: the same when it comes again after a failure.

    Attributes:
        stream: names the checkpoint, and so the stream for as long as it goes on.
        number: the micro-batch's, which grows.
        part: names the shard, or the piece of the input, among those of the micro-batch.
    """

    stream: str
    number: int
    part: str


class Execution:
    """The execution that a component runs in: the time, a log and counters.

    A worker makes one for every task of a micro-batch; a test makes one with a scripted clock.

    Attributes:
        now: the clock, nanoseconds since the Unix epoch.
        log: called with level (`ERROR`, `WARN`, `INFO`, `DEBUG`, `TRACE`), text and fields.
        count: adds to a counter, by its name and labels: `count("window_dropped", 3, reason="x")`.
        strict: whether a message that has failed skips the processors that follow, as
            `error_handling.strict` wants it.
        elapsed: a clock for how long something takes, nanoseconds.
        sleep: returns after so many nanoseconds.
        report_wait: called like `log` with what a task waits for; a line reaches the log at once.
        counters: the state of Bloblang's `count()` and `counter()` functions.
        counter_bounds: min and max of each call of `counter()`, as its first message had them.
        component_stats: what components have done, by what their metrics' names begin with, and by
            label and path.
        custom_metrics: what the config itself counts, sets and times.
        rejected: what was taken out of the run, since an output has refused it for what it is: see
            `sending.rejection.RejectedBatch`.
        origins: what the input gave, by the places of the messages that it has become; None where
            nobody asks.
        answers: the requests that wait for the messages of this run, and what answers each.
        refusals: why a request that waits has been refused, by its name.
        micro_batch: which part of which micro-batch it is; None outside of a stream.
        sampler: takes samples of messages, see `sampling`; None where nobody watches.
        read_counter: counts what the task reads of its input, see `engine.reading`; None where
            nobody asks.
        wait_budget: how long outputs wait before they hand over what is unsent, see
            `sending.wait_budget`; None where they wait for ever.
        calls: counts the calls of processors, see `pipeline.crashes`; None unless a worker has
            died.
        crashes: knows messages of the piece that end a worker; None unless one has died.
    """

    __slots__ = (
        *("now", "log", "count", "strict", "elapsed", "sleep", "report_wait"),
        *("counters", "counter_bounds", "component_stats", "custom_metrics", "rejected", "answers"),
        *("origins", "refusals", "micro_batch", "sampler", "read_counter", "wait_budget"),
        *("calls", "crashes"),
    )

    def __init__(
        self,
        now: Callable[[], int],
        log: Callable[[str, str, Mapping[str, Any]], None] = lambda level, text, fields: None,
        count: Callable[..., None] = lambda name, by=1, **labels: None,
        *,
        strict: bool = False,
        elapsed: Callable[[], int] = time.perf_counter_ns,
        sleep: Callable[[int], None] = lambda ns: time.sleep(ns / 1e9),
        report_wait: Callable[[str, str, Mapping[str, Any]], None] = lambda level, text, fields: (
            None
        ),
    ) -> None:
        self.now = now
        self.log = log
        self.count = count
        self.strict = strict
        self.elapsed = elapsed
        self.sleep = sleep
        self.report_wait = report_wait
        self.counters: dict[str, int] = {}
        self.counter_bounds: dict[str, tuple[int, int]] = {}
        self.component_stats: dict[tuple[str, str, str], ComponentStats] = {}
        self.custom_metrics = CustomMetrics()
        self.rejected: list[Any] = []
        self.origins: dict[int, Batch] | None = None
        self.answers: dict[str, Batch] = {}
        self.refusals: dict[str, str] = {}
        self.micro_batch: MicroBatch | None = None
        self.sampler: Any = None
        self.read_counter: Any = None
        self.wait_budget: Any = None
        self.calls: Any = None
        self.crashes: Any = None

    def stats_of(self, key: tuple[str, str, str]) -> ComponentStats:
        """Return what a component has done in this run so far, to be added to."""
        stats = self.component_stats.get(key)
        if stats is None:
            stats = self.component_stats[key] = ComponentStats()
        return stats
