"""The examples in docstrings run, and print what they say."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

from streamer.core.execution import Execution
from streamer.core.message import Message

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "streamer").rglob("*.py")
    if "    >>> " in path.read_text()
)
"""Modules with examples."""


def test_the_doors_for_authors_have_examples() -> None:
    doors = {"streamer.core.message", "streamer.sdk.processing", "streamer.sdk.output.protocols"}
    assert doors <= set(MODULES)


def test_the_doors_of_mappings_and_configs_have_examples() -> None:
    doors = ("bloblang.mapping", "bloblang.interpolation", "bloblang.declare", "core.durations")
    more = ("bloblang.environment", "config.load", "plan.plan", "core.timestamps", "core.urls")
    assert {f"streamer.{name}" for name in (*doors, *more)} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name: str) -> None:
    names = {"Message": Message, "Execution": Execution}
    failed, tried = doctest.testmod(import_module(name), extraglobs=names)
    assert (failed, tried > 0) == (0, True)
