"""The pages for developers name files, classes and packages that exist, and all of the channels."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

from streamer.engine.planner.planner_channels import DriverHints, PlannerHints
from streamer.engine.report.result_frame import FrameKind
from streamer.window.contract import RowKind
from tests.engine.planner.test_micro_batch_offset import WHOLE

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "streamer"
PAGE = "\n".join(
    (PACKAGE / "docs" / f"{name}.md").read_text() for name in ("developing", "channels")
)
_CODE = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(r"[a-z_0-9]+(/[a-z_0-9]+)*(\.py|/)")


def _section(heading: str) -> str:
    _, found, rest = PAGE.partition(f"\n## {heading}\n")
    assert found, heading
    return rest.partition("\n## ")[0]


def _rows(section: str) -> list[list[str]]:
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_the_packages_are_those_of_the_tree() -> None:
    named = [row[0].strip("`/") for row in _rows(_section("The thirteen packages"))]
    there = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert len(named) == 13
    assert set(named) == there


def test_every_file_that_is_named_exists() -> None:
    files = {text for text in _CODE.findall(PAGE) if _FILE.fullmatch(text) and "/" in text}
    assert len(files) > 60
    # A directory of a checkpoint, and a component that is still to be written.
    files -= {"signals/", "components/outputs/x.py"}
    missing = [name for name in files if not ((PACKAGE / name).exists() or (ROOT / name).exists())]
    assert missing == []


def test_each_step_of_the_way_of_a_message_has_one_place_to_begin_with() -> None:
    steps = _rows(_section("The way of a message"))
    assert len(steps) >= 15
    for _, _, where in steps:
        assert re.search(r"`[\w/]+\.py`", where), where


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("is_late", "window/settings/system_window.py"),
        ("closed_until", "window/settings/system_window.py"),
        ("watermark_before", "window/fire/partition_watermarks.py"),
        ("StreamWriter", "engine/driver/writers.py"),
        ("_emit_changed", "window/keyed/closing.py"),
        ("SourcePlan", "spark/query/source.py"),
        ("SparkStateStore", "spark/tasks/stages.py"),
        ("_COMMANDS", "cli/main.py"),
    ],
)
def test_what_is_named_beside_a_file_is_defined_in_it(name: str, file: str) -> None:
    line = next(line for line in PAGE.splitlines() if name in line and f"`{file}`" in line)
    assert line
    tree = ast.parse((PACKAGE / file).read_text())
    defined = {
        node.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    } | {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert name in defined


def test_the_table_of_the_state_has_every_reserved_key() -> None:
    section = _section("The state of a shard").replace("−", "-")
    named = {int(number) for number in re.findall(r", (-\d+)\)", section)}
    reserved = {
        int(number)
        for path in (PACKAGE / "window").rglob("*.py")
        for number in re.findall(
            r"^\w+_(?:SEQ|PLACE|KEY): Final = (?:\(0, )?(-\d+)", path.read_text(), re.M
        )
    }
    assert named == reserved


def test_the_table_of_channels_has_direction_loss_and_replay() -> None:
    rows = _rows(_section("Channels"))
    assert len(rows) >= 12
    for channel, direction, file, loss, replay in rows:
        assert "→" in direction or "↔" in direction, channel
        assert file.startswith("`") and loss and replay, channel
    for start, names in (
        ("hints of the driver", {field.name for field in fields(DriverHints)}),
        ("hints of the planner", {field.name for field in fields(PlannerHints)}),
        ("the offset", set(WHOLE.to_fields())),
    ):
        (channel,) = (row[0] for row in rows if row[0].startswith(start))
        assert set(re.findall(r"`(\w+)`", channel)) == names
    # Kinds from 100 on are the engine's, below are the kernel's: the page says so.
    assert max(RowKind) < 100 and len(FrameKind) > 10


def test_the_glossary_has_our_words_and_the_fields() -> None:
    glossary = (PACKAGE / "docs" / "glossary.md").read_text()
    words = {
        word.strip()
        for cell in re.findall(r"^\| \*\*([^*]+)\*\* \|", glossary, re.M)
        for word in cell.split(",")
    }
    own = {"shard", "pane", "pack", "pre-aggregation"}
    field = {"watermark", "event time", "max event time", "batch time", "lateness", "late"}
    assert own | field <= words
    for page in ("developing.md", "windows.md", "event-time-windows.md", "getting-started.md"):
        assert "(glossary.md" in (PACKAGE / "docs" / page).read_text(), page
