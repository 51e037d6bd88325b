"""The documentation: its commands run, its configs lint, its lists are whole, its links lead on.

A fenced block says by its first line what it is: `sh run` succeeds and prints what the page says,
`sh shows` succeeds and prints something of its own, `sh fails` does not succeed, `sh spark`
needs a JVM, `sh kafka` is a part of a session with a broker (`test_kafka_page.py`), and
`sh service` of one with a service (`test_service_page.py`), and `sh plugin` a part of the walk in
`tests/deploy/test_plugin_walk.py`;
`yaml config=NAME` is a config without findings, `yaml broken=NAME` one with findings;
`yaml template=NAME` is a template without findings;
all are there, by their names, for the commands of the page. A `json` or `text` block after a
command is what it prints.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from streamer.components import catalog
from streamer.components.buffers import system_window
from streamer.config import lint_config
from streamer.config.templates.file import lint_template
from streamer.config.unit_tests.fields import CONDITION_FIELDS, STEP_FIELDS
from streamer.config.unit_tests.section import CASE_FIELDS
from streamer.sdk.spec import Kind
from streamer.sdk.window_buffer.fields import event_time_fields
from streamer.tools.docs_index import strip_docs_footer
from streamer.tools.unit_tests.template_case import check_template
from tests.docs import cookbook, cookbook_index
from tests.forked import forked_commands

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "streamer" / "docs").glob("*.md"))
COOKBOOK = sorted((ROOT / "streamer" / "docs" / "cookbook").glob("*.md"))
README = ROOT / "README.md"
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
_OUTPUT = ("json", "text")
_TABLE_NAME = re.compile(r"^\| `(\w+)` \|", re.M)


@dataclass(frozen=True)
class Block:
    page: Path
    info: str
    text: str
    prints: str = ""

    @property
    def name(self) -> str:
        return self.info.partition("=")[2]


def blocks(page: Path) -> list[Block]:
    found = [Block(page, info.strip(), text) for info, text in _FENCE.findall(page.read_text())]
    return [
        Block(page, this.info, this.text, following.text if following.info in _OUTPUT else "")
        for this, following in pairwise([*found, Block(page, "", "")])
    ]


ALL = [block for page in [*PAGES, README] for block in blocks(page)]


def of(*infos: str) -> list[object]:
    chosen = [block for block in ALL if block.info.partition("=")[0] in infos]
    return [pytest.param(b, id=f"{b.page.stem}-{ALL.index(b)}") for b in chosen]


def prepare(page: Path, directory: Path) -> None:
    for block in blocks(page):
        if block.name:
            (directory / block.name).write_text(block.text)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A `streamer` for short commands."""
    with forked_commands(tmp_path_factory.mktemp("quick")) as command:
        yield command


def installed(directory: Path) -> Path:
    """Make a `streamer` that starts as the one which pip makes does."""
    command = directory / "bin" / "streamer"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m streamer.cli.main "$@"\n')
    command.chmod(0o755)
    return command


def run(block: Block, directory: Path, command: Path) -> subprocess.CompletedProcess[str]:
    prepare(block.page, directory)
    commands = Path(sys.executable).parent
    env = {
        **os.environ,
        "PATH": f"{command.parent}:{commands}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "XDG_STATE_HOME": str(directory / "state"),
    }
    return subprocess.run(
        ["sh", "-euc", block.text],
        cwd=directory,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("block", of("sh run"))
def test_a_command_runs_and_prints_what_the_page_says(
    block: Block, tmp_path: Path, quick: Path
) -> None:
    done = run(block, tmp_path, quick)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == block.prints


@pytest.mark.parametrize("block", of("sh shows"))
def test_a_command_that_shows_something_does(block: Block, tmp_path: Path, quick: Path) -> None:
    done = run(block, tmp_path, quick)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.spark
@pytest.mark.parametrize("block", of("sh spark"))
def test_a_stream_runs_and_prints_what_the_page_says(block: Block, tmp_path: Path) -> None:
    done = run(block, tmp_path, installed(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout == block.prints


@pytest.mark.parametrize("block", of("sh fails"))
def test_a_command_that_is_to_fail_says_what_the_page_says(
    block: Block, tmp_path: Path, quick: Path
) -> None:
    done = run(block, tmp_path, quick)
    assert (done.returncode, done.stdout + done.stderr) == (1, block.prints)


@pytest.mark.parametrize("block", of("yaml config", "yaml"))
def test_a_config_has_no_findings(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(block.text)
    for beside in ALL:
        if beside.page == block.page and beside.info.startswith("python file"):
            (tmp_path / beside.name).write_text(beside.text)
    assert [str(lint) for lint in lint_config(path)] == []


def test_every_template_has_no_findings(tmp_path: Path) -> None:
    shown = [block for block in ALL if block.info.startswith("yaml template")]
    assert shown
    for block in shown:
        path = tmp_path / block.name
        path.write_text(block.text)
        template, lints = lint_template(str(path))
        assert template is not None and template.tests
        assert [str(lint) for lint in (*lints, *check_template(template))] == []


def test_every_broken_config_has_findings(tmp_path: Path) -> None:
    for block in (block for block in ALL if block.info.startswith("yaml broken")):
        path = tmp_path / block.name
        path.write_text(block.text)
        assert lint_config(path)


def test_blocks_are_of_a_known_kind() -> None:
    shells = {"sh", "sh run", "sh shows", "sh fails", "sh spark", "sh kafka", "sh service"}
    walks = {
        "sh backfill",
        "sh lakehouse",
        "python lakehouse",
        "sh results",
        "python results",
        "sh plugin",
        "sh canary",
        "sh compare",
        "sh states",
        "sh python",
        "python library",
        "python library-spark",
    }
    shown = {"java", "python", "sql"} | walks
    known = {"", *shells, *shown, "json", "text", "yaml"}
    kinds = {block.info for block in ALL if not block.name}
    assert kinds <= known


def test_the_page_on_windows_has_every_field() -> None:
    page = (ROOT / "streamer" / "docs" / "windows.md").read_text()
    table = page.partition("## All fields")[2].partition("##")[0]
    fields = [field.name for field in system_window.SPEC.fields]
    assert sorted(_TABLE_NAME.findall(table)) == sorted(fields)


def test_the_page_on_windows_by_event_time_has_every_field_that_they_share() -> None:
    page = (ROOT / "streamer" / "docs" / "event-time-windows.md").read_text()
    table = page.partition("## The fields that they share")[2].partition("\n## ")[0]
    shared = {field.name for field in event_time_fields()}
    assert set(_TABLE_NAME.findall(table)) == shared


def test_the_page_on_window_systems_leads_to_every_recipe() -> None:
    page = (ROOT / "streamer" / "docs" / "window-systems.md").read_text()
    linked = set(re.findall(r"\(\.\./\.\./configs/recipes/(\w+)\.yaml\)", page))
    recipes = {path.stem for path in (ROOT / "configs" / "recipes").glob("*.yaml")}
    assert linked == {name for name in recipes if name.partition("_")[0] in cookbook_index.PEERS}


def test_the_cookbook_is_made_of_the_recipes() -> None:
    pages = cookbook.make_pages()
    stale = [path.name for path, text in pages.items() if not _has_text(path, text)]
    gone = [path.name for path in cookbook.PAGES.glob("*.md") if path not in pages]
    assert stale + gone == [], "run python -m tests.docs.cookbook"


def _has_text(path: Path, text: str) -> bool:
    return path.exists() and strip_docs_footer(path.read_text()) == text


def test_the_page_on_tests_has_every_field() -> None:
    page = (ROOT / "streamer" / "docs" / "testing.md").read_text()
    tables = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    fields = [field.name for field in (*CASE_FIELDS, *CONDITION_FIELDS, *STEP_FIELDS)]
    assert [name for name in fields if f"`{name}`" not in tables] == []


@pytest.mark.parametrize("page", [*PAGES, *COOKBOOK, README], ids=lambda page: page.stem)
def test_links_lead_to_pages_and_headings_that_exist(page: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)]+)\)", page.read_text()):
        name, _, heading = target.partition("#")
        found = page.parent / name if name else page
        assert found.exists(), target
        if heading:
            headings = re.findall(r"^#+ (.*)$", found.read_text(), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", h).lower().replace(" ", "-") for h in headings}
            assert heading in slugs, target


def test_the_readme_installs_and_runs_in_two_lines_and_tests_in_one() -> None:
    setup, test = (block.text for block in blocks(README) if block.info == "sh")
    assert (setup.count("\n"), test.count("\n")) == (2, 1)
    config = re.search(r"-c (\S+)", setup)
    assert config is not None
    assert (ROOT / config[1]).exists()
    extras = re.findall(r"'\.\[([^\]]+)\]'", setup + test)
    project = (ROOT / "pyproject.toml").read_text()
    assert extras == ["java", "java,test"]
    assert all(f"\n{name} = [" in project for names in extras for name in names.split(","))


@pytest.mark.parametrize("kind", [Kind.METRICS, Kind.TRACER])
def test_the_page_on_configs_names_all_components_of_a_section(kind: Kind) -> None:
    page = (ROOT / "streamer" / "docs" / "configs.md").read_text()
    [row] = re.findall(rf"^\| `{kind}` \|(.*)$", page, re.M)
    assert set(re.findall(r"`(\w+)`", row)) == set(catalog.component_names(kind))
