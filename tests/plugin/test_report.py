"""What a run says of itself at its end."""

from __future__ import annotations

from tests.plugin.report import left_out, longest, missing, over_budget
from tests.plugin.rotation import LATE


def test_what_is_not_installed_is_one_line_with_every_tool_and_its_tests() -> None:
    redis = missing("redis-server", "Debian: apt-get install redis-server")
    [line] = left_out([redis, missing("chromium", "Debian: apt-get install chromium"), redis])
    assert line == (
        "left out, not installed: 3 tests for want of chromium (1), redis-server (2); install them "
        "and run with STREAMER_TEST_SERVERS=required (see streamer/docs/test-suite.md)"
    )


def test_other_reasons_have_lines_of_their_own() -> None:
    reasons = ["by hand: STREAMER_KILLS=2", "not a checkout", LATE, "not a checkout"]
    assert left_out(reasons) == [
        "left out, no time: 1 test that would begin after --minutes; another seed begins with "
        "others",
        "left out, by hand: 1 test; their commands are in streamer/docs/test-suite.md",
        "left out: 2 tests: not a checkout",
    ]
    assert left_out([]) == []


def test_a_budget_that_is_kept_is_not_spoken_of() -> None:
    assert over_budget("fast", 179, slowness=1.0, cores=2) is None


def test_a_budget_that_is_exceeded_is_named_with_what_was_taken() -> None:
    said = over_budget("fast", 200, slowness=1.0, cores=2)
    assert said is not None
    assert said.startswith("budget exceeded: the tier fast took 3.3 min; it may take 3 min on two")


def test_a_budget_follows_the_machine() -> None:
    assert over_budget("fast", 350, slowness=3.0, cores=2) is None
    assert over_budget("fast", 350, slowness=1.0, cores=1) is None
    said = over_budget("fast", 370, slowness=3.0, cores=2)
    assert said is not None and "6.0 min on this machine" in said


def test_files_are_listed_by_their_seconds_and_quick_ones_left_out() -> None:
    assert longest({"a.py": 2.0, "b.py": 61.25, "c.py": 0.4}) == [
        "    61.2 s  b.py",
        "     2.0 s  a.py",
    ]
    assert len(longest({f"{n}.py": 5.0 for n in range(100)})) == 20
