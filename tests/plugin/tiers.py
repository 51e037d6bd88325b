"""Tiers: by what a test needs, each is in exactly one of four, and a chosen few run by default."""

from __future__ import annotations

import os
from typing import Final

import pytest

KINDS: Final = ("fast", "spark", "slow", "proof")
"""What a test needs. `fast`: no marker, so no JVM and no server. The others are markers."""
DEFAULT: Final = "default"
"""All fast tests, and those marked `smoke`."""
ALL: Final = "all"
REST: Final = "rest"
"""What the default leaves out."""
TIERS: Final = (DEFAULT, *KINDS, REST, ALL)

BUDGETS_MIN: Final = {DEFAULT: 8, "fast": 3, "spark": 9, "slow": 9, "proof": 5, REST: 22, ALL: 30}
"""Minutes that a tier may take on two cores of an ordinary machine, before a warning."""

# Fixtures that start a server or a browser which the install line of the README does not bring.
# Tools without a fixture are found by the run itself, where they are not installed.
TOOL_FIXTURES: Final = frozenset(
    {
        *("redis_url", "postgres_dsn", "mysql_dsn", "kafka_broker", "kafka", "kafka_secured"),
        *("browser", "image", "db"),
    }
)


def kind_of(item: pytest.Item) -> str:
    """Return which of KINDS a test is.

    A row of the proof is of the proof whatever else it needs; what needs the JVM is of Spark,
    however slow it is.
    """
    for kind in ("proof", "spark", "slow"):
        if item.get_closest_marker(kind):
            return kind
    return "fast"


def is_chosen(item: pytest.Item) -> bool:
    """Tell whether a test that is not fast runs by default."""
    return item.get_closest_marker("smoke") is not None


def selects(tier: str, item: pytest.Item) -> bool:
    """Tell whether a tier has a test."""
    kind = kind_of(item)
    if tier == ALL:
        return True
    if tier in (DEFAULT, REST):
        return (kind == "fast" or is_chosen(item)) == (tier == DEFAULT)
    return kind == tier


def chosen_tier(config: pytest.Config) -> str:
    """Return the tier of this run.

    Who names files, directories, ids or words gets what was named, whatever tier it is in.
    """
    option = config.option
    if option.tier is not None:
        tier: str = option.tier
        return tier
    last_failed = getattr(option, "lf", False)  # without pytest's cache there is none
    return ALL if is_named(config) or option.markexpr or last_failed else DEFAULT


def is_named(config: pytest.Config) -> bool:
    """Tell whether the command line names tests; the suite as a whole is no name."""
    given = getattr(config.option, "file_or_dir", ())  # absent under --help
    paths = {os.path.normpath(path) for path in given}
    return bool(paths - {".", "tests"} or config.option.keyword)


def check_markers(items: list[pytest.Item]) -> None:
    """Refuse markers that say nothing, and a chosen test that needs what may not be there.

    Raises:
        pytest.UsageError: with the ids of such tests.
    """
    for item in items:
        if not is_chosen(item):
            continue
        if kind_of(item) in ("fast", "proof"):
            raise pytest.UsageError(
                f"{item.nodeid} is marked `smoke`, which is for tests of `spark` and `is_slow`: "
                "fast tests run by default without it, rows of the proof need a broker"
            )
        tools = TOOL_FIXTURES.intersection(getattr(item, "fixturenames", ()))
        if tools:
            raise pytest.UsageError(
                f"{item.nodeid} is marked `smoke` and uses {', '.join(sorted(tools))}: what runs "
                "by default needs nothing that the README's line does not install"
            )
