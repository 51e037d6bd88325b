"""Tiers as pytest runs them, on a small suite."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.plugin.tiers import BUDGETS_MIN, TIERS, check_markers, chosen_tier, selects

ROOT = Path(__file__).parents[2]
SETTINGS = """
[pytest]
markers =
    spark
    slow
    proof
    smoke
    sample
"""
SAMPLED = """
import pytest

pytestmark = pytest.mark.slow

@pytest.mark.parametrize("kind", [
    pytest.param(n, marks=pytest.mark.sample("even" if n % 2 == 0 else "odd")) for n in range(5)
])
def test_case(kind): pass
"""
SUITE = """
import pytest

def test_quick(): pass
@pytest.mark.spark
def test_spark(): pass
@pytest.mark.slow
def test_slow(): pass
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.proof
def test_row(): pass
@pytest.mark.slow
@pytest.mark.smoke
def test_chosen(): pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    # At its end, a run in this process would give signals back to those who had them before its
    # plugin for faults: WebAssembly's engine, which came later, loses them, and its next trap ends
    # the process.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:faulthandler")
    monkeypatch.delenv("PYTEST_XDIST_AUTO_NUM_WORKERS", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("STREAMER_SEED", "7")
    pytester.makefile(".ini", pytest=SETTINGS)
    pytester.makeconftest('pytest_plugins = ("tests.plugin.hooks",)')
    pytester.makepyfile(test_one=SUITE)
    return pytester


def test_a_tier_has_its_tests(suite: pytest.Pytester) -> None:
    items = suite.getitems(SUITE)
    check_markers(items)
    found = {tier: [item.name for item in items if selects(tier, item)] for tier in TIERS}
    assert found == {
        "default": ["test_quick", "test_chosen"],
        "fast": ["test_quick"],
        "spark": ["test_spark"],
        "slow": ["test_slow", "test_chosen"],
        "proof": ["test_row"],
        "rest": ["test_spark", "test_slow", "test_row"],
        "all": ["test_quick", "test_spark", "test_slow", "test_row", "test_chosen"],
    }


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ({}, "default"),
        ({"tier": "slow"}, "slow"),
        ({"markexpr": "spark"}, "all"),
        ({"keyword": "kafka"}, "all"),
        ({"lf": True}, "all"),
        ({"file_or_dir": ["tests/faults"]}, "all"),
        ({"file_or_dir": ["tests/"]}, "default"),
        ({"file_or_dir": ["tests/faults"], "tier": "fast"}, "fast"),
    ],
    ids=str,
)
def test_what_is_named_is_run_unless_a_tier_is_named_too(
    option: dict[str, object], expected: str
) -> None:
    given = {"tier": None, "markexpr": "", "keyword": "", "lf": False, "file_or_dir": [], **option}
    config: Any = SimpleNamespace(option=SimpleNamespace(**given))
    assert chosen_tier(config) == expected


def test_other_tiers_are_left_out_and_a_file_that_is_named_is_not(suite: pytest.Pytester) -> None:
    suite.runpytest("-n", "0").assert_outcomes(passed=2, deselected=3)
    suite.runpytest("-n", "0", "test_one.py").assert_outcomes(passed=5)


def test_workers_run_the_same_tests_with_the_same_seed(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_seed="import os\nfrom hypothesis import core\ndef test_it():\n"
        "    assert (os.environ['STREAMER_SEED'], core.global_force_seed) == ('42', 42)\n"
    )
    ran = suite.runpytest_subprocess("-n", "2", "--seed", "42", "-v", timeout=120)
    assert ran.ret == 0, ran.outlines
    ran.assert_outcomes(passed=3)
    ran.stdout.fnmatch_lines(["tier: default, its sample (--seed 42 repeats it)"])


def test_of_each_kind_that_is_marked_a_run_takes_another_one_each_time(
    suite: pytest.Pytester,
) -> None:
    suite.makepyfile(test_cases=SAMPLED)
    for seed, chosen in ((3, (0, 3)), (4, (2, 1)), (5, (4, 3))):
        ran = suite.runpytest("-n", "0", "--tier", "slow", "--seed", str(seed), "-v")
        ran.assert_outcomes(passed=len(chosen) + 2, deselected=6)
        for number in chosen:
            ran.stdout.fnmatch_lines([f"test_cases.py::test_case?{number}? PASSED*"])
    suite.runpytest("-n", "0", "--tier", "slow", "--full").assert_outcomes(passed=7, deselected=3)
    suite.runpytest("-n", "0", "test_cases.py").assert_outcomes(passed=5)


def test_a_debugger_and_named_files_need_no_other_process(suite: pytest.Pytester) -> None:
    for options in (("--pdb",), ("test_one.py",)):
        ran = suite.runpytest("-n", "auto", *options)
        assert ran.ret == 0
        assert "workers" not in ran.stdout.str()


def test_files_that_took_long_and_a_budget_that_is_exceeded_are_named(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BUDGETS_MIN, "fast", 0.0001)
    suite.makepyfile(test_two="import time\ndef test_a(): time.sleep(1.1)\n")
    ran = suite.runpytest("-n", "0", "--tier", "fast", "-m", "not smoke")
    ran.assert_outcomes(passed=2, deselected=4)
    ran.stdout.fnmatch_lines(
        [
            "*files that took longest, of 2*",
            "*1.1 s  test_two.py",
            "budget exceeded: the tier fast *",
        ]
    )
    assert "budget exceeded" not in suite.runpytest("-n", "0", "test_two.py").stdout.str()


def test_skipped_tests_are_summed_up_in_a_line(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STREAMER_TEST_SERVERS", raising=False)
    suite.makepyfile(
        test_two="from tests.servers import installed\n"
        "def test_a(): installed('redis-server', 'no-such-server')\n"
        "def test_b(): installed('redis-server', 'no-such-server')\n"
    )
    ran = suite.runpytest("-n", "0")
    assert ran.ret == 0
    [line] = [line for line in ran.outlines if line.startswith("left out")]
    assert "not installed: 2 tests for want of no-such-server (2)" in line


def test_where_servers_must_be_there_absence_fails(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMER_TEST_SERVERS", "required")
    suite.makepyfile(
        test_two="from tests.servers import installed\n"
        "def test_a(): installed('redis-server', 'no-such-server')\n"
    )
    ran = suite.runpytest("test_two.py")
    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines(["*no-such-server (Debian: apt-get install redis-server)*"])


def test_no_test_begins_when_its_time_is_over(suite: pytest.Pytester) -> None:
    ran = suite.runpytest("--tier", "all", "--minutes", "0")
    ran.assert_outcomes(skipped=5)
    ran.stdout.fnmatch_lines(["left out, no time: 5 tests *"])


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("@pytest.mark.smoke\ndef test_a(): pass\n", "marked `smoke`, which is for tests of"),
        (
            "@pytest.fixture\ndef redis_url(): pass\n"
            "@pytest.mark.smoke\n@pytest.mark.slow\ndef test_a(redis_url): pass\n",
            "uses redis_url: what runs by default needs nothing that the README's line",
        ),
    ],
    ids=["fast", "tool"],
)
def test_a_chosen_test_is_one_that_can_run_by_default(
    test: str, said: str, suite: pytest.Pytester
) -> None:
    with pytest.raises(pytest.UsageError, match=said):
        check_markers(suite.getitems(f"import pytest\n{test}"))
