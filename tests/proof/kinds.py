"""The windows of a stream under test: as its config has them, and what an oracle makes of events.

Tumbling and hopping ones have the oracle of this proof; the other kinds have those that the rules
of windows were written down in for the property tests, which share nothing with the product either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from tests.proof import oracle
from tests.proof.generator import GRACE, SECOND, SIZE, Event
from tests.proof.oracle import Expected, MicroBatch
from tests.window.oracle import events, system
from tests.window.oracle.count import Count, CountOracle
from tests.window.oracle.play import Steps
from tests.window.oracle.session import Session, SessionOracle
from tests.window.oracle.sliding import Sliding
from tests.window.oracle.sliding_forward import ForwardOracle

Sent = Mapping[tuple[int, int], Event]
Cuts = Sequence[MicroBatch]
Places = Collection[tuple[int, int]]


class Windows(Protocol):
    """Windows of one kind.

    Attributes:
        named: a mapping's expression for what tells windows apart, beside their bounds.
        drops: whether there are events that they do not take.
        ids: a mapping's expression for the ids of the events in a window.
        late: whether they have a `late_output`.
        whole: whether a batch is a window; else each message of it is one.
        steps: processors before that mapping.
    """

    named: ClassVar[str]
    drops: ClassVar[bool]
    ids: ClassVar[str] = 'json("id").from_all()'
    late: ClassVar[bool] = True
    whole: ClassVar[bool] = True
    steps: ClassVar[Sequence[Mapping[str, Any]]] = ()

    @property
    def buffer(self) -> dict[str, Any]:
        """The stream's `buffer`, but for `late_output`."""

    @property
    def first(self) -> dict[str, Any] | None:
        """The buffer that these windows stand behind, likewise; None behind the input."""
        return None

    def replay(self, sent: Sent, cuts: Cuts, gone: Places = ()) -> Expected:
        """Say of every event where it must be; see `tests.proof.oracle.replay`."""


BY_KEY = 'meta("window_key")'
BY_LAST = ' + "/" + json("id").from_all().index(-1).string()'
MAPPINGS = {"timestamp_mapping": "root = this.at", "key_mapping": "root = this.key"}


@dataclass(frozen=True)
class Hopping(Windows):
    """Tumbling windows, or hopping ones when `every` is less than their size; in seconds."""

    named: ClassVar[str] = BY_KEY
    drops: ClassVar[bool] = True
    size: int = SIZE // SECOND
    every: int = SIZE // SECOND
    lateness: int = GRACE // SECOND

    @property
    def buffer(self) -> dict[str, Any]:
        """See `Windows`."""
        hops = self.every < self.size
        fields = {
            **MAPPINGS,
            "size": f"{self.size}s",
            **({"every": f"{self.every}s"} if hops else {}),
            "allowed_lateness": f"{self.lateness}s",
        }
        return {"hopping_window" if hops else "tumbling_window": fields}

    def replay(self, sent: Sent, cuts: Cuts, gone: Places = ()) -> Expected:
        """See `Windows`."""
        rules = oracle.Rules(self.size * SECOND, self.every * SECOND, self.lateness * SECOND)
        return oracle.replay(sent, cuts, rules, gone)


@dataclass(frozen=True)
class Sessions(Windows):
    """Sessions of a key that are cut at multiples of a longest duration; in seconds."""

    named: ClassVar[str] = BY_KEY
    drops: ClassVar[bool] = True
    gap: int = SIZE // SECOND
    longest: int = 4 * SIZE // SECOND
    lateness: int = GRACE // SECOND

    @property
    def buffer(self) -> dict[str, Any]:
        """See `Windows`."""
        fields = {"gap": f"{self.gap}s", "max_duration": f"{self.longest}s"}
        grace = {"allowed_lateness": f"{self.lateness}s"}
        return {"session_window": {**MAPPINGS, **fields, **grace}}

    def replay(self, sent: Sent, cuts: Cuts, gone: Places = ()) -> Expected:
        """See `Windows`."""
        rules = Session(
            keyed=True,
            gap=self.gap * SECOND,
            max_duration=self.longest * SECOND,
            allowed_lateness=self.lateness * SECOND,
        )
        return replayed(SessionOracle(rules), sent, cuts, gone)


@dataclass(frozen=True)
class Limited(Windows):
    """Sessions of a key of at most some events, and some seconds from their starts."""

    named: ClassVar[str] = BY_KEY + BY_LAST
    drops: ClassVar[bool] = True
    gap: int = SIZE // SECOND
    longest: int = 2 * SIZE // SECOND
    count: int = 20
    lateness: int = GRACE // SECOND

    @property
    def buffer(self) -> dict[str, Any]:
        """See `Windows`."""
        fields = {
            "gap": f"{self.gap}s",
            "max_duration": f"{self.longest}s",
            "max_duration_origin": "start",
            "max_count": self.count,
            "allowed_lateness": f"{self.lateness}s",
        }
        return {"session_window": {**MAPPINGS, **fields}}

    def replay(self, sent: Sent, cuts: Cuts, gone: Places = ()) -> Expected:
        """See `Windows`."""
        rules = Session(
            keyed=True,
            gap=self.gap * SECOND,
            max_duration=self.longest * SECOND,
            from_start=True,
            max_count=self.count,
            allowed_lateness=self.lateness * SECOND,
        )
        return replayed(SessionOracle(rules), sent, cuts, gone, by_last=True)


@dataclass(frozen=True)
class Following(Windows):
    """A sliding window from each event on; in seconds."""

    named: ClassVar[str] = BY_KEY
    drops: ClassVar[bool] = True
    size: int = SIZE // SECOND
    lateness: int = GRACE // SECOND

    @property
    def buffer(self) -> dict[str, Any]:
        """See `Windows`."""
        fields = {"size": f"{self.size}s", "mode": "forward"}
        grace = {"allowed_lateness": f"{self.lateness}s"}
        return {"sliding_window": {**MAPPINGS, **fields, **grace}}

    def replay(self, sent: Sent, cuts: Cuts, gone: Places = ()) -> Expected:
        """See `Windows`."""
        grace = self.lateness * SECOND
        rules = Sliding(keyed=True, size=self.size * SECOND, allowed_lateness=grace)
        return replayed(ForwardOracle(rules), sent, cuts, gone)


@dataclass(frozen=True)
class Counted(Windows):
    """The latest `count` events of a key, after every `every`."""

    named: ClassVar[str] = BY_KEY + BY_LAST
    drops: ClassVar[bool] = False
    count: int = 50
    every: int = 20

    @property
    def buffer(self) -> dict[str, Any]:
        """See `Windows`."""
        fields = {"count": self.count, "every": self.every}
        return {"count_window": {"key_mapping": MAPPINGS["key_mapping"], **fields}}

    def replay(self, sent: Sent, cuts: Cuts, gone: Places = ()) -> Expected:
        """See `Windows`."""
        counted = CountOracle(Count(count=self.count, every=self.every, keyed=True))
        return replayed(counted, sent, cuts, gone, by_last=True)


@dataclass(frozen=True)
class Walled(Windows):
    """`system_window`: windows that the clock on the wall closes; in seconds."""

    named: ClassVar[str] = '"all"'
    drops: ClassVar[bool] = True
    size: int = 4
    slide: int = 1
    lateness: int = 3

    @property
    def rules(self) -> system.Rules:
        """The same for the oracle."""
        return system.Rules(self.size * SECOND, self.slide * SECOND, 0, self.lateness * SECOND)

    @property
    def buffer(self) -> dict[str, Any]:
        """See `Windows`."""
        fields = {"size": f"{self.size}s", "slide": f"{self.slide}s"}
        grace = {"allowed_lateness": f"{self.lateness}s"}
        mapping = {"timestamp_mapping": MAPPINGS["timestamp_mapping"]}
        return {"system_window": {**mapping, **fields, **grace}}

    def over(self, at: int) -> int:
        """Return the time by which all windows of an event's time are over, ns."""
        return system.Oracle(self.rules).ends(at)[-1] + self.rules.lateness

    def replay(self, sent: Sent, cuts: Cuts, gone: Places = ()) -> Expected:
        """See `Windows`."""
        found, by, parted = Expected(), system.Oracle(self.rules), _parting(sent)
        for cut, inside in events_of(sent, cuts, gone):
            said = tuple(system.Said(str(one.id), one.at) for _, one in inside)
            # A window expires by the stream's own time alone: a machine that starts slowly, or is
            # busy with others, makes none of it.
            out = by.step(system.MicroBatch(cut.time, said, cut.start, cut.backlog, busy=cut.busy))
            for end, _, messages in out.windows:
                found.closed[0, end, "all"] = parted(name for name, _ in messages)
            found.dropped.update({int(name): reason for name, reason in out.dropped.items()})
        _hold(found, (held.name for held in by.held))
        return found


def replayed(by: Any, sent: Sent, cuts: Cuts, gone: Places, by_last: bool = False) -> Expected:
    """Let an oracle of event times, or of numbers, replay micro-batches.

    What several partitions bring in one micro-batch has no order, and may be in other windows in
    another: the topic of a stream with such windows has one.

    Args:
        by: the oracle.
        sent: the events, as for `Windows.replay`.
        cuts: likewise.
        gone: likewise.
        by_last: windows are told apart by their last event, too.
    """
    steps: Steps = by
    found, start, parted = Expected(), "", _parting(sent)
    for cut, inside in events_of(sent, cuts, gone):
        arrived = tuple(events.Event(str(one.id), one.at, one.key, at) for at, one in inside)
        again = start not in ("", cut.start)
        start = cut.start
        out = steps.step(events.MicroBatch(cut.time, arrived, again, cut.backlog))
        for batch in out.batches:
            key = f"{batch.window_key}/{batch.ids[-1]}" if by_last else str(batch.window_key)
            window = batch.start or 0, batch.end or 0, key
            if window in found.closed:
                raise AssertionError(f"the oracle itself gave {window} twice")
            found.closed[window] = parted(batch.ids)
        found.dropped.update({int(name): reason for name, reason in out.dropped})
    _hold(found, by.held())
    return found


def events_of(
    sent: Sent, cuts: Cuts, gone: Places
) -> Iterator[tuple[MicroBatch, list[tuple[int, Event]]]]:
    """Give each micro-batch with its events and their partitions, one partition after the other."""
    at: dict[int, int] = {}
    for cut in cuts:
        places = [
            (partition, offset)
            for partition in sorted(cut.ends)
            for offset in range(at.get(partition, 0), cut.ends[partition])
        ]
        at.update(cut.ends)
        yield cut, [(place[0], sent[place]) for place in places if place not in gone]


def _parting(sent: Sent) -> Callable[[Iterable[str]], list[list[int]]]:
    """Return what parts the ids of a window by partition; each part keeps its order."""
    partition = {str(one.id): place[0] for place, one in sent.items()}

    def parted(names: Iterable[str]) -> list[list[int]]:
        found: dict[int, list[int]] = {}
        for name in names:
            found.setdefault(partition[name], []).append(int(name))
        return list(found.values())

    return parted


def _hold(found: Expected, names: Iterable[str]) -> None:
    """Note what is still held, in whatever window."""
    if held := [int(name) for name in names]:
        found.open[0, 0, "held"] = {0: held}
