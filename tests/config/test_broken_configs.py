"""A table of broken configs, and exactly what lint says of each; every rule is met somewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamer.config import LintOptions, lint_config, parse_config
from streamer.config.file import MAX_CONFIG_BYTES
from streamer.config.lint.rules import RULES
from streamer.config.rules_page import MARK, PAGE, update_page
from streamer.config.yaml_reader import MAX_DEPTH, MAX_VALUES
from streamer.core.errors import ConfigError

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "streamer"
BROKEN = yaml.load((HERE / "broken.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)


def said(directory: Path, case: dict[str, Any]) -> list[str]:
    path = directory / "broken.yaml"
    path.write_text(case["config"], encoding="utf-8")
    options = LintOptions(thorough=True, **dict.fromkeys(case.get("options", ()), True))
    lints = lint_config(path, env=case.get("env", {}), options=options)
    return [f"{lint} [{lint.code}]".removeprefix(str(path)) for lint in lints]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case["name"])
def test_what_is_said_of_a_broken_config(case: dict[str, Any], tmp_path: Path) -> None:
    assert case["findings"]
    assert said(tmp_path, case) == case["findings"]


def test_the_table_is_long_and_its_names_tell_cases_apart() -> None:
    names = [case["name"] for case in BROKEN]
    assert len(set(names)) == len(names) >= 60


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("too_deep", "a: " + "[" * (MAX_DEPTH + 1)),
        ("too_large", "a: [" + "1," * (MAX_VALUES + 1) + "]"),
        ("too_many", "".join(f"f{i}: 1\n" for i in range(1_100))),
        ("unreadable", "#" * (MAX_CONFIG_BYTES + 1)),
    ],
)
def test_what_is_beyond_bounds(code: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    assert lint_config(path, env={})[-1].code == code


def test_an_expression_of_the_command_line_that_cannot_be_applied() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config("{}", sets=["input"])
    assert [lint.code for lint in caught.value.lints] == ["bad_set"]


# What other tests of this directory show.
SHOWN_BELOW = {
    *("too_deep", "too_large", "too_many", "unreadable", "bad_set", "bad_template"),
    "missing_package",
    *("missing_secret", "readable_secret"),  # test_references.py
    "lint_fault",  # tests/cli/test_lint_command.py
}


def test_every_rule_is_met() -> None:
    met = {finding.rpartition("[")[2][:-1] for case in BROKEN for finding in case["findings"]}
    assert met | SHOWN_BELOW == set(RULES)


def _codes() -> Iterator[str]:
    """Return the codes that the sources give to findings."""
    places = {"add_at": 1, "add_at_offset": 2, "add_inside": 2, "_ReadError": 1}
    for path in (PACKAGE / "config").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            arguments = node.args[places[name] :][:1] if name in places else node.args
            for argument in arguments if name in places or name == "Lint" else ():
                text = argument.value if isinstance(argument, ast.Constant) else None
                if isinstance(text, str) and re.fullmatch("[a-z]+(_[a-z]+)*", text):
                    yield text


def test_every_code_in_the_sources_has_its_rule() -> None:
    found = set(_codes())
    assert len(found) > 30
    assert found <= set(RULES)


def test_rules_are_sorted_and_have_something_to_say() -> None:
    assert list(RULES) == sorted(RULES)
    for rule in RULES.values():
        assert rule.meaning.endswith(".")
        assert rule.remedy.endswith(".")


def test_the_page_has_every_rule_as_the_program_writes_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == update_page(text), "python -m streamer.config.rules_page writes it"
    assert re.findall(r"^### (\w+)$", text.partition(MARK)[2], re.M) == list(RULES)
