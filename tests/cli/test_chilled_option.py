"""`--chilled`: what a config can run with does not keep it from running."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.cli.main import invoke
from streamer.config import load_config
from streamer.config.lint.rules import RULES
from streamer.core.errors import ConfigError

GENERATE = "input: {generate: {mapping: root = 1, count: 1}}\n"
CHILLED = {
    "unknown_field": "inptu: {}\n",
    "duplicate_field": "buffer: {none: {}}\nbuffer: {none: {}}\n",
    "bad_label": "pipeline: {processors: [{label: A b, noop: {}}]}\n",
    "duplicate_label": "pipeline: {processors: [{label: a, noop: {}}, {label: a, noop: {}}]}\n",
    "missing_variable": 'pipeline: {processors: [{mapping: root = "${NOPE_NOT_SET}"}]}\n',
    "missing_secret": 'pipeline: {processors: [{mapping: root = "${file:/nowhere/x}"}]}\n',
    "should_omit": "pipeline: {processors: [{label: a, resource: b}]}\n"
    "processor_resources: [{label: b, noop: {}}]\n",
}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("c.yaml")


@pytest.mark.parametrize("code", CHILLED)
def test_a_config_is_taken_with_its_findings(code: str, config: Path) -> None:
    config.write_text(GENERATE + CHILLED[code])
    with pytest.raises(ConfigError):
        load_config(config)
    taken = load_config(config, chilled=True)
    assert [lint.code for lint in taken.lints] == [code]
    assert taken.input.name == "generate"


def test_every_rule_that_lets_a_config_run_is_met() -> None:
    chilled = {code for code, rule in RULES.items() if rule.runs_chilled}
    # The rest is found by a thorough lint only, never when a config is about to run.
    assert chilled - set(CHILLED) == {code for code in chilled if RULES[code].level == "warning"}


def test_the_findings_are_told_and_the_command_goes_on(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(GENERATE + CHILLED["unknown_field"])
    for arguments in (["--chilled", "explain", "c.yaml"], ["explain", "--chilled", "c.yaml"]):
        assert invoke(arguments) == 0
        out, err = capsys.readouterr()
        assert "generate" in out
        assert err == "c.yaml(2,1) field inptu not recognised; did you mean input?\n"


def test_what_a_config_cannot_run_with_still_stops_it(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(GENERATE + "inptu: {}\npipeline: {threads: many}\n")
    assert invoke(["explain", "--chilled", "c.yaml"]) == 1
    assert capsys.readouterr().err == (
        "c.yaml(2,1) field inptu not recognised; did you mean input?\n"
        "c.yaml(3,21) field threads: expected int value, got a string 'many'\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [["--chilled", "-t", "t.yaml", "explain"], ["explain", "-t", "t.yaml", "--chilled"]],
)
def test_templates_are_taken_so_too(
    arguments: list[str], config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(GENERATE + "pipeline: {processors: [{quiet: {}}]}\n")
    Path("t.yaml").write_text(
        "name: quiet\ntype: processor\nsumary: x\nfields: []\nmapping: 'root.noop = {}'\n"
    )
    assert invoke([*arguments, "c.yaml"]) == 0
    said = "t.yaml(3,1) field sumary not recognised; did you mean summary?\n"
    assert capsys.readouterr().err == said
    arguments.remove("--chilled")
    assert invoke([*arguments, "c.yaml"]) == 1
    assert capsys.readouterr().err == said
