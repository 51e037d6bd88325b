"""The examples in docstrings (`>>>`) do what they say."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "streamer"
# Others run where what they need is: in a session of Spark.
MODULES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if " >>> " in path.read_text() and "spark" not in path.relative_to(PACKAGE).parts
]


@pytest.mark.parametrize("module", MODULES)
def test_examples_give_what_stands_below_them(module: str) -> None:
    failed, tried = doctest.testmod(
        importlib.import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert tried and not failed


@pytest.mark.parametrize(
    "module",
    [
        *("streamer.bloblang.mapping", "streamer.bloblang.interpolation"),
        *("streamer.bloblang.declare", "streamer.bloblang.environment"),
        *("streamer.core.durations", "streamer.core.timestamps"),
        *("streamer.core.message", "streamer.core.redaction", "streamer.core.urls"),
        *("streamer.core.json.parse", "streamer.core.json.dump"),
        *("streamer.config.load", "streamer.plan.plan"),
    ],
)
def test_public_doors_have_examples(module: str) -> None:
    assert module in MODULES
