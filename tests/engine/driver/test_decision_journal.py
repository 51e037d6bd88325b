"""The journal of decisions: bounded, private, whole after a crash, no record twice."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from streamer.engine.driver import decision_journal
from streamer.engine.driver.decision_journal import DecisionJournal, read_decisions

MINE = "this-checkpoint"
WRITER = """
import sys
import zlib
from pathlib import Path
from streamer.engine.driver import decision_journal
from streamer.engine.driver.decision_journal import DecisionJournal
if len(sys.argv) > 2:
    decision_journal.SEGMENT_BYTES, decision_journal.MAX_SEGMENTS = map(int, sys.argv[2:])
journal = DecisionJournal(Path(sys.argv[1]), "this-checkpoint")
first = max(journal.last_batch - 3, 0)
for batch in range(first, first + 200_000):
    journal.append({"batch": batch, "text": "x" * 50})
    if batch == first + 50:
        print("going", flush=True)
"""


def write(directory: Path, *batches: int, identity: str = MINE) -> list[bool]:
    journal = DecisionJournal(directory, identity)
    written = [journal.append({"batch": batch, "text": "x" * 20}) for batch in batches]
    journal.close()
    return written


def batches(directory: Path) -> list[int]:
    return [record["batch"] for record in read_decisions(directory)]


def test_a_replayed_micro_batch_has_one_record(tmp_path: Path) -> None:
    assert write(tmp_path, 0, 1, 1, 2) == [True, True, False, True]
    assert write(tmp_path, 2, 3) == [False, True]
    assert batches(tmp_path) == [0, 1, 2, 3]


def test_an_older_copy_of_the_checkpoint_takes_later_records_away(tmp_path: Path) -> None:
    write(tmp_path, 0, 1, 2, 3)
    assert write(tmp_path, 2) == [True]
    assert batches(tmp_path) == [0, 1, 2]


def test_half_a_line_is_cut_off(tmp_path: Path) -> None:
    write(tmp_path, 0, 1)
    (segment,) = (tmp_path / "decisions").iterdir()
    whole = segment.read_bytes()
    for length in (len(whole) - 1, len(whole) - 20):
        segment.write_bytes(whole[:length])
        assert batches(tmp_path) == [0]
    write(tmp_path, 1, 2)
    assert batches(tmp_path) == [0, 1, 2]


def test_a_journal_of_another_checkpoint_is_deleted(tmp_path: Path) -> None:
    write(tmp_path, 5, identity="another")
    write(tmp_path, 0)
    assert batches(tmp_path) == [0]


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write(tmp_path, 0)
    finally:
        os.umask(before)
    directory = tmp_path / "decisions"
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (directory, *directory.iterdir())]
    assert modes == [0o700, 0o600]


def test_it_is_bounded_and_keeps_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_journal, "SEGMENT_BYTES", 500)
    monkeypatch.setattr(decision_journal, "MAX_SEGMENTS", 3)
    write(tmp_path, *range(200))
    files = sorted((tmp_path / "decisions").iterdir())
    assert [path.suffix for path in files] == [".logz", ".logz", ".log"]
    known = batches(tmp_path)
    assert known == [*range(known[0], 200)] and 10 < len(known) < 40
    write(tmp_path, 200)
    assert batches(tmp_path)[-2:] == [199, 200]


def test_a_crash_while_a_file_is_packed_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_journal, "SEGMENT_BYTES", 500)
    write(tmp_path, *range(12))
    before = batches(tmp_path)
    packed = next((tmp_path / "decisions").glob("*.logz"))
    packed.with_suffix(".log").write_bytes(zlib.decompress(packed.read_bytes()))
    assert batches(tmp_path) == before
    write(tmp_path, 12)
    assert batches(tmp_path) == [*before, 12]
    assert not packed.with_suffix(".log").exists()


def test_too_long_a_record_is_left_out(tmp_path: Path) -> None:
    journal = DecisionJournal(tmp_path, MINE)
    assert not journal.append({"batch": 0, "text": "x" * 100_000})
    assert journal.append({"batch": 1})
    journal.close()
    assert batches(tmp_path) == [1]


def test_killed_again_and_again_it_has_each_micro_batch_once(tmp_path: Path) -> None:
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"going\n"
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        known = batches(tmp_path)
        assert known == [*range(len(known))] and len(known) > 50


def test_killed_again_and_again_it_stays_bounded(tmp_path: Path) -> None:
    segment_bytes, max_segments = 2_000, 3
    newest = -1
    for _ in range(5):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(segment_bytes), str(max_segments)],
            stdout=subprocess.PIPE,
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"going\n"
        time.sleep(random.uniform(0, 0.1))  # noqa: S311
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        # One file more may be there: a packed one beside that which it was packed from.
        files = [*(tmp_path / "decisions").iterdir()]
        assert len(files) <= max_segments + 2
        assert sum(path.stat().st_size for path in files) < (max_segments + 2) * segment_bytes
        known = batches(tmp_path)
        assert known == [*range(known[0], known[-1] + 1)] and known[-1] >= newest
        newest = known[-1]
    assert known[0] > 0
