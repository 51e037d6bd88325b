"""What was done in a micro-batch and when, for traces: tasks say it of themselves.

A task runs thousands of messages through each processor. What one processor did in it is one span,
as long as all its calls together; it begins where the one before it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from streamer.message import Batch, Execution
from streamer.source.replayable import Chunk, Raws

PARENT: Final = "traceparent"
"""The metadata by which a message names the span that it comes from, as W3C has it."""

_MOST_LINKS: Final = 32


class Span(NamedTuple):
    """Something that was done.

    Attributes:
        name: what: `input`, `buffer`, `processor`, `output`.
        label: the component's label.
        path: the component's path.
        began: Unix ns.
        ended: Unix ns.
        told: attributes.
    """

    name: str
    label: str
    path: str
    began: int
    ended: int
    told: Mapping[str, Any]


class TaskSpan(NamedTuple):
    """The span of a task, those of its processors, and the spans that its messages come from."""

    span: Span
    inside: list[Span]
    links: list[str]

    @classmethod
    def read(cls, said: Any) -> TaskSpan:
        """Return what a task has said as JSON."""
        span, inside, links = said
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
        told: attributes.
    """

    number: int
    began: int
    ended: int
    tasks: list[TaskSpan]
    outputs: list[Span]
    told: Mapping[str, Any]


class Tracing:
    """Notes what one task does."""

    def __init__(self, name: str, place: Mapping[str, str], now: int) -> None:
        """Begin a span of a component, at a time in Unix ns."""
        self._name = name
        self._place = place
        self._began = now
        self._links: dict[str, None] = {}

    def heed(self, chunk: Chunk) -> None:
        """Look at messages that came in: which spans do they come from?"""
        if len(self._links) >= _MOST_LINKS:
            return
        metas: Iterable[Mapping[str, Any]]
        if isinstance(chunk, Raws):
            metas = (chunk.meta,) if chunk.raws else ()
        else:
            batches: list[Batch] = chunk
            metas = (message.meta for message in chain.from_iterable(batches))
        found = (meta[PARENT] for meta in metas if PARENT in meta)
        for parent in islice(found, _MOST_LINKS - len(self._links)):
            self._links[str(parent)] = None

    def said(self, ex: Execution, now: int) -> list[Any]:
        """Return the spans and links, for JSON; see `TaskSpan.read`."""
        label, path = self._place["label"], self._place["path"]
        spans: list[list[Any]] = []
        at, messages = self._began, 0
        for (kind, name, where), tally in ex.tallies.items():
            if kind == "processor" and tally.batches_received:
                told = {"messages": tally.received, "batches": tally.batches_received}
                until = min(at + tally.elapsed, now)
                spans.append([kind, name, where, at, until, told])
                at = until
            if where == path:
                messages = tally.sent or tally.received
        span = [self._name, label, path, self._began, now, {"messages": messages}]
        return [span, spans, [*self._links]]
