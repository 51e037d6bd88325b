"""`parallel`: runs processors on each message of a batch, on many messages at once.

It "applies a list of child processors to messages of a batch as though they were each a batch of
one message, but where each message is processed in parallel". What comes out is one batch, in the
order in which the messages came in.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.processing import Processor, run
from streamer.sdk.spec import (
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedComponent,
    ParsedFields,
    Spec,
)
from streamer.sdk.thread_pool import MAX_THREADS, ComponentPool

CAP: Final = "cap"
PROCESSORS: Final = "processors"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "parallel",
    "Runs processors on each message of a batch separately, on many messages in parallel.",
    description=(
        "It makes processors faster that wait for a response, such as `http`. Processors that "
        "compute gain nothing, because a worker computes one thing at a time. Messages in "
        "batches of one, as from most inputs, are not processed in parallel."
    ),
    fields=(
        Field(
            CAP,
            "int",
            f"How many messages are worked on at once, at most; 0 for as many as there are, up to "
            f"{MAX_THREADS}.",
            default=0,
            check=lambda cap: None if cap >= 0 else f"is {cap}; expected 0 (no limit) or more",
        ),
        Field(PROCESSORS, "processor", "Processors to run on each message.", shape="array"),
    ),
    examples=(
        Example(
            "Ten requests at once",
            "pipeline:\n"
            "  processors:\n"
            "    - parallel:\n"
            "        cap: 10\n"
            "        processors:\n"
            "          - mapping: root = this\n",
        ),
    ),
    categories=("Composition",),
    limits="256 messages at once; helps what waits, not what computes",
)


class ParallelProcessor:
    """Runs children over batches of one, in threads that have children of their own."""

    def __init__(self, pool: ComponentPool[Sequence[Processor]]) -> None:
        """Take the threads."""
        self._pool = pool

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return all that comes out as one batch, in order."""
        made = [message for one in self._pool.map(_process_one, batch, ex) for message in one]
        return [made] if made else []


def _process_one(children: Sequence[Processor], message: Message, ex: Execution) -> Batch:
    return [made for batch in run(children, [[message]], ex) for made in batch]


def build_isolated_children(
    context: BuildContext, components: Sequence[ParsedComponent]
) -> Sequence[Processor]:
    """Build children that no other thread uses."""
    return context.isolated().build_all(components)


def build(parsed: ParsedFields, context: BuildContext) -> ParallelProcessor:
    """Prepare to build the children once for each thread."""
    return ParallelProcessor(
        ComponentPool(partial(build_isolated_children, context, parsed[PROCESSORS]), parsed[CAP])
    )
