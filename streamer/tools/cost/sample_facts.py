"""Facts about a sample: its rate by event times, its keys, and how they go on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.offline.window_simulator import EventTimeReader
from streamer.plan import Plan
from streamer.plan.buffer_chain import find_readers, plan_of_buffer
from streamer.sdk.processing import run
from streamer.tools.cost.measure import SampledInput

_MAX_UNSEEN: Final = 1e12


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """The keys of a sample.

    Attributes:
        seen: how many there are.
        total: how many there are at all, about, if the sample is typical.
        new_share: share of the keys that came in the second half of the sample only.
    """

    seen: int = 0
    total: float = 0.0
    new_share: float = 0.0

    def count_within(self, messages: float) -> float:
        """Return how many keys so many messages have, about."""
        if not self.total:
            return 1.0
        return self.total * -math.expm1(-messages / self.total)


@dataclass(frozen=True, slots=True)
class SampleFacts:
    """Facts about a sample.

    Attributes:
        rate: messages a second by their event times; 0 where they have none.
        span: from the first event time to the last one, ns.
        newest: the last event time, Unix ns; None where there is none.
        keys: the keys of the first buffer.
    """

    rate: float
    span: int
    newest: int | None
    keys: KeyFacts


def read_facts(plan: Plan, inputs: Sequence[SampledInput]) -> SampleFacts:
    """Read event times and keys of a sample.

    Args:
        plan: the stream's plan.
        inputs: the sample of each input. Their rates add up.
    """
    readers = find_readers(plan, None)
    first = plan_of_buffer(plan, readers[0]) if readers else plan
    times = EventTimeReader(first)
    ex = Execution(lambda: 0)
    rate, span = 0.0, 0
    newest: int | None = None
    keys: list[str] = []
    for one in inputs:
        processors = plan.context().build_all(one.component.processors)
        messages = [m for batch in run(processors, list(one.batches), ex) for m in batch]
        known = [at for at in (times.read(m, 0) for m in messages) if at is not None]
        if known:
            own = max(known) - min(known)
            span = max(span, own)
            rate += len(known) * SECOND / own if own else 0.0
            newest = max(newest or known[0], *known)
        keys += _read_keys(first, messages, ex)
    return SampleFacts(rate, span, newest, count_keys(keys))


def _read_keys(plan: Plan, messages: Iterable[Message], ex: Execution) -> list[str]:
    if plan.key is None:
        return []
    key = plan.key.compile()
    keys = []
    for message in messages:
        try:
            keys.append(repr(key.query([message], 0, ex)))
        except Exception:  # such a message is dropped, and has no key
            continue
    return keys


def count_keys(keys: Sequence[str]) -> KeyFacts:
    """Return how many keys there are, and how many there are likely to be in all.

    The total is Chao's estimate from the keys that were seen once and twice (A. Chao, 1984,
    "Nonparametric estimation of the number of classes in a population").

    >>> count_keys(["a", "b", "a", "b"])
    KeyFacts(seen=2, total=2.0, new_share=0.0)
    """
    if not keys:
        return KeyFacts()
    counts = Counter(keys)
    early = len(set(keys[: len(keys) // 2]))
    once = sum(1 for one in counts.values() if one == 1)
    twice = sum(1 for one in counts.values() if one == 2)
    unseen = once * (once - 1) / (2 * (twice + 1))
    total = min(len(counts) + unseen, _MAX_UNSEEN)
    return KeyFacts(len(counts), float(total), 1 - early / len(counts))
