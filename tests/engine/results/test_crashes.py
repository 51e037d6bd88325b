"""Killed at any moment, on a full disk: no result is lost, and none is there twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from streamer.engine.driver.delivery import Delivery
from streamer.engine.driver.delivery_setup import DeliveryClocks, DeliverySinks
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.engine.results.layout import RetentionError
from streamer.engine.results.result_store import COMPACT_AFTER_FILES, GRACE_NS
from tests.servers.disks import small_disk

from .kept import Row, T, contents, portion, read, store
from .writer import rows_of

SEED = int(os.environ.get("STREAMER_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
KILLS = 8
pytestmark = pytest.mark.slow


def expected(batches: range) -> Counter[tuple[str, int, bytes]]:
    """Return what there is after so many micro-batches: key, end and content."""
    found: Counter[tuple[str, int, bytes]] = Counter()
    revised = None
    for batch in batches:
        for row in rows_of(batch) if batch % 4 else ():
            if row.key == "all":
                revised = row
            else:
                found[f'"{row.key}"', row.end, row.content] += 1
    if revised is not None:
        found['"all"', revised.end, revised.content] += 1
    return found


def there(directory: Path) -> Counter[tuple[str, int, bytes]]:
    return Counter((str(one.key), one.end, one.content) for one in read(directory))


def is_whole(directory: Path, committed: int) -> int:
    """Check that all micro-batches up to one are there, once; return which."""
    found = there(directory)
    last = max((int(content) for _, _, content in found), default=-1)
    assert last >= committed - 1  # every fourth has no results
    assert found == expected(range(last + 1))
    return last


def test_a_program_that_is_killed_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    print(f"STREAMER_SEED={SEED}")
    results, commits = tmp_path / "results", tmp_path / "commits"
    batches = 0
    for _ in range(KILLS):
        # Who reads is given time for it, as by a stream; the others see files go at any moment.
        looked_at = chance.random() < 0.3
        command = [
            sys.executable,
            "-m",
            "tests.engine.results.writer",
            str(tmp_path),
            str(chance.random())[2:10],
            str(GRACE_NS if looked_at else 0),
        ]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert writer.stdout is not None
            for _ in range(chance.randrange(1, 40)):
                assert writer.stdout.readline(), "the writer has ended by itself"
            if looked_at:
                is_whole(results, -1)  # while it is written
            time.sleep(chance.random() * 0.02)
        finally:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            writer.stdout.close()
        committed = int(commits.read_text().split()[-1]) if commits.exists() else -1
        batches = max(batches, is_whole(results, committed))
    assert batches > KILLS
    # What was left behind goes, once nobody can be reading it.
    clock = [0]
    kept = store(results, afresh=False, elapsed=lambda: clock[0])
    number = batches + 1
    for _ in range(2):
        for _ in range(COMPACT_AFTER_FILES + 2):
            kept.write(number, [portion([Row("z", T + number)])], T)
            number += 1
        clock[0] += 10**12
    for _ in range(2):
        # The first of them may put files together, and those are still there for who reads.
        kept.write(number, [], T)
        number += 1
        clock[0] += 10**12
    listed = {file.name for file in kept.manifest.files}
    assert {path.name for path in (results / "files").iterdir()} == listed
    assert not list(results.rglob("*.tmp"))


def test_a_full_disk_holds_the_stream_up_and_nothing_is_lost(tmp_path: Path) -> None:
    directory = tmp_path / "results"
    with small_disk(directory, 400_000):
        kept = store(directory)
        filler = directory / "filler"
        waits: list[float] = []
        lines: list[str] = []

        def slept(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 4:
                filler.unlink()

        delivery = Delivery(
            [],
            lambda level, text, fields: lines.append(text),
            lambda: False,
            clocks=DeliveryClocks(sleep=slept),
            sinks=DeliverySinks(results=kept),
        )
        content = random.Random(1).randbytes(60_000)
        for batch in range(3):
            if batch == 2:
                free = os.statvfs(directory)
                filler.write_bytes(b"x" * (free.f_bavail * free.f_bsize - 8192))
            body = portion([Row("a", T + batch, b'"%d"' % batch), Row("b", T + batch, content)])
            status = b'{"now":%d,"held":0,"ended":false}' % T
            frames = [
                Frame(FrameKind.RESULT, 0, 0, 0, -1, "", body),
                Frame(FrameKind.STATUS, 0, 0, 0, 0, "", status),
            ]
            delivery.deliver(batch, frames)
        assert any("Failed to keep the results of windows: " in line for line in lines)
        assert contents(directory, key="a") == ["0", "1", "2"]
        assert [one.content for one in read(directory, key="b")] == [content] * 3
        assert not list(directory.rglob("*.tmp"))


def test_compaction_on_a_full_disk_waits_for_room(tmp_path: Path) -> None:
    directory = tmp_path / "results"
    with small_disk(directory, 1_500_000):
        clock, lines = [0], []
        kept = store(directory, elapsed=lambda: clock[0], log=lambda *line: lines.append(line))
        chance = random.Random(2)
        for batch in range(COMPACT_AFTER_FILES + 1):
            kept.write(batch, [portion([Row("a", T + batch, chance.randbytes(60_000))])], T)
        assert [line[0] for line in lines] == ["WARN"] and kept.manifest.files == ()
        assert len(read(directory)) == COMPACT_AFTER_FILES + 1
        assert not list(directory.rglob("*.tmp"))
        subprocess.run(["mount", "-o", "remount,size=8000000", str(directory)], check=True)
        clock[0] += 10**12
        kept.write(COMPACT_AFTER_FILES + 1, [], T)
        assert len(kept.manifest.files) == 1
        assert len(read(directory)) == COMPACT_AFTER_FILES + 1


def test_where_the_disk_is_full_at_the_start_it_is_said(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 65_536):
        (tmp_path / "disk" / "filler").write_bytes(b"x" * 65_536)
        with pytest.raises(RetentionError, match="cannot be kept in .* make room there"):
            store(tmp_path / "disk" / "results")
