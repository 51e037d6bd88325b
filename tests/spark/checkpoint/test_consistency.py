"""A file of a checkpoint that is damaged, gone or an older copy is named before anything runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamer.core.errors import StreamerError
from streamer.core.json.checksums import add_checksum
from streamer.engine.driver.journal import FileJournal
from streamer.engine.results.layout import Layout, Manifest, RetentionError
from streamer.spark.checkpoint.checkpoint import Checkpoint, CheckpointError
from streamer.spark.checkpoint.consistency import check_consistent
from tests.connectors.spool.test_damage import delete, empty, flip, replace_by_garbage, truncate
from tests.engine.results.kept import RULES
from tests.spark.checkpoint.test_generations import FITS, logged

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
    with pytest.raises(CheckpointError, match="offsets/4 is an older copy"):
        check_consistent(held)


@pytest.mark.parametrize("name", ["3", "4"])
def test_another_digit_in_an_offset_is_found(held: Checkpoint, name: str) -> None:
    for number in range(5):
        offset = {"data": {"pos": 10 + number}, "tick": 7, "time": 50 + number}
        logged(held.spark, "offsets", number, add_checksum(offset))
    check_consistent(held)
    file = held.spark / "offsets" / name
    file.write_text(file.read_text().replace('"pos": 1', '"pos": 2'))
    with pytest.raises(CheckpointError, match=f"offsets/{name} was changed"):
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
    before = held.read_record()
    harm(held.directory / "streamer.json", at)
    try:
        assert held.read_record() == before
    except CheckpointError as e:
        assert "streamer.json" in str(e) or "format" in str(e)


def test_a_record_of_version_0_1_is_read(held: Checkpoint) -> None:
    before = held.read_record()
    (held.directory / "streamer.json").write_text(json.dumps(before))
    assert held.read_record() == before
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


def test_lengths_of_outputs_that_are_gone_or_an_older_copy_are_named(tmp_path: Path) -> None:
    out, path = tmp_path / "out", tmp_path / "files.json"
    older = tmp_path / "older"
    journal = FileJournal(path)
    journal.begin(6, [str(out)])
    shutil.copy(path, older)
    journal.begin(7, [str(out)])
    with out.open("a") as file:
        file.write("of the stream, and of somebody else\n")
    assert FileJournal(path).batch == 7
    newest = path.read_bytes()
    shutil.copy(older, path)
    with pytest.raises(StreamerError, match=r"files.json is an older copy, of micro-batch 6 and"):
        FileJournal(path)
    path.unlink()
    with pytest.raises(StreamerError, match=r"files.json is gone.*delete \S*files.newest"):
        FileJournal(path)
    # What the text says helps, and so does the file itself.
    path.write_bytes(newest)
    assert FileJournal(path).batch == 7
    path.unlink()
    (tmp_path / "files.newest").unlink()
    assert FileJournal(path).batch == -1


def test_a_further_file_of_the_same_micro_batch_is_not_forgotten_by_an_older_copy(
    tmp_path: Path,
) -> None:
    path = tmp_path / "files.json"
    FileJournal(path).begin(3, ["a"])
    older = path.read_bytes()
    FileJournal(path).begin(3, ["a", "b"])
    path.write_bytes(older)
    with pytest.raises(StreamerError, match="is an older copy"):
        FileJournal(path)


@pytest.mark.parametrize("harm", [flip, truncate, empty, replace_by_garbage, delete])
def test_what_says_which_lengths_are_the_newest_costs_nothing(tmp_path: Path, harm) -> None:
    path = tmp_path / "files.json"
    journal = FileJournal(path)
    for batch in range(12):
        journal.begin(batch, ["out"])
    harm(tmp_path / "files.newest", 12)
    found = FileJournal(path)
    assert found.batch == 11
    found.begin(12, ["out"])
    path.unlink()
    with pytest.raises(StreamerError, match="is gone"):
        FileJournal(path)


@pytest.mark.parametrize("left", ["journal", "both", "note"])
def test_lengths_written_before_a_crash_or_by_version_0_1_are_taken(tmp_path: Path, left) -> None:
    path = tmp_path / "files.json"
    FileJournal(path).begin(5, ["out"])
    note = (tmp_path / "files.newest").read_bytes()
    FileJournal(path).begin(6, ["out"])
    if left == "journal":
        path.write_text(json.dumps({"batch": 6, "lengths": {"out": 0}}))
        (tmp_path / "files.newest").unlink()
    elif left == "note":  # The program was killed between the two.
        (tmp_path / "files.newest").write_bytes(note)
    assert FileJournal(path).batch == 6


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
