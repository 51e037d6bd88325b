"""What comes out of a micro-batch, and what is given back, found as its keys are gone through."""

from __future__ import annotations

from typing import Final

from streamer.window.emission import WindowReason
from streamer.window.keyed.groups import Snapshot
from streamer.window.keyed.ledger import Ledger
from streamer.window.keyed.moments import Moment
from streamer.window.keyed.outputs import AT_ONCE, Output
from streamer.window.keyed.ranges import Range
from streamer.window.keyed.rules import Rules
from streamer.window.keyed.state import FOREVER, KeyState, Part, Window

_KEYS_TOGETHER: Final = 50_000


class Pending:
    """What is put off to the end, when it can be done for many keys together.

    Attributes:
        since: the first arrival number of the micro-batch.
        outputs: batches to be.
        moments: those of folded windows at single events.
        releases: by key, whose messages are given back when all has come out.
        lapsed: the same for messages of before, of keys that have begun afresh.
        spared: by key, the arrival numbers of messages that are not given back.
        incomplete: by key, the arrivals of messages that no count window will hold.
    """

    def __init__(self, rules: Rules, forwards: bool, since: int, until: int) -> None:
        """Begin.

        Args:
            rules: of the kind of windows.
            forwards: messages are given back as soon as they have come out.
            since: the first arrival number of the micro-batch.
            until: the first one of the next.
        """
        self._rules = rules
        self._forwards = forwards
        self.since = since
        self._until = until
        self.outputs: list[Output] = []
        self.moments: list[Moment] = []
        self.releases: dict[bytes, list[Range]] = {}
        self.lapsed: dict[bytes, list[Range]] = {}
        self.spared: dict[bytes, set[int]] = {}
        self.incomplete: dict[bytes, list[int]] = {}

    def come_out(
        self,
        key: bytes,
        state: KeyState,
        windows: list[Window],
        reason: WindowReason,
        arrival: int,
    ) -> None:
        """Let windows come out that an event has changed, with what they hold by then."""
        for window in windows:
            folded, end, first = window.folded, window.end, window.first
            if folded is not None:
                told = (folded, folded.states, folded.newest, window.count)
                self.moments.append((arrival, end, first, window.start, key, *told))
                continue
            place = (AT_ONCE, arrival, window.end, window.first, window.start)
            several = self._rules.joins and len(state.windows) > 1
            apart = state.apart(window, self.since) if several else ()
            # Where bounds come again: others may hold still what was in it before its key began
            # afresh.
            since = window.first if self._rules.remembers else None
            self.put_out(key, window, reason, place, arrival, since, apart=apart)

    def put_out(
        self,
        key: bytes,
        window: Window,
        reason: WindowReason,
        place: tuple[int, ...],
        until: int | None = None,
        since: int | None = None,
        gone: bool = False,
        apart: tuple[Part, ...] = (),
    ) -> None:
        """Let a window come out; see `outputs.Output`."""
        rules = self._rules
        low, high = rules.inside(window)
        start: int | None = window.start
        end: int | None = window.end
        if rules.timeless:
            start = end = None
        self.outputs.append(
            Output(
                key,
                low,
                high,
                start,
                end,
                reason,
                place,
                window.count,
                until,
                since,
                window.excluded,
                gone,
                (window.first, window.until(self.since)) if rules.joins else None,
                apart,
                Snapshot.of(window, self._until),
            )
        )

    def release(self, key: bytes, low: int, high: int, until: int = FOREVER) -> None:
        """Give back what lies between two times, both inclusive, when everything has come out.

        What arrived after `until` stays.
        """
        if not self._forwards:
            self.releases.setdefault(key, []).append((low, high, until))

    def give_back_lapsed(self, ledger: Ledger) -> int:
        """Give back messages of keys that have begun afresh; return how many there were."""
        return self._give_away(ledger, self.lapsed, self.since)

    def give_back(self, ledger: Ledger) -> int:
        """Give back what no window needs any more; return how many messages that were."""
        given_back = ledger.give_back_fresh() if self._forwards else 0
        given_back += self._give_away(ledger, self.releases)
        return given_back - sum(map(len, self.incomplete.values()))

    def _give_away(
        self, ledger: Ledger, ranges: dict[bytes, list[Range]], before: int | None = None
    ) -> int:
        keys, given_back = list(ranges), 0
        for first in range(0, len(keys), _KEYS_TOGETHER):
            some = {key: ranges[key] for key in keys[first : first + _KEYS_TOGETHER]}
            given_back += ledger.give_back(some, self.spared, before)
        return given_back
