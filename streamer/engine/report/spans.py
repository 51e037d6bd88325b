"""Spans of a micro-batch for traces, as tasks measure them.

A task runs thousands of messages through each processor. What one processor did in it is one span,
as long as all its calls together; it begins where the one before it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.input.replayable import Chunk, RawMessages

TRACE_PARENT: Final = "traceparent"
"""The metadata by which a message names the span that it comes from, as W3C has it."""

_MAX_LINKS: Final = 32


class Span(NamedTuple):
    """Something that was done.

    Attributes:
        name: what: `input`, `buffer`, `processor`, `output`.
        label: the component's label.
        path: the component's path.
        began: Unix ns.
        ended: Unix ns.
        attributes: attributes.
    """

    name: str
    label: str
    path: str
    began: int
    ended: int
    attributes: Mapping[str, Any]


class TaskSpan(NamedTuple):
    """The span of a task, those of its processors, and the spans that its messages come from."""

    span: Span
    inside: list[Span]
    links: list[str]

    @classmethod
    def from_json(cls, report: Any) -> TaskSpan:
        """Parse a task's span from its JSON."""
        span, inside, links = report
        return cls(Span(*span), [Span(*one) for one in inside], links)


@dataclass(frozen=True, slots=True)
class BatchTrace:
    """A micro-batch that was delivered.

    Attributes:
        number: the micro-batch's.
        began: Unix ns.
        ended: Unix ns.
        tasks: what its tasks did.
        outputs: what the driver wrote.
        attributes: attributes.
    """

    number: int
    began: int
    ended: int
    tasks: list[TaskSpan]
    outputs: list[Span]
    attributes: Mapping[str, Any]


class TaskTrace:
    """Notes what one task does."""

    def __init__(self, name: str, place: Mapping[str, str], now: int) -> None:
        """Begin a span of a component, at a time in Unix ns."""
        self._name = name
        self._place = place
        self._began = now
        self._links: dict[str, None] = {}

    def add_links(self, chunk: Chunk) -> None:
        """Add the spans that incoming messages name in their metadata."""
        if len(self._links) >= _MAX_LINKS:
            return
        metas: Iterable[Mapping[str, Any]]
        if isinstance(chunk, RawMessages):
            metas = (chunk.meta,) if chunk.raws else ()
        else:
            batches: list[Batch] = chunk
            metas = (message.meta for message in chain.from_iterable(batches))
        parents = (meta[TRACE_PARENT] for meta in metas if TRACE_PARENT in meta)
        for parent in islice(parents, _MAX_LINKS - len(self._links)):
            self._links[str(parent)] = None

    def follow(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Add the links of chunks as they are taken."""
        for chunk in chunks:
            self.add_links(chunk)
            yield chunk

    def to_json(self, ex: Execution, now: int) -> list[Any]:
        """Return the spans and links, for JSON; see `TaskSpan.read`."""
        label, path = self._place["label"], self._place["path"]
        spans: list[list[Any]] = []
        at, messages = self._began, 0
        for (kind, name, where), tally in ex.component_stats.items():
            if kind == "processor" and tally.batches_received:
                attributes = {"messages": tally.received, "batches": tally.batches_received}
                until = min(at + tally.elapsed, now)
                spans.append([kind, name, where, at, until, attributes])
                at = until
            if where == path:
                messages = tally.sent or tally.received
        span = [self._name, label, path, self._began, now, {"messages": messages}]
        return [span, spans, [*self._links]]
