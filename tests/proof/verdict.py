"""Holds what came out against what the oracle says: nothing lost, nothing extra, no wrong place."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.proof.generator import Event
from tests.proof.oracle import Expected, Window


class ProofError(AssertionError):
    """A promise was broken; the text says which, and at which events."""


@dataclass(frozen=True)
class Output:
    """What a run has left behind.

    Attributes:
        windows: lines of the output: start, end, key and ids of a window.
        dropped: lines of `late_output`: reason and raw message.
        farewell: the program's last words: messages, dropped, held.
    """

    windows: Iterable[bytes]
    dropped: Iterable[bytes]
    farewell: Mapping[str, Any]


def compare(
    sent: Mapping[tuple[int, int], Event], expected: Expected, out: Output, repeats: bool
) -> str:
    """Return the figures of a run that kept its promise.

    Args:
        sent: the events.
        expected: what the oracle says.
        out: what came out.
        repeats: whether the sink may get the same window again; a dropped message goes to a file,
            once.

    Raises:
        ProofError: it did not.
    """
    again = _windows(expected, out, repeats)
    _dropped(sent, expected, out)
    reasons = Counter(expected.dropped.values())
    held = {one for parts in expected.open.values() for part in parts.values() for one in part}
    counted = {"messages": len(sent), "dropped": len(expected.dropped), "held": len(held)}
    told = {name: out.farewell.get(name, 0) for name in counted}
    if told != counted:
        raise ProofError(f"counters must be {counted}, the program says {told}")
    drops = ", ".join(f"{number:,} {reason}" for reason, number in sorted(reasons.items()))
    return f"{len(sent):,} events, {len(expected.closed):,} windows, dropped: {drops or 'none'}" + (
        f", {again} repeated" if repeats else ""
    )


def accounted(
    sent: set[int],
    windows: Sequence[bytes],
    lines: Sequence[Mapping[str, Any]],
    farewell: Mapping[str, Any],
) -> str:
    """Hold windows of the clock on the wall against what was sent; return the figures.

    Args:
        sent: ids of all events.
        windows: lines of the output: end and ids of a window.
        lines: of the program's log, which says of each window that has expired what it held.
        farewell: the program's last words: messages, dropped, held.

    Raises:
        ProofError: an event is in two windows, or in none and was not counted as expired.
    """
    found: dict[str, list[int]] = {}
    for line in windows:
        one = json.loads(line)
        if found.setdefault(one["end"], one["ids"]) != one["ids"]:
            raise ProofError(f"the window to {one['end']} came out with two different contents")
    came = [one for ids in found.values() for one in ids]
    if len(came) != len(set(came)) or not set(came) <= sent:
        raise ProofError("events are in more than one window, or were never sent")
    told = [line for line in lines if line.get("reason") == "expired"]
    gone = sum(line["messages"] for line in told)
    if not gone:
        raise ProofError("too little has happened: no window has expired")
    if len(came) + gone != len(sent):
        raise ProofError(f"{len(sent)} were sent, {len(came)} came out, {gone} expired by the log")
    counted = {"messages": len(sent), "dropped": gone, "held": 0}
    said = {name: farewell.get(name, 0) for name in counted}
    if said != counted:
        raise ProofError(f"counters must be {counted}, the program says {said}")
    ends = sum(line.get("windows", 1) for line in told)
    return f"{len(sent):,} events, {len(found)} windows, {gone:,} in {ends} expired ones"


def _windows(expected: Expected, out: Output, repeats: bool) -> int:
    found: dict[Window, list[int]] = {}
    again = 0
    for line in out.windows:
        one = json.loads(line)
        window = (nanoseconds(one["start"]), nanoseconds(one["end"]), str(one["key"]))
        if window in found:
            again += 1
            if not repeats:
                raise ProofError(f"{_named(window)} came out twice")
            if found[window] != one["ids"]:
                raise ProofError(f"{_named(window)} came out with two different contents")
        found[window] = one["ids"]
    for window, partitions in expected.closed.items():
        ids = found.pop(window, None)
        if ids is None:
            raise ProofError(f"{_named(window)} is lost, with {sum(map(len, partitions))} events")
        wanted = Counter(one for part in partitions for one in part)
        lost, extra = wanted - Counter(ids), Counter(ids) - wanted
        if lost or extra:
            said = f"lost {sorted(lost)[:5]}, too many {sorted(extra)[:5]}"
            raise ProofError(f"{_named(window)} has not its events: {said}")
        place = {one: at for at, one in enumerate(ids)}
        for part in partitions:
            if [place[one] for one in part] != sorted(place[one] for one in part):
                raise ProofError(f"{_named(window)} does not keep the order of arrival")
    if found:
        raise ProofError(f"{len(found)} windows too many, {_named(min(found))} the first")
    return again


def _dropped(sent: Mapping[tuple[int, int], Event], expected: Expected, out: Output) -> None:
    numbers = {one.raw: one.id for one in sent.values()}
    found: Counter[tuple[int, str]] = Counter()
    for line in out.dropped:
        one = json.loads(line)
        raw = base64.b64decode(one["raw"])
        if raw not in numbers:
            raise ProofError(f"late_output got what was never sent: {raw[:80]!r}")
        found[numbers[raw], one["reason"]] += 1
    wrong = set(found) ^ set(expected.dropped.items())
    if wrong:
        number, reason = min(wrong)
        must = expected.dropped.get(number, "taken")
        raise ProofError(
            f"{len(wrong)} differences in what was dropped; event {number} must be {must}, "
            f"{'it was' if (number, reason) in found else 'it was not'} dropped as {reason}"
        )
    again = found.total() - len(found)
    if again:
        raise ProofError(f"late_output got {again} messages twice")


def _named(window: Window) -> str:
    start, end, key = window
    if not end:  # of those that are counted
        return f"the window of {key}"
    if not start:
        return f"the window to {datetime.fromtimestamp(end / 10**9, UTC):%H:%M:%S} of {key}"
    begin = datetime.fromtimestamp(start // 10**9, UTC)
    return f"the window {begin:%H:%M:%S}+{(end - start) // 10**9}s of {key}"


def nanoseconds(text: str) -> int:
    """Read RFC 3339 in UTC to the nanosecond."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    seconds = int(datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp())
    return seconds * 10**9 + int(fraction.ljust(9, "0") or 0)
