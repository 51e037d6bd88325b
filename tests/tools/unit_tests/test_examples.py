"""Every config of `configs/` has tests, and passes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.config.unit_tests.definitions import is_definition
from streamer.tools.unit_tests.suite import find_suites, run_suite
from streamer.tools.unit_tests.suite_environment import SuiteEnvironment

DIRECTORY = Path(__file__).parents[3] / "configs"
CONFIGS = [path for path in sorted(DIRECTORY.glob("**/*.yaml")) if not is_definition(path)]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_an_example_passes_its_tests(path: Path) -> None:
    [suite] = find_suites([str(path)])
    result = run_suite(suite, SuiteEnvironment(suite.config))
    assert result.lints == ()
    assert [case.failures for case in result.cases if case.failures] == []
    assert result.cases
