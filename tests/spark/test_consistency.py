"""A file of a checkpoint that is damaged, gone or an older copy is named before anything runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamer.engine.journal import FileJournal
from streamer.engine.sums import summed
from streamer.errors import StreamerError
from streamer.retention.layout import Layout, Manifest, RetentionError
from streamer.spark.checkpoint import Checkpoint, CheckpointError
from streamer.spark.consistency import check_consistent
from tests.landing.test_damage import delete, empty, flip, replace_by_garbage, truncate
from tests.retention.kept import RULES
from tests.spark.test_generations import FITS, logged

HARMS = [flip, truncate, empty, replace_by_garbage]


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Checkpoint]:
    checkpoint = Checkpoint(tmp_path / "c")
    checkpoint.bind(FITS, {"": ["a.jsonl"]})
    for number in range(5):
        offset = {"data": {"pos": number}, "tick": 7, "start": "x", "time": 50 + number}
        logged(checkpoint.spark, "offsets", number, offset)
    for number in range(4):
        logged(checkpoint.spark, "commits", number)
        (checkpoint.spark / "commits" / str(number)).write_text("v1\n{}")
    (checkpoint.spark / "metadata").write_text('{"id":"7f3"}')
    yield checkpoint
    checkpoint.close()


def test_one_that_is_whole_is_taken_before_and_after_its_last_commit(held: Checkpoint) -> None:
    check_consistent(held)
    (held.spark / "commits" / "4").write_text("v1\n{}")
    check_consistent(held)
    delete(held.spark / "metadata", 0)
    check_consistent(held)


@pytest.mark.parametrize("name", ["offsets/4", "offsets/3", "commits/3", "metadata"])
@pytest.mark.parametrize("harm", [empty, replace_by_garbage])
def test_a_file_of_sparks_that_cannot_be_read_is_named(held: Checkpoint, name: str, harm) -> None:
    harm(held.spark / name, 5)
    with pytest.raises(CheckpointError, match=rf"damaged: \S*{name} .*restore the checkpoint"):
        check_consistent(held)


@pytest.mark.parametrize("at", range(3, 60, 7))
def test_offsets_that_end_too_soon_are_named(held: Checkpoint, at: int) -> None:
    truncate(held.spark / "offsets" / "4", at)
    with pytest.raises(CheckpointError, match=r"offsets/4 is empty, ends too soon"):
        check_consistent(held)


@pytest.mark.parametrize(
    ("gone", "named"),
    [
        (["offsets/4", "offsets/3"], "offsets/3"),
        (["offsets/3"], "offsets/3"),
        (["commits/3"], "commits/3"),
        ([f"offsets/{n}" for n in range(5)], "offsets has no files"),
        ([f"commits/{n}" for n in range(4)], "commits/3"),
    ],
)
def test_a_file_of_a_log_that_is_gone_is_named(held: Checkpoint, gone, named: str) -> None:
    for name in gone:
        (held.spark / name).unlink()
    with pytest.raises(CheckpointError, match=f"{named}.*restore the checkpoint"):
        check_consistent(held)


@pytest.mark.parametrize("older", [3, 2])
def test_offsets_that_are_a_copy_of_older_ones_are_named(held: Checkpoint, older: int) -> None:
    shutil.copy(held.spark / "offsets" / str(older), held.spark / "offsets" / "4")
    with pytest.raises(CheckpointError, match="offsets/4 is a copy of an older one"):
        check_consistent(held)


@pytest.mark.parametrize("name", ["3", "4"])
def test_another_digit_in_an_offset_is_found(held: Checkpoint, name: str) -> None:
    for number in range(5):
        offset = {"data": {"pos": 10 + number}, "tick": 7, "time": 50 + number}
        logged(held.spark, "offsets", number, summed(offset))
    check_consistent(held)
    file = held.spark / "offsets" / name
    file.write_text(file.read_text().replace('"pos": 1', '"pos": 2'))
    with pytest.raises(CheckpointError, match=f"offsets/{name} is not what was written"):
        check_consistent(held)


def test_an_older_record_than_what_has_run_is_named(held: Checkpoint) -> None:
    logged(held.root / "spark-1", "offsets", 0, {})
    check_consistent(held)  # A generation that was begun, and taken back before it ran.
    logged(held.root / "spark-1", "commits", 0)
    with pytest.raises(CheckpointError, match="streamer.json is an older copy"):
        check_consistent(held)


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("at", range(10, 400, 37))
def test_the_record_is_what_was_written_or_is_named(held: Checkpoint, harm, at: int) -> None:
    before = held.record()
    harm(held.directory / "streamer.json", at)
    try:
        assert held.record() == before
    except CheckpointError as e:
        assert "streamer.json" in str(e) or "format" in str(e)


def test_a_record_of_version_0_1_is_read(held: Checkpoint) -> None:
    before = held.record()
    (held.directory / "streamer.json").write_text(json.dumps(before))
    assert held.record() == before
    check_consistent(held)


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("at", range(3, 120, 11))
def test_lengths_of_outputs_are_what_was_written_or_are_named(tmp_path: Path, harm, at) -> None:
    out, path = tmp_path / "out", tmp_path / "files.json"
    out.write_text("x" * 1234)
    FileJournal(path).begin(7, [str(out)])
    before = path.read_bytes()
    harm(path, at)
    try:
        found = FileJournal(path)
    except StreamerError as e:
        assert str(path) in str(e) and "Restore it" in str(e)
        return
    assert json.loads(path.read_bytes()) == json.loads(before)
    assert found.batch == 7


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("at", range(3, 200, 17))
def test_the_list_of_results_is_what_was_written_or_is_named(tmp_path: Path, harm, at) -> None:
    layout, written = Layout(tmp_path), Manifest(RULES, upto=12)
    layout.write(written)
    harm(layout.manifest, at)
    try:
        assert layout.read() == written
    except RetentionError as e:
        assert "manifest.json cannot be read" in str(e)
