"""pytest's hooks of the suite."""

from __future__ import annotations

import os
import time
import zlib
from collections import Counter, defaultdict
from typing import Any, Final

import pytest

from tests.plugin import report, rotation, workers
from tests.plugin.tiers import TIERS, check_markers, chosen_tier, is_chosen, is_named, selects
from tests.slowness import wall_slowness

_TIMES: Final = "streamer/seconds-by-file"
"""The key in pytest's cache of what the files of the last run took."""
_LONG_S: Final = 60
"""From here on a file begins early, so that no worker waits for it at the end."""
_UNKNOWN_S: Final = {"tests/deploy/test_image.py": 300.0}
"""What files take where nothing is known of them yet: the image is built then, too."""
_INPUT: Final = "streamer"
"""The key of what worker processes are told."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; `streamer/docs/test-suite.md` documents them."""
    group = parser.getgroup("streamer", "tiers of the suite")
    group.addoption(
        "--tier",
        choices=TIERS,
        help="which tests run; without it what is named, or else all fast and the chosen ones",
    )
    group.addoption(
        "--seed",
        type=int,
        default=rotation.default_seed(),
        help="decides the sample and all that is random (STREAMER_SEED, or the hour)",
    )
    group.addoption(
        "--full",
        action="store_true",
        help="run all faults, clusters and rows of the proof, not the sample of the seed",
    )
    group.addoption(
        "--minutes",
        type=float,
        metavar="N",
        help="begin no test after N minutes; the summary says how many that left out",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give everything random the seed, and the other processes what was decided here."""
    option = config.option
    option.tier_of_run = chosen_tier(config)
    option.sampled = not (option.full or is_named(config))
    begin, option.seed = getattr(config, "workerinput", {}).get(_INPUT, (time.time(), option.seed))
    option.deadline = None if option.minutes is None else begin + 60 * option.minutes
    if getattr(option, "hypothesis_seed", None) is None:
        option.hypothesis_seed = str(option.seed)
    os.environ[rotation.SEED_VARIABLE] = str(option.seed)
    config.pluginmanager.register(_Report(config), "streamer-report")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker process when the run began, and its seed, which an hour that ends changes."""
    node.workerinput[_INPUT] = (time.time(), node.config.option.seed)


def pytest_report_header(config: pytest.Config) -> str:
    """Say what runs, and how to run the same again."""
    option = config.option
    part = "its sample" if option.sampled else "all"
    return f"tier: {option.tier_of_run}, {part} (--seed {option.seed} repeats it)"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out other tiers and what is not of the sample; put first what takes longest."""
    option = config.option
    check_markers(items)
    resting = rotation.rests(items, option.seed) if option.sampled else set()
    out = [item for item in items if item in resting or not selects(option.tier_of_run, item)]
    if out:
        config.hook.pytest_deselected(items=out)
        left = set(out)
        items[:] = [item for item in items if item not in left]
    if not is_named(config):
        _put_in_order(config, items)


def _put_in_order(config: pytest.Config, items: list[pytest.Item]) -> None:
    cache = getattr(config, "cache", None)
    seconds: dict[str, float] = (cache and cache.get(_TIMES, None)) or {}
    counts = Counter(item.nodeid.partition("::")[0] for item in items)
    turn = {item: number for number, item in enumerate(items)}

    def key(item: pytest.Item) -> tuple[Any, ...]:
        path = item.nodeid.partition("::")[0]
        group = not is_chosen(item), rotation.is_sampled(item)
        known = seconds.get(path, _UNKNOWN_S.get(path, 0.0))
        if config.option.minutes is None:
            return *group, -known, -counts[path], path, turn[item]
        # Which come last, and are left out where time is short, is for the seed to say.
        known = known if known > _LONG_S else 0.0
        return *group, -known, _shuffled(path, config.option.seed), path, turn[item]

    items.sort(key=key)


def _shuffled(path: str, seed: int) -> int:
    """Return a number that orders files otherwise for each seed."""
    return zlib.crc32(f"{seed} {path}".encode())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin nothing for which there is no time."""
    rotation.skip_when_late(item.config.option.deadline)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Say how many processes `-n auto` takes: none where files are named, or a debugger waits."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    named = getattr(config.option, "file_or_dir", ())  # absent under --help
    if any("::" in name or name.endswith(".py") for name in named):
        return 0
    number = workers.number_of_workers(chosen_tier(config))
    return number if number > 1 else 0


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object | None:
    """Distribute by what tests share, unless the command line says how."""
    if config.option.dist != "load":
        return None
    return workers.Scheduling(config, log, config.option.tier_of_run)


class _Report:
    """Keeps what tests took and why they were skipped; in workers it is never asked."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._began = time.monotonic()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.partition("::")[0]] += report.duration
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self._skipped.append(reason.removeprefix("Skipped: "))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        option, write = self._config.option, terminalreporter.write_line
        tier_ran = bool(option.tier) or not option.markexpr
        whole = tier_ran and not is_named(self._config) and not option.collectonly
        if whole:
            self._write_times(terminalreporter)
        for line in report.left_out(self._skipped):
            write(line, yellow=True)
        if whole:
            seconds = time.monotonic() - self._began
            processes = getattr(option, "numprocesses", None) or 1
            # Asking how slow the machine is takes a second or two: only who was slow has to know.
            if report.over_budget(option.tier_of_run, seconds, 1.0, processes):
                line = report.over_budget(option.tier_of_run, seconds, wall_slowness(), processes)
                if line:
                    write(line, yellow=True, bold=True)

    def _write_times(self, terminal: pytest.TerminalReporter) -> None:
        lines = report.longest(self._seconds)
        if lines:
            terminal.write_sep("=", f"files that took longest, of {len(self._seconds)}")
            for line in lines:
                terminal.write_line(line)
        cache = getattr(self._config, "cache", None)
        if cache is not None:
            known = cache.get(_TIMES, None) or {}
            cache.set(_TIMES, known | {k: round(v, 2) for k, v in self._seconds.items()})
