"""Streams that keep more than open windows, and what an oracle makes of events.

What lies in the checkpoint beside the messages of windows: windows behind windows, values by key,
the latest of each id, and which keys have windows without messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tests.proof.generator import GRACE, SECOND, SIZE
from tests.proof.kinds import (
    BY_KEY,
    MAPPINGS,
    Cuts,
    Hopping,
    Places,
    Sent,
    Sessions,
    Windows,
    events_of,
)
from tests.proof.oracle import Expected
from tests.window.oracle import empty, events
from tests.window.oracle.hopping import Hopping as Grid


@dataclass(frozen=True)
class Behind(Windows):
    """Tumbling windows, in seconds, of the results of others, which belong to their last instant.

    Attributes:
        size: of the windows behind.
        before: the windows that they stand behind.
    """

    named: ClassVar[str] = BY_KEY
    drops: ClassVar[bool] = True
    ids: ClassVar[str] = 'json("ids").from_all().flatten()'
    size: int = 7
    before: Hopping | Sessions = Sessions()

    @property
    def buffer(self) -> dict[str, Any]:
        """See `Windows`."""
        fields = {"key_mapping": MAPPINGS["key_mapping"], "size": f"{self.size}s"}
        return {"tumbling_window": fields}

    @property
    def first(self) -> dict[str, Any]:
        """See `Windows`."""
        return self.before.buffer

    def replay(self, sent: Sent, cuts: Cuts, gone: Places = ()) -> Expected:
        """See `Windows`."""
        found, size = self.before.replay(sent, cuts, gone), self.size * SECOND
        closed = found.closed
        found.closed = {}
        # Its end belongs to a session, and not to a window of a grid.
        behind = 0 if isinstance(self.before, Sessions) else 1
        for (_, end, key), parts in closed.items():
            start = (end - behind) // size * size
            # The order is kept in each of the results; which of them is first, nobody promises.
            found.closed.setdefault((start, start + size, key), []).extend(parts)
        return found


@dataclass(frozen=True)
class Kept(Windows):
    """`keyed_state`: duplicates are dropped, those that pass counted, more than `most` are marked.

    Attributes:
        ids_of_key: how many ids a key has.
        remembered: how long an id is, s.
        most: messages of a key that pass in a `period`.
        period: in seconds.
    """

    named: ClassVar[str] = "this.named"
    drops: ClassVar[bool] = False
    ids: ClassVar[str] = "[ this.before, this.id ]"
    whole: ClassVar[bool] = False
    steps: ClassVar[Sequence[Mapping[str, Any]]] = (
        {"label": "once", "deduplicate": {"key": "${! this.id % 50 }", "ttl": "3s"}},
        {"label": "limit", "throttle": {"period": "1s", "max": "10", "overflow": "mark"}},
        {
            "label": "count",
            "mapping": "root = this\n"
            'root.before = lag(this.id, 1, -1)\nlet n = accumulate("n", 0, n -> n + 1)\n'
            'let marked = if @throttle_exceeded == null { "" } else { "marked" }\n'
            'root.named = this.key + "/" + $n.string() + $marked',
        },
    )
    ids_of_key: int = 50
    remembered: int = 3
    most: int = 10
    period: int = 1

    @property
    def buffer(self) -> dict[str, Any]:
        """See `Windows`."""
        return {"keyed_state": {**MAPPINGS}}

    def replay(self, sent: Sent, cuts: Cuts, gone: Places = ()) -> Expected:
        """See `Windows`."""
        found, clock, keys = Expected(), 0, dict[str, _Key]()
        for _, inside in events_of(sent, cuts, gone):
            for _, one in inside:
                if one.at is None:
                    found.dropped[one.id] = "timestamp"
                    continue
                clock, key = max(clock, one.at), keys.setdefault(one.key, _Key())
                part = one.id % self.ids_of_key
                if key.seen.get(part, clock) > clock:
                    continue
                key.seen[part] = clock + self.remembered * SECOND
                if key.begun is None or clock >= key.begun + self.period * SECOND:
                    key.begun, key.passed = clock, 0
                key.passed += 1
                key.count += 1
                marked = "marked" if key.passed > self.most else ""
                found.closed[0, 0, f"{one.key}/{key.count}{marked}"] = [[key.last, one.id]]
                key.last = one.id
        return found


@dataclass
class _Key:
    """What is kept of a key: until when ids are remembered, a period, and what has passed."""

    seen: dict[int, int] = field(default_factory=dict)
    begun: int | None = None
    passed: int = 0
    count: int = 0
    last: int = -1


@dataclass(frozen=True)
class Latest(Windows):
    """`global_window`: the latest message of each id, after every micro-batch that changes it.

    Attributes:
        ids_of_key: how many ids a key has.
    """

    named: ClassVar[str] = BY_KEY + ' + "/" + json("id").from_all().index(-1).string()'
    drops: ClassVar[bool] = False
    late: ClassVar[bool] = False
    ids_of_key: int = 20

    @property
    def buffer(self) -> dict[str, Any]:
        """See `Windows`."""
        fields = {**MAPPINGS, "latest_by": f"root = this.id % {self.ids_of_key}"}
        return {"global_window": fields}

    def replay(self, sent: Sent, cuts: Cuts, gone: Places = ()) -> Expected:
        """See `Windows`."""
        found, keys = Expected(), dict[str, dict[int, int]]()
        for _, inside in events_of(sent, cuts, gone):
            changed = set()
            for _, one in inside:
                if one.at is None:
                    found.dropped[one.id] = "timestamp"
                    continue
                ids = keys.setdefault(one.key, {})
                ids.pop(one.id % self.ids_of_key, None)
                ids[one.id % self.ids_of_key] = one.id
                changed.add(one.key)
            for key in changed:
                now = list(keys[key].values())
                found.closed[0, 0, f"{key}/{now[-1]}"] = [now]
        held = [one for ids in keys.values() for one in ids.values()]
        found.open[0, 0, "held"] = {0: held}
        return found


@dataclass(frozen=True)
class Emptied(Windows):
    """Tumbling windows of which a key that was seen has some without messages; in seconds."""

    named: ClassVar[str] = BY_KEY
    drops: ClassVar[bool] = True
    size: int = SIZE // SECOND
    lateness: int = GRACE // SECOND
    silent: int = 4 * SIZE // SECOND

    @property
    def buffer(self) -> dict[str, Any]:
        """See `Windows`."""
        (fields,) = Hopping(self.size, self.size, self.lateness).buffer.values()
        without = {"emit": "keys_seen", "for": f"{self.silent}s"}
        return {"tumbling_window": {**fields, "empty_windows": without}}

    def replay(self, sent: Sent, cuts: Cuts, gone: Places = ()) -> Expected:
        """See `Windows`."""
        found = Hopping(self.size, self.size, self.lateness).replay(sent, cuts, gone)
        taken = [
            events.Event(str(one.id), one.at, one.key)
            for _, inside in events_of(sent, cuts, gone)
            for _, one in inside
            if one.id not in found.dropped
        ]
        rules = Grid(keyed=True, size=self.size * SECOND)
        without = empty.Empty(duration=self.silent * SECOND)
        clock = max((one.time for one in taken if isinstance(one.time, int)), default=0)
        clock -= self.lateness * SECOND
        for key, start, end, ids, _ in empty.windows(rules, without, taken, clock):
            if not ids:
                found.closed[start, end, key] = []
        return found
