"""What a run says of itself: seconds by file, a budget that was exceeded, and what was left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from tests.plugin.rotation import LATE
from tests.plugin.tiers import BUDGETS_MIN

FILES_SHOWN: Final = 20
ORDINARY_SLOWNESS: Final = 1.5
"""What `tests.slowness` says of a machine for which the budgets were measured."""
MANUAL: Final = "streamer/docs/test-suite.md"
_MISSING = re.compile(r"not installed: (\S+)")
_BY_HAND = re.compile(r"by hand")


def missing(tool: str, how: str) -> str:
    """Return the reason of a skip for want of a tool, as the summary counts it."""
    return f"not installed: {tool} ({how})"


def left_out(reasons: Iterable[str]) -> list[str]:
    """Return a line for each kind of skipped tests: tools, time, those by hand; and all others.

    Args:
        reasons: of each skipped test.
    """
    tools: Counter[str] = Counter()
    others: Counter[str] = Counter()
    late = by_hand = 0
    for reason in reasons:
        if found := _MISSING.search(reason):
            tools[found[1]] += 1
        elif LATE in reason:
            late += 1
        elif _BY_HAND.search(reason):
            by_hand += 1
        else:
            others[reason] += 1
    lines = []
    if tools:
        names = ", ".join(f"{tool} ({number})" for tool, number in sorted(tools.items()))
        lines.append(
            f"left out, not installed: {_tests(tools.total())} for want of {names}; install them "
            f"and run with STREAMER_TEST_SERVERS=required (see {MANUAL})"
        )
    if late:
        lines.append(
            f"left out, no time: {_tests(late)} that would begin after --minutes; "
            "another seed begins with others"
        )
    if by_hand:
        lines.append(f"left out, by hand: {_tests(by_hand)}; their commands are in {MANUAL}")
    lines += [f"left out: {_tests(number)}: {reason}" for reason, number in sorted(others.items())]
    return lines


def _tests(number: int) -> str:
    return f"{number} test" if number == 1 else f"{number} tests"


def over_budget(tier: str, seconds: float, slowness: float, cores: int) -> str | None:
    """Return a warning when a tier took longer than it may on this machine.

    Args:
        tier: which.
        seconds: what it took.
        slowness: of this machine; see `tests.slowness`.
        cores: how many processes ran it.
    """
    budget = BUDGETS_MIN[tier]
    scale = max(1.0, slowness / ORDINARY_SLOWNESS) * max(1.0, 2 / cores)
    if seconds / 60 <= budget * scale:
        return None
    here = f", {budget * scale:.1f} min on this machine" if scale > 1 else ""
    return (
        f"budget exceeded: the tier {tier} took {seconds / 60:.1f} min; it may take {budget} min "
        f"on two cores{here}: see the files and tests above that took longest"
    )


def longest(seconds: Mapping[str, float]) -> list[str]:
    """Return a line for each of the files that took longest."""
    ordered = sorted(seconds.items(), key=lambda one: -one[1])[:FILES_SHOWN]
    return [f"{spent:8.1f} s  {path}" for path, spent in ordered if spent >= 1]
