"""Functions of other packages: found by entry points, listed, and left out when they are bad."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from streamer.bloblang import compile_mapping, nest_inputs
from streamer.bloblang.errors import BloblangError
from streamer.bloblang.plugin_functions import list_plugin_functions
from streamer.bloblang.reference import describe_declarations
from streamer.cli.completion.values import (
    Completer,
    complete_docs_names,
    complete_list_words,
)
from streamer.cli.docs_pages import find_page_text
from streamer.cli.main import cli
from streamer.config import load_config
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.core.permissions import NONE, limit_permissions
from streamer.plan.used_plugins import list_used_plugins
from tests.plugin_site import installed, write_package

EX = Execution(lambda: 0)
MODULE = """
from streamer.sdk import bloblang_function, bloblang_method

@bloblang_method()
def shout(text: str) -> str:
    "A text in capitals."
    return text.upper() + "!"

@bloblang_function()
def uppercase_of() -> str:
    return "X"

@bloblang_method()
async def bad(text: str) -> str:
    return text

def unmarked(text): return text

@bloblang_method("uppercase")
def same(text: str) -> str: return text
"""
POINTS = {
    "bloblang_method.shout": "loud_words:shout",
    "bloblang_method.bad": "loud_words:bad",
    "bloblang_method.unmarked": "loud_words:unmarked",
    "bloblang_method.uppercase": "loud_words:same",
    "bloblang_function.gone": "no_such_module:gone",
    "bloblang_nothing.x": "loud_words:shout",
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    write_package(tmp_path / "site", "streamer-loud", {"loud_words": MODULE}, POINTS, "1.2.0")
    return tmp_path / "site"


def test_a_function_of_a_package_is_called_and_its_package_is_known(
    site: Path, tmp_path: Path
) -> None:
    with installed(site):
        mapping = compile_mapping("root = this.a.shout()")
        assert mapping.query([Message(b'{"a":"x"}')], 0, EX) == "X!"
        path = tmp_path / "config.yaml"
        path.write_text("pipeline: {processors: [{mapping: 'root = this.a.shout()'}]}")
        used = list_used_plugins(load_config(path))
        assert used == (("bloblang method shout", "streamer-loud 1.2.0"),)
        [entry] = describe_declarations("method", ["shout"])
        assert (entry["package"], entry["summary"]) == (
            "streamer-loud 1.2.0",
            "A text in capitals.",
        )
    with pytest.raises(BloblangError, match="unrecognised method 'shout'"):
        compile_mapping("root = this.b.shout()")


def test_bad_ones_are_named_and_left_out(site: Path) -> None:
    with installed(site):
        functions, problems = list_plugin_functions()
        assert [one.declaration.name for one in functions] == ["shout"]
        text = "\n".join(problems)
        for part in (
            "method 'uppercase' of streamer-loud 1.2.0 is left out: Bloblang has one",
            "method 'bad' of the package streamer-loud 1.2.0 is left out: bad is a coroutine",
            "method 'unmarked' of the package streamer-loud 1.2.0 is left out: its entry point",
            "function 'gone' of the package streamer-loud 1.2.0 is left out: it cannot be imported",
        ):
            assert part in text
        with pytest.raises(BloblangError, match="is left out: bad is a coroutine function"):
            compile_mapping("root = this.a.bad()")
        uppercase = compile_mapping("root = this.a.uppercase()")
        assert uppercase.query([Message(b'{"a":"x"}')], 0, EX) == "X"


def test_two_packages_with_one_name_are_both_left_out(site: Path, tmp_path: Path) -> None:
    write_package(
        site, "streamer-other", {"other": MODULE}, {"bloblang_method.shout": "other:shout"}
    )
    text = "both provide it, and neither has precedence"
    with installed(site), pytest.raises(BloblangError, match=text):
        compile_mapping("root = this.c.shout()")


def test_a_config_without_permission_calls_none(site: Path) -> None:
    with installed(site), nest_inputs().active():
        compile_mapping("root = this.d.shout()")
        with limit_permissions(NONE), pytest.raises(BloblangError, match="allow-python"):
            compile_mapping("root = this.d.shout()")


def test_docs_and_completion_show_the_package_of_a_function(site: Path) -> None:
    def docs(*names: str) -> str:
        return CliRunner().invoke(cli, ["docs", *names]).output

    def proposals(complete: Completer, words: Sequence[str], begun: str) -> list[tuple[str, Any]]:
        ctx = click.Context(click.Command("x"))
        ctx.params.update(words=tuple(words), names=tuple(words))
        items = complete(ctx, click.Argument(["x"]), begun)
        return [(item.value, item.help) for item in items]

    source = "streamer-loud 1.2.0"
    with installed(site):
        for names in (("bloblang-methods", "shout"), ("shout",), ("bloblang-methods",)):
            text = docs(*names)
            assert "### shout\n\n`.shout()`\n\nA text in capitals." in text, names
            assert f"It comes from the package {source}." in text
        assert "### uppercase\n" in docs("bloblang-methods", "uppercase", "shout")
        with pytest.raises(StreamerError, match="no 'shot' among .*; did you mean shout"):
            find_page_text(("bloblang-methods", "shot"))
        for complete in (complete_docs_names, complete_list_words):
            made = proposals(complete, ["bloblang-methods"], "sho")
            assert made == [("shout", f"from {source}")]
            assert ("uuid_v4", None) in proposals(complete, ["bloblang-functions"], "uuid")
    assert "shout" not in docs("bloblang-methods")
