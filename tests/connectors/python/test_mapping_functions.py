"""Functions that a config names: found by lint, called in mappings, sent along, judged by diff."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from streamer.bloblang import compile_mapping
from streamer.config import Config, load_config
from streamer.config.load import lint_config
from streamer.core.errors import ConfigError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.core.permissions import NONE, limit_permissions
from streamer.plan.change_impact import judge
from streamer.plan.explain import explain
from streamer.plan.plan import make_plan

EX = Execution(lambda: 0)
PRICES = """
from streamer.sdk import bloblang_function, bloblang_method
from rates import RATE

@bloblang_function()
def add_vat(net: float) -> float:
    if net < 0:
        raise ValueError("negative")
    return net * RATE

@bloblang_method()
def shout(text: str) -> str:
    return text.upper()
"""
CONFIG = """
bloblang: {functions: [prices]}
input: {generate: {count: 1, mapping: "root.n = add_vat(2)"}}
pipeline:
  processors:
    - mapping: 'root = add_vat(this.n)'
output:
  file: {path: '${! this.string().shout() }', base: .}
"""
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_files(config: str = CONFIG, prices: str = PRICES, rate: str = "1.5") -> Path:
        (tmp_path / "prices.py").write_text(prices)
        (tmp_path / "rates.py").write_text(f"RATE = {rate}\n")
        path = tmp_path / "config.yaml"
        path.write_text(config)
        return path

    return write_files


def first_value(config: Config, mapping: str = "root = add_vat(this.n)") -> object:
    with config.inputs.active():
        return compile_mapping(mapping).query([Message(b'{"n":2}')], 0, EX)


def test_a_module_beside_the_config_has_functions_for_every_mapping(write: Write) -> None:
    config = load_config(write())
    assert first_value(config) == 3
    assert {Path(name).name for name in config.inputs.files} >= {"prices.py", "rates.py"}
    # Another config does not have them.
    with pytest.raises(ConfigError, match="unrecognised function 'add_vat'"):
        load_config(write(CONFIG.replace("bloblang: {functions: [prices]}", "")))


def test_functions_travel_with_mappings_and_without_their_files(write: Write) -> None:
    path = write()
    config = load_config(path)
    with config.inputs.active():
        mapping = compile_mapping("root = add_vat(this.n)")
    sent = pickle.dumps((mapping, config.inputs.capture()))
    for name in ("prices.py", "rates.py"):
        (path.parent / name).unlink()
    received, captured = pickle.loads(sent)
    assert received.query([Message(b'{"n":2}')], 0, EX) == 3
    with captured.restore().active():
        assert compile_mapping("root = add_vat(4)").query([Message(b"{}")], 0, EX) == 6


def test_a_change_of_code_is_a_change_in_place_and_explain_shows_the_digest(write: Write) -> None:
    old = load_config(write())
    new = load_config(write(rate="2"))
    assert (first_value(old), first_value(new)) == (3, 4)
    [change] = judge(old, new).changes
    assert change.path.startswith("bloblang.functions") and "code" in (change.new or "")
    assert str(change.effect) == "in place"
    digests = [
        re.findall("functions +add_vat, .shout of prices, code ([0-9a-f]{12})", text)
        for text in (explain(make_plan(one, "x"), "checkpoint") for one in (old, new))
    ]
    assert len(digests[0]) == 1 and digests[0] != digests[1]


@pytest.mark.parametrize(
    ("functions", "prices", "text"),
    [
        ("[nope]", PRICES, "names the module nope, which is neither installed nor in the"),
        ("[no-name]", PRICES, "has 'no-name'; expected names of modules"),
        ("[prices]", "def (", "names prices, which cannot be loaded: SyntaxError"),
        ("[prices]", "1 / 0", "which cannot be loaded: ZeroDivisionError: division by zero, at"),
        ("[prices]", "import nowhere", "cannot be loaded: No module named 'nowhere'"),
        ("[prices]", "x = 1", "which has no function with the decorator bloblang_function"),
        ("[prices, prices]", PRICES, "whose function add_vat it has twice too; rename one"),
        (
            "[prices]",
            PRICES.replace("def shout", "def uppercase"),
            "whose method uppercase Bloblang has itself; give it another name",
        ),
        (
            "[prices]",
            PRICES.replace("def add_vat", "async def add_vat"),
            "of which mappings cannot call add_vat is a coroutine function",
        ),
    ],
)
def test_lint_has_what_is_wrong_with_a_module(
    write: Write, functions: str, prices: str, text: str
) -> None:
    path = write(CONFIG.replace("[prices]", functions), prices)
    first = lint_config(path)[0]
    assert text in first.message, first.message
    assert first.line == 2


def test_lint_has_what_is_wrong_with_a_call_at_its_place(write: Write) -> None:
    path = write(CONFIG.replace("add_vat(this.n)", "add_vat(this.n, 2)"))
    [lint] = lint_config(path)
    assert (lint.line, "expected 1, got 2" in lint.message) == (6, True)


def test_errors_show_the_line_of_the_user(write: Write) -> None:
    config = load_config(write())
    assert first_value(config, 'root = add_vat(-1).catch("caught")') == "caught"
    with config.inputs.active():
        mapping = compile_mapping("root = add_vat(-1)")
    with pytest.raises(Exception, match=r"ValueError: negative, at prices.py\(8\) in add_vat"):
        mapping.query([Message(b"{}")], 0, EX)


def test_without_permission_nothing_is_loaded(write: Write, tmp_path: Path) -> None:
    marker = tmp_path / "was loaded"
    path = write(prices=f"open({str(marker)!r}, 'w').close()\n{PRICES}")
    with limit_permissions(NONE):
        assert any("add_vat" in lint.message for lint in lint_config(path))
    assert not marker.exists()
