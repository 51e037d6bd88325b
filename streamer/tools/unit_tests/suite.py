"""All tests of one config: found, and run one after another."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from streamer.config import lint_config
from streamer.config.unit_tests.definitions import (
    Case,
    Definitions,
    find_definitions,
    find_tested_config,
    is_definition,
    read_definitions,
)
from streamer.config.unit_tests.section import TARGET_STREAM
from streamer.core.errors import ConfigError, Lint, StreamerError
from streamer.core.locations import is_location
from streamer.tools.unit_tests.failure import Failure, Line, make_failure
from streamer.tools.unit_tests.processor_case import check_processors
from streamer.tools.unit_tests.suite_environment import SuiteEnvironment, set_environment

_UNNAMED = "(unnamed)"


@dataclass(frozen=True)
class Suite:
    """The tests of one config.

    Attributes:
        config: the config's file; it need not exist when no test asks for it.
        definitions: the files that hold its tests.
    """

    config: str
    definitions: tuple[Definitions, ...]


@dataclass(frozen=True)
class CaseResult:
    """The result of a test.

    Attributes:
        name: the test's name.
        file: where it is defined.
        line: the line there.
        failures: what is wrong; empty when the test passed.
        error: the test could not be run, and the one failure says why.
        seconds: how long it took.
    """

    name: str
    file: str
    line: int
    failures: tuple[Failure, ...] = ()
    error: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class SuiteResult:
    """The results of one config's tests.

    Attributes:
        config: the config's file.
        cases: the results, in the order of the files.
        lints: what is wrong with the config, or with its tests.
    """

    config: str
    cases: tuple[CaseResult, ...]
    lints: tuple[Lint, ...]

    @property
    def failed(self) -> bool:
        """Whether there is anything wrong."""
        return bool(self.lints) or any(case.failures for case in self.cases)


def find_suites(files: Iterable[str]) -> list[Suite]:
    """Return the tests of configs, by config.

    Args:
        files: configs, and files of tests; either stands for both. A config may be a URL, which
            has the tests that are in it.
    """
    configs = dict.fromkeys(
        file
        if is_location(file)
        else os.path.normpath(find_tested_config(file) if is_definition(file) else file)
        for file in files
    )
    suites = []
    for config in sorted(configs):
        beside = find_definitions(config)
        within = [config] if os.path.exists(config) or not beside else []
        candidates = [read_definitions(path) for path in (*within, *beside)]
        definitions = tuple(one for one in candidates if one.cases or one.lints)
        if definitions:
            suites.append(Suite(config, definitions))
    return suites


def run_suite(
    suite: Suite,
    environment: SuiteEnvironment,
    before: Callable[[Case], None] = lambda case: None,
    after: Callable[[CaseResult], None] = lambda result: None,
) -> SuiteResult:
    """Run the tests of one config.

    Args:
        suite: the tests.
        environment: what they have around them.
        before: called with each test before it is run.
        after: called with the result of each test.
    """
    results = []
    for definitions in suite.definitions:
        for case in definitions.cases:
            before(case)
            result = run_case(case, definitions.file, environment)
            after(result)
            results.append(result)
    return SuiteResult(suite.config, tuple(results), _collect_lints(suite, environment))


_PER_TEST_CODES: Final = frozenset({"missing_variable", "missing_package", "unavailable_component"})


def _collect_lints(suite: Suite, environment: SuiteEnvironment) -> tuple[Lint, ...]:
    """Return what is wrong with a config that is tested; a missing one its tests complain of."""
    lints = [lint for one in suite.definitions for lint in one.lints]
    if is_location(suite.config) or os.path.exists(suite.config):
        lints = [*lint_config(suite.config, resources=environment.resource_files), *lints]
    # Each test has variables of its own; without them, their lines cannot be judged. Packages and
    # components may be missing for what no test runs, such as outputs; a test that needs one says
    # so itself.
    return tuple(lint for lint in dict.fromkeys(lints) if lint.code not in _PER_TEST_CODES)


def get_case_name(case: Case) -> str:
    """Return what a test is called."""
    return case.parsed["name"] or _UNNAMED


def run_case(case: Case, file: str, environment: SuiteEnvironment) -> CaseResult:
    """Run one test.

    Args:
        case: the test.
        file: the file that defines it.
        environment: what it has around it.
    """
    began = time.perf_counter()
    error = False
    with set_environment(case), environment.redactor.inputs.active():
        try:
            failures = tuple(_check_case(case, environment))
        except ConfigError as e:
            error, failures = True, (make_failure("the test cannot be run:", _format_lints(e)),)
        except StreamerError as e:
            error, failures = True, (make_failure(f"the test cannot be run: {e}"),)
    seconds = time.perf_counter() - began
    failures = tuple(map(environment.redactor.redact_failure, failures))
    return CaseResult(get_case_name(case), file, case.line, failures, error, seconds)


def _format_lints(error: ConfigError) -> list[Line]:
    return [Line(f"  {lint}") for lint in error.lints]


def _check_case(case: Case, environment: SuiteEnvironment) -> Iterator[Failure]:
    if case.parsed["target"] != TARGET_STREAM:
        return check_processors(case, environment)
    # Windows bring numpy and pyarrow along, which tests of processors need not wait for.
    from streamer.tools.unit_tests.stream_case import check_stream

    return check_stream(case, environment)
