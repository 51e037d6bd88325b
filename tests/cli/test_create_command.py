"""`streamer create`: configs that have no findings, whatever they are made of."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from streamer.cli.main import invoke
from streamer.components import catalog
from streamer.config import LintOptions, lint_config
from streamer.config.known_names import suggest_available
from streamer.config.sections import SECTIONS
from streamer.sdk.spec import Field, Kind, Spec
from tests.examples import variables_in
from tests.findings import list_findings

PARTS = {Kind.INPUT: "{}//", Kind.PROCESSOR: "/{}/", Kind.OUTPUT: "//{}"}
# What a `resource` refers to can only be named by whoever has it.
ALL = [
    (kind, name) for kind in PARTS for name in catalog.component_names(kind) if name != "resource"
]


def created(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert invoke(["create", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize("small", [(), ("--small",)], ids=["whole", "small"])
@pytest.mark.parametrize(("kind", "name"), ALL)
def test_a_config_of_any_component_has_no_findings(
    kind: Kind,
    name: str,
    small: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(created(capsys, *small, PARTS[kind].format(name)))
    options = LintOptions(deprecated=catalog.find_spec(kind, name).status != "deprecated")  # type: ignore[union-attr]
    lints = lint_config(path, env=variables_in(path.read_text()), options=options)
    assert list_findings(lints) == []


@pytest.mark.parametrize("small", [(), ("--small",)], ids=["whole", "small"])
@pytest.mark.parametrize("name", catalog.component_names(Kind.BUFFER))
def test_a_config_of_any_buffer_has_no_findings(
    name: str, small: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = "generate,kafka_franz" if name in ("window_join", "table_join") else "kafka_franz"
    path = tmp_path / "c.yaml"
    path.write_text(created(capsys, *small, f"{inputs}/{name}/mapping/stdout"))
    assert [str(lint) for lint in lint_config(path, env={})] == []
    found = yaml.safe_load(path.read_text())
    assert list(found["buffer"]) == [name]
    assert list(found["pipeline"]["processors"][0]) == ["mapping"]


@pytest.mark.parametrize(
    ("expression", "processors", "output"),
    [
        ("stdin/tumbling_window/drop", [], "drop"),
        ("stdin/tumbling_window/mapping", ["mapping"], "stdout"),
        ("stdin/tumbling_window", [], "stdout"),
        ("/tumbling_window/mapping,log/", ["mapping", "log"], "stdout"),
    ],
)
def test_parts_behind_a_buffer_may_be_left_out(
    expression: str, processors: list[str], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = yaml.safe_load(created(capsys, "-s", expression))
    assert list(found["buffer"]) == ["tumbling_window"]
    assert [list(one)[0] for one in found["pipeline"]["processors"]] == processors
    assert list(found["output"]) == [output]


def test_a_whole_config_has_every_section_but_tests(capsys: pytest.CaptureFixture[str]) -> None:
    names = [section.name for section in SECTIONS if not section.optional]
    found = yaml.safe_load(created(capsys))
    assert [name for name in names if name not in {"tests", *found}] == []
    assert list(found["input"]) == ["stdin"]
    assert list(found["output"]) == ["stdout"]
    assert found["spark"]["master"] == "local[*]"


def test_a_small_config_is_what_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    text = created(capsys, "--small", " generate / mapping , noop / drop ")
    found = yaml.safe_load(text)
    assert list(found) == ["input", "pipeline", "output"]
    assert [list(one)[0] for one in found["pipeline"]["processors"]] == ["mapping", "noop"]
    assert list(found["output"]) == ["drop"]
    assert "    # Time between batches, or a cron expression" in text
    assert "# required\n" in text


def test_advanced_fields_are_left_out_of_a_small_config(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "delete_on_finish" in created(capsys, "file")
    assert "delete_on_finish" not in created(capsys, "-s", "file")


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("stdni", "error: there is no input 'stdni'; did you mean stdin?\n"),
        ("/mappin", "error: there is no processor 'mappin'; did you mean mapping?\n"),
        (
            "a/b/c/d/e",
            "error: 'a/b/c/d/e' has 5 parts; expected inputs/buffer/processors/outputs, "
            "such as stdin/tumbling_window/mapping,log/stdout\n",
        ),
        (
            "stdin/mapping/none/stdout",
            "error: none is a buffer: it stands alone behind the inputs; expected "
            "inputs/buffer/processors/outputs, such as stdin/none/mapping/stdout\n",
        ),
        (
            "stdin/mapping/log/stdout",
            "error: 'stdin/mapping/log/stdout' names mapping where the buffer stands; expected "
            "inputs/buffer/processors/outputs; buffers are "
            f"{', '.join(catalog.component_names(Kind.BUFFER))}\n",
        ),
        (
            "stdin/window_join",
            "error: window_join joins two inputs, and 'stdin/window_join' names 1; expected two, "
            "such as generate,generate/window_join/mapping/stdout\n",
        ),
        (
            "/tumbling_windo/",
            "error: there is no processor 'tumbling_windo'; did you mean the "
            "buffer tumbling_window?\n",
        ),
        (
            "discord",
            "error: input 'discord' is not available: it is one of Redpanda Connect's own; "
            f"{suggest_available(Kind.INPUT, 'discord')}\n",
        ),
    ],
)
def test_what_there_is_not_is_named(
    expression: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["create", expression]) == 1
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize(("kind", "field"), [(Kind.INPUT, "inputs"), (Kind.OUTPUT, "outputs")])
def test_several_of_a_kind_are_held_by_a_broker(
    kind: Kind, field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = (Field(field, kind, "They are held here.", shape="array"),)
    broker = Spec(kind, "broker", "Holds others.", fields=fields)
    with catalog.extra_components([broker]):
        found = yaml.safe_load(created(capsys, "-s", PARTS[kind].format("file,resource")))
    assert [list(one) for one in found[kind]["broker"][field]] == [["file"], ["resource"]]


def test_a_component_that_is_to_come_is_told_from_a_mistake(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without = {kind: () for kind in Kind} | {Kind.INPUT: ("stdin",), Kind.OUTPUT: ("stdout",)}
    monkeypatch.setattr(catalog, "COMPONENTS", without)
    assert invoke(["create", "discord//stdout"]) == 1
    assert invoke(["create", "stdin//stdout,stdout"]) == 1
    assert capsys.readouterr() == (
        "",
        "error: input 'discord' is not available: it is one of Redpanda Connect's own; available "
        "are stdin\n"
        "error: 2 outputs (stdout, stdout) need the output broker, which is not available yet; "
        "name one output, and make a config for each other\n",
    )
