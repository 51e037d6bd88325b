"""`streamer docs`: shipped pages and those of components; what is written is what is shipped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import streamer
from streamer.cli.main import invoke
from streamer.components import catalog
from streamer.config import lint_config
from streamer.config.reference_pages import KINDS_BY_PLURAL, format_page, make_pages
from streamer.sdk.spec import Kind
from streamer.sdk.spec.keyed_state import STATEFUL_PROCESSORS
from tests.examples import variables_in
from tests.findings import list_findings

SHIPPED = Path(streamer.__file__).parent / "docs" / "components"
SPECS = [pytest.param(spec, id=f"{spec.kind}-{spec.name}") for spec in catalog.all_specs()]
_YAML = re.compile(r"^```yaml\n(.*?)^```$", re.M | re.S)


def test_shipped_pages_are_those_that_the_program_writes() -> None:
    shipped = {str(p.relative_to(SHIPPED)): p.read_text() for p in SHIPPED.rglob("*.md")}
    assert shipped == make_pages(), f"run: streamer docs --write {SHIPPED}"


def test_there_is_a_page_for_every_component() -> None:
    assert set(KINDS_BY_PLURAL.values()) == set(Kind)
    # Besides, there are the index and the table of all.
    assert len(make_pages()) == 2 + len(SPECS)


@pytest.mark.parametrize("spec", SPECS)
def test_a_page_names_every_field_and_its_configs_have_no_findings(
    spec: catalog.Spec, tmp_path: Path
) -> None:
    text = format_page(spec)
    for field in spec.fields:
        assert field.deprecated != (f"### `{field.name}`" in text)
    defaults = text.partition("## Fields and defaults")[2].partition("\n## ")[0]
    configs = _YAML.findall(defaults)
    if spec.kind == Kind.SCANNER:
        head = "input:\n  file:\n    paths: [x]\n    "
        configs = [head + one.replace("\n", "\n    ") for one in configs]
    if spec.name == "window_join":
        sides = "{label: orders, stdin: {}}, {label: shipments, file: {paths: [x]}}"
        head = f"input: {{broker: {{inputs: [{sides}]}}}}\n"
        # Which bounds there are is to be chosen.
        configs = [head + one.replace("# within:", "within:") for one in configs]
    if spec.name == "table_join":
        sides = "{label: orders, stdin: {}}, {label: customers, file: {paths: [x]}}"
        configs = [f"input: {{broker: {{inputs: [{sides}]}}}}\n{one}" for one in configs]
    if spec.name == "global_window":
        counting = "root = if batch_index() == 0 { batch_size() } else { deleted() }"
        configs = [
            f"{one}pipeline: {{processors: [{{mapping: '{counting}'}}]}}\n" for one in configs
        ]
    if spec.kind == Kind.PROCESSOR and spec.name in STATEFUL_PROCESSORS:
        configs = [f"buffer: {{keyed_state: {{}}}}\n{one}" for one in configs]
    if spec.name == "redpanda_common":
        configs = [f"redpanda: {{seed_brokers: [a:1]}}\n{one}" for one in configs]
    if spec.name == "resource":
        label = str(spec.body.examples[0])
        made = {Kind.INPUT: "stdin", Kind.OUTPUT: "drop"}.get(spec.kind, "noop")
        configs = [
            f"{one}{spec.kind}_resources: [{{label: {label}, {made}: {{}}}}]" for one in configs
        ]
    if spec.name != "resource":
        for kind, made in (("cache", "memory: {}"), ("rate_limit", "local: {}")):
            label = f"some_{kind}"
            if any(label in one for one in configs):
                resource = f"{kind}_resources: [{{label: {label}, {made}}}]"
                configs = [f"{one}{resource}\n" for one in configs]
    if spec.name == "multilevel":
        levels = "".join(f"  - {{label: {label}, memory: {{}}}}\n" for label in ("hot", "cold"))
        configs = [one + levels for one in configs]
    assert configs
    for config in configs:
        path = tmp_path / "c.yaml"
        path.write_text(config)
        assert list_findings(lint_config(path, env=variables_in(config))) == []


@pytest.mark.parametrize("spec", SPECS)
def test_the_examples_of_a_component_have_no_findings(spec: catalog.Spec, tmp_path: Path) -> None:
    for example in spec.examples:
        path = tmp_path / "c.yaml"
        path.write_text(example.config)
        assert list_findings(lint_config(path, env=variables_in(example.config))) == []


def test_the_index_leads_to_every_page() -> None:
    listed = re.findall(r"\]\(([^)]+)\)", (SHIPPED / "README.md").read_text())
    assert sorted(listed) == sorted(set(make_pages()) - {"README.md"})


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (["windows"], "# Windows"),
        (["windows.md"], "# Windows"),
        (["processors", "mapping"], "# mapping (processor)"),
        (["system_window"], "# system_window (buffer)"),
        (["scanners"], "avro "),
    ],
)
def test_a_page_is_shown(
    arguments: list[str], first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["docs", *arguments]) == 0
    assert capsys.readouterr().out.startswith(first)


def test_a_name_of_several_kinds_shows_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["docs", "file"]) == 0
    out = capsys.readouterr().out
    assert "# file (input)" in out
    assert "# file (output)" in out


def test_without_a_name_pages_and_components_are_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(["docs"]) == 0
    out = capsys.readouterr().out
    for word in ("getting-started", "windows", "system_window", "group_by_value"):
        assert word in out


def test_nothing_is_coloured_on_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["docs", "windows"]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["windws"], "error: there is no page 'windws'; did you mean windows?\n"),
        (["mappin"], "error: there is no page 'mappin'; did you mean mapping?\n"),
        (
            ["processors", "mappin"],
            "error: there is no 'mappin' among processors; did you mean mapping?\n",
        ),
        (["windows", "x"], "error: streamer docs shows one page, found 'windows x'\n"),
    ],
)
def test_what_there_is_not_is_named(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["docs", *arguments]) == 1
    assert capsys.readouterr() == ("", said)


def test_pages_are_written_and_those_of_what_is_gone_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "inputs" / "gone.md"
    gone.parent.mkdir()
    gone.write_text("")
    (tmp_path / "mine.md").write_text("")
    assert invoke(["docs", "--write", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{len(make_pages())} pages written to {tmp_path}\n"
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md")}
    assert written == {*make_pages(), "mine.md"}


def test_a_directory_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert invoke(["docs", "--write", str(file / "x")]) == 1
    assert f"--write {file}/x: " in capsys.readouterr().err


def test_words_are_looked_for_in_all_pages(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["docs", "search", "upsert"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("streamer docs outputs sql_insert  ") for line in lines)
    assert all(line.startswith(("streamer docs ", "    ", "… and ")) for line in lines)


def test_a_page_that_was_found_is_shown_as_the_line_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(["docs", "search", "tumbling", "window"]) == 0
    commands = [
        line.partition("  ")[0].split()[1:]
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("streamer")
    ]
    assert commands and all(invoke(command) == 0 for command in commands)


def test_nothing_found_is_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["docs", "search", "nowhere", "tobefound"]) == 1
    text = "no section of the documentation has 'nowhere' and 'tobefound'\n"
    assert capsys.readouterr().err.endswith(text)
    assert invoke(["docs", "search", "tumbilng", "window"]) == 1
    assert "; did you mean tumbling window?" in capsys.readouterr().err
    assert invoke(["docs", "search"]) == 1
    assert "search takes words" in capsys.readouterr().err
