"""Configs to begin a new stream with: each is without findings, and its tests pass."""

from __future__ import annotations

import pytest

from streamer.config import lint_config
from streamer.service.console.starter_configs import STARTERS_DIRECTORY, list_starters
from streamer.tools.unit_tests.suite import find_suites, run_suite
from streamer.tools.unit_tests.suite_environment import SuiteEnvironment


def test_all_files_are_offered_by_titles_that_differ() -> None:
    starters = list_starters()
    assert {one.name for one in starters} == {path.stem for path in STARTERS_DIRECTORY.iterdir()}
    assert len({one.title for one in starters}) == len(starters)


@pytest.mark.parametrize("name", [one.name for one in list_starters()])
def test_one_has_no_findings_and_its_tests_pass(name: str) -> None:
    path = str(STARTERS_DIRECTORY / f"{name}.yaml")
    assert lint_config(path) == ()
    for suite in find_suites([path]):
        result = run_suite(suite, SuiteEnvironment(suite.config))
        assert result.cases and not result.failed, result
