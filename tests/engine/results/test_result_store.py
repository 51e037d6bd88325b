"""Results are written once for each micro-batch, become few files, and expire by their windows."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from streamer.core.durations import DAY, HOUR, MINUTE, SECOND
from streamer.engine.results import result_store as stores
from streamer.engine.results.compaction import Compaction
from streamer.engine.results.layout import Layout, RetentionError, RetentionRules, take_snapshot
from streamer.engine.results.query_model import ResultQuery
from streamer.engine.results.result_store import COMPACT_AFTER_FILES, GRACE_NS

from .kept import RULES, Row, T, contents, portion, read, store


def number(n: int, end: int = T, key: str = "a", **more: object) -> bytes:
    return portion([Row(key, end, b'{"n":%d}' % n, **more)])  # type: ignore[arg-type]


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.rglob("*.parquet"))


def test_a_micro_batch_is_a_file_and_its_replay_replaces_it(tmp_path: Path) -> None:
    kept = store(tmp_path)
    kept.write(0, [number(1)], T)
    kept.write(1, [number(2, T + MINUTE)], T)
    assert len(files(tmp_path)) == 2
    kept.write(1, [number(3, T + MINUTE)], T)
    assert contents(tmp_path) == [{"n": 1}, {"n": 3}]
    kept.write(1, [], T)
    assert contents(tmp_path) == [{"n": 1}]


def test_a_program_that_starts_again_goes_on_and_replays(tmp_path: Path) -> None:
    store(tmp_path).write(4, [number(1)], T)
    store(tmp_path, afresh=False).write(4, [number(2)], T)
    assert contents(tmp_path, revisions=True) == [{"n": 2}]


def test_a_stream_that_begins_anew_adds_revisions_to_the_results_that_there_are(
    tmp_path: Path,
) -> None:
    store(tmp_path).write(0, [number(1)], T)
    store(tmp_path).write(0, [number(2)], T)
    assert contents(tmp_path) == [{"n": 2}]
    assert contents(tmp_path, revisions=True) == [{"n": 1}, {"n": 2}]


def test_an_older_checkpoint_in_the_place_of_a_newer_one_loses_no_results(tmp_path: Path) -> None:
    kept = store(tmp_path)
    for batch in range(COMPACT_AFTER_FILES + 1):
        kept.write(batch, [number(batch, T + batch * MINUTE)], T)
    assert kept.manifest.upto == kept.manifest.epoch_of(COMPACT_AFTER_FILES - 1)
    again = store(tmp_path, afresh=False)
    again.write(3, [number(100, T + 3 * MINUTE)], T)
    found = contents(tmp_path)
    assert len(found) == COMPACT_AFTER_FILES + 1
    assert found[3] == {"n": 100}


def test_what_is_compacted_is_all_there_and_sorted_by_key(tmp_path: Path) -> None:
    kept = store(tmp_path)
    rows = [Row(f"k{n * 7 % 100:02d}", T + n * SECOND, b'{"n":%d}' % n) for n in range(200)]
    for batch in range(20):
        kept.write(batch, [portion(rows[batch * 10 : batch * 10 + 10])], T)
    before = [result.content for result in read(tmp_path)]
    assert before == [row.content for row in rows]
    layout = Layout(tmp_path)
    manifest = layout.read()
    assert manifest is not None
    [file] = manifest.files
    assert file.rows == 160
    table = pq.read_table(layout.files / file.name)
    places = list(zip(table["key"].to_pylist(), table["window_end"].to_pylist(), strict=True))
    assert places == sorted(places)
    assert len(contents(tmp_path, key="k07")) == 2


def test_compaction_leaves_out_the_newest_micro_batch_which_may_come_again(tmp_path: Path) -> None:
    kept = store(tmp_path)
    for batch in range(COMPACT_AFTER_FILES + 1):
        kept.write(batch, [number(batch, T + batch)], T)
    kept.write(COMPACT_AFTER_FILES, [number(1000, T + COMPACT_AFTER_FILES)], T)
    assert contents(tmp_path)[-1] == {"n": 1000}
    assert len(contents(tmp_path, revisions=True)) == COMPACT_AFTER_FILES + 1


def test_a_row_is_written_anew_few_times_and_a_bucket_has_few_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    plain = Compaction._describe_file

    def counted(self, *args):
        made.append(plain(self, *args))
        return made[-1]

    monkeypatch.setattr(Compaction, "_describe_file", counted)
    kept = store(tmp_path)
    batches = 16 * COMPACT_AFTER_FILES
    for batch in range(batches + 1):
        kept.write(batch, [number(batch, T + batch)], T)
    assert len(kept.manifest.files) <= 5
    assert sum(file.rows for file in made) <= 6 * batches
    assert len(contents(tmp_path)) == batches + 1
    spans = [(file.oldest, file.newest) for file in kept.manifest.files]
    assert all(a[1] < b[0] for a, b in zip(spans, spans[1:], strict=False))


def test_compaction_keeps_the_latest_revision_and_knows_how_many_there_were(
    tmp_path: Path,
) -> None:
    kept = store(tmp_path)
    for batch in range(COMPACT_AFTER_FILES + 3):
        two = [Row(key, T, b'{"n":%d}' % batch, emit="changes") for key in ("a", "b")]
        kept.write(batch, [portion(two)], T)
    for key in ("a", "b"):
        [latest] = read(tmp_path, key=key)
        assert latest.content == b'{"n":%d}' % (COMPACT_AFTER_FILES + 2)
        assert latest.revision == COMPACT_AFTER_FILES + 3
        revisions = [result.revision for result in read(tmp_path, key=key, revisions=True)]
        assert revisions == [COMPACT_AFTER_FILES + n for n in range(4)]


def test_compaction_keeps_all_that_was_forwarded(tmp_path: Path) -> None:
    kept = store(tmp_path)
    for batch in range(COMPACT_AFTER_FILES + 3):
        kept.write(batch, [number(batch, emit="forward")], T)
    assert contents(tmp_path) == [{"n": n} for n in range(COMPACT_AFTER_FILES + 3)]


def test_a_session_that_grows_is_one_after_compaction_too(tmp_path: Path) -> None:
    kept = store(tmp_path, RetentionRules(7 * DAY, sessions=True, follows=True))
    for batch in range(COMPACT_AFTER_FILES * 2 + 3):
        end = T + batch * SECOND
        kept.write(batch, [number(batch, end, start=T), number(batch, end, "b", start=end)], T)
    [grown] = read(tmp_path, key="a")
    assert (grown.start, grown.end) == (T, T + (COMPACT_AFTER_FILES * 2 + 2) * SECOND)
    assert grown.revision == COMPACT_AFTER_FILES * 2 + 3
    assert len(read(tmp_path, key="b")) == COMPACT_AFTER_FILES * 2 + 3


def test_results_expire_by_the_end_of_their_windows(tmp_path: Path) -> None:
    kept = store(tmp_path, RetentionRules(HOUR))
    kept.write(0, [portion([Row(str(n), T + n * 10 * MINUTE) for n in range(6)])], T)
    assert len(read(tmp_path, T + HOUR - 1)) == 6
    assert len(read(tmp_path, T + HOUR)) == 5
    assert len(read(tmp_path, T + HOUR + 25 * MINUTE)) == 3
    assert read(tmp_path, T + 2 * HOUR) == []


def test_results_of_a_replay_of_old_messages_age_by_its_windows(tmp_path: Path) -> None:
    kept = store(tmp_path, RetentionRules(HOUR, follows=True))
    kept.write(0, [number(1)], T)
    years_later = T + 1000 * DAY
    assert contents(tmp_path, years_later) == [{"n": 1}]
    kept.write(1, [number(2, T + HOUR - 1)], T)
    assert len(contents(tmp_path, years_later)) == 2
    kept.write(2, [number(3, T + HOUR)], T)
    assert contents(tmp_path, years_later) == [{"n": 2}, {"n": 3}]
    # A window of the far future lets nothing expire before its time.
    kept.write(3, [number(4, T + 900 * DAY)], T)
    assert len(contents(tmp_path, T + HOUR + 1)) == 3


def test_expired_files_are_dropped_and_rows_trimmed(tmp_path: Path) -> None:
    kept = store(tmp_path, RetentionRules(HOUR))
    for batch in range(COMPACT_AFTER_FILES + 1):
        kept.write(batch, [number(batch, T + batch * MINUTE)], T + batch * MINUTE)
    assert [file.rows for file in kept.manifest.files] == [7, 9]
    kept.write(COMPACT_AFTER_FILES + 1, [], T + HOUR + 6 * MINUTE)
    assert [file.rows for file in kept.manifest.files] == [9]
    for batch in range(COMPACT_AFTER_FILES + 2, 2 * COMPACT_AFTER_FILES + 2):
        late = number(batch, T + 15 * MINUTE, f"late {batch}")
        kept.write(batch, [late], T + HOUR + 10 * MINUTE)
    # Five rows of the nine are left, beside those that have come.
    assert [file.rows for file in kept.manifest.files] == [5 + COMPACT_AFTER_FILES]
    assert len(read(tmp_path, T + HOUR + 10 * MINUTE)) == 6 + COMPACT_AFTER_FILES


def test_files_that_do_not_count_stay_for_readers_and_then_go(tmp_path: Path) -> None:
    clock = [0]
    kept = store(tmp_path, elapsed=lambda: clock[0])
    for batch in range(COMPACT_AFTER_FILES + 1):
        kept.write(batch, [number(batch, T + batch)], T)
    assert len(files(tmp_path)) == COMPACT_AFTER_FILES + 2
    clock[0] = GRACE_NS - 1
    kept.write(COMPACT_AFTER_FILES + 1, [], T)
    assert len(files(tmp_path)) == COMPACT_AFTER_FILES + 2
    clock[0] = GRACE_NS
    kept.write(COMPACT_AFTER_FILES + 2, [], T)
    assert len(files(tmp_path)) == 2
    assert len(contents(tmp_path)) == COMPACT_AFTER_FILES + 1


def test_what_a_program_has_left_behind_that_was_killed_is_cleaned_up(tmp_path: Path) -> None:
    clock = [0]
    kept = store(tmp_path)
    kept.write(0, [number(1)], T)
    for name in ("new/x.parquet.tmp", "files/000000000009.parquet.tmp"):
        (tmp_path / name).write_bytes(b"half of it")
    (tmp_path / "files" / "000000000009.parquet").write_bytes(b"all of it, but nobody knows")
    again = store(tmp_path, afresh=False, elapsed=lambda: clock[0])
    assert len(files(tmp_path)) == 2 and not list(tmp_path.rglob("*.tmp"))
    for batch in range(1, COMPACT_AFTER_FILES + 3):
        again.write(batch, [number(batch, T + batch)], T)
    clock[0] = GRACE_NS
    again.write(COMPACT_AFTER_FILES + 3, [], T)
    listed = {file.name for file in again.manifest.files}
    assert {path.name for path in (tmp_path / "files").iterdir()} == listed
    assert len(contents(tmp_path)) == COMPACT_AFTER_FILES + 3


def test_a_compaction_that_fails_is_tried_again_later_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, lines = [0], []
    kept = store(tmp_path, elapsed=lambda: clock[0], log=lambda *line: lines.append(line))

    def full(self, *args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Compaction, "_write_sorted_file", full)
        for batch in range(COMPACT_AFTER_FILES + 5):
            kept.write(batch, [number(batch, T + batch)], T)
        assert [line[0] for line in lines] == ["WARN"]
        assert "No space left" in lines[0][2]["error"]
    assert len(contents(tmp_path)) == COMPACT_AFTER_FILES + 5
    clock[0] = HOUR
    kept.write(COMPACT_AFTER_FILES + 5, [], T)
    assert len(kept.manifest.files) == 1
    assert len(contents(tmp_path)) == COMPACT_AFTER_FILES + 5


def test_a_closed_store_compacts_no_more_but_writes(tmp_path: Path) -> None:
    kept = store(tmp_path)
    kept.write(0, [number(0, T)], T)
    kept.close()
    for batch in range(1, COMPACT_AFTER_FILES + 3):
        kept.write(batch, [number(batch, T + batch)], T)
    assert kept.manifest.files == ()
    assert len(contents(tmp_path)) == COMPACT_AFTER_FILES + 3


def test_closing_gives_up_what_is_being_compacted(tmp_path: Path) -> None:
    begun: list[object] = []
    kept = store(tmp_path, run_in_background=begun.append)
    for batch in range(COMPACT_AFTER_FILES + 1):
        kept.write(batch, [number(batch, T + batch)], T)
    [work] = begun
    kept._closed = True
    assert callable(work)
    work()
    assert kept.manifest.files == ()
    kept.close()


def test_compaction_goes_on_beside_the_stream(tmp_path: Path) -> None:
    kept = store(tmp_path, run_in_background=stores.run_in_thread)
    for batch in range(4 * COMPACT_AFTER_FILES):
        kept.write(batch, [number(batch, T + batch)], T)
    kept._work_lock.acquire()
    kept._work_lock.release()
    assert kept.manifest.files
    assert len(contents(tmp_path)) == 4 * COMPACT_AFTER_FILES
    kept.close()


def test_the_width_of_buckets_follows_the_retention() -> None:
    widths = {hours: RetentionRules(hours * HOUR).width for hours in (1, 24, 24 * 7, 24 * 365)}
    assert widths == {1: 10 * MINUTE, 24: HOUR, 24 * 7: DAY, 24 * 365: 30 * DAY}


def test_a_retention_that_was_changed_holds_for_what_is_there(tmp_path: Path) -> None:
    kept = store(tmp_path, RetentionRules(HOUR))
    for batch in range(COMPACT_AFTER_FILES + 1):
        kept.write(batch, [number(batch, T + batch * MINUTE)], T)
    longer = store(tmp_path, RetentionRules(7 * DAY), afresh=False)
    assert len(read(tmp_path, T + DAY)) == COMPACT_AFTER_FILES + 1
    for batch in range(COMPACT_AFTER_FILES + 1, 2 * COMPACT_AFTER_FILES + 2):
        longer.write(batch, [number(batch, T + batch * MINUTE)], T)
    assert len(read(tmp_path, T + DAY)) == 2 * COMPACT_AFTER_FILES + 2


@pytest.mark.parametrize("text", ["", "{}", '{"format": 2}', "[]", '{"format": 1, "rules": 3}'])
def test_a_manifest_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    store(tmp_path).write(0, [number(1)], T)
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(RetentionError, match="manifest.json cannot be read .*restore it"):
        store(tmp_path)
    with pytest.raises(RetentionError, match="manifest.json cannot be read"):
        read(tmp_path)


def test_where_nothing_can_be_written_the_stream_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    with pytest.raises(RetentionError, match="results of windows cannot be kept in"):
        store(tmp_path / "results")


def test_a_snapshot_holds_each_result_once_while_files_are_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = store(tmp_path)
    for batch in range(COMPACT_AFTER_FILES):
        kept.write(batch, [number(batch, T + batch)], T)
    layout = Layout(tmp_path)
    epochs = layout.epochs
    moves = [lambda: kept.write(COMPACT_AFTER_FILES, [], T)]

    def meanwhile() -> list[int]:
        found = epochs()
        if moves:
            moves.pop()()
        return found

    monkeypatch.setattr(layout, "epochs", meanwhile)
    found = take_snapshot(layout)
    assert found is not None and len(found.manifest.files) == 1 and found.new == ()
    assert RULES.retention == found.manifest.rules.retention and ResultQuery().limit == 1000
