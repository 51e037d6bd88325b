"""Generations of a checkpoint, and drains that a crash has broken off; all without a JVM."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.engine.driver.journal import FileJournal
from streamer.engine.planner.planner_channels import MicroBatchOffset
from streamer.plan import Plan, make_plan
from streamer.sdk.input.replayable import LatestOffset, Limit
from streamer.spark.checkpoint.checkpoint import Checkpoint, CheckpointError
from streamer.spark.checkpoint.generations import (
    Drain,
    begin_drain,
    begin_generation,
    cancel_drain,
    delete_old_generations,
    load_running,
    read_drain,
    restore_record,
    save_running,
)
from streamer.spark.checkpoint.pickled_values import write_value
from streamer.spark.query.drain_source import DrainLimit, with_flush_at_end

FITS = {"input": "file", "window": "grid(1s)", "key": None, "shards": 2}
OTHER = {**FITS, "window": "grid(2s)"}


def plan(size: str = "1s") -> Plan:
    text = f"input: {{stdin: {{}}}}\nbuffer: {{tumbling_window: {{size: {size}}}}}\n"
    return make_plan(parse_config(text, "a.yaml"))


def logged(spark: Path, log: str, number: int, *offsets: Any) -> None:
    (spark / log).mkdir(parents=True, exist_ok=True)
    body = "\n".join(["v1", '{"batchTimestampMs":0}', *map(json.dumps, offsets)])
    (spark / log / str(number)).write_text(body)


@pytest.fixture
def held(tmp_path: Path) -> Any:
    checkpoint = Checkpoint(tmp_path / "c")
    checkpoint.bind(FITS, {"": ["a.jsonl"]})
    for number, place in ((0, 10), (1, 20), (2, 30)):
        offset = {"data": {"pos": place}, "tick": 7, "start": "x", "ended": True, "time": 5}
        logged(checkpoint.spark, "offsets", number, offset, {"topic": {"0": place}})
    for number in (0, 1):
        logged(checkpoint.spark, "commits", number)
    yield checkpoint
    checkpoint.close()


def test_a_generation_goes_on_from_what_is_committed_and_not_from_what_was_planned(held) -> None:
    former = held.spark
    begin_generation(held, OTHER, keeps_input=True, revision="7")
    assert held.start_offset == MicroBatchOffset({"pos": 20}, batch_time=5)
    assert held.kafka_start_offsets == [{"topic": {"0": 20}}]
    assert held.spark != former and not held.is_resumable and held.revision == "7"
    assert held.check_fingerprint(OTHER) == OTHER and held.spool == held.directory / "spool"
    assert held.read_record()["inputs"] == {"": ["a.jsonl"]}


def test_a_generation_that_took_nothing_in_goes_on_from_where_it_began(held) -> None:
    begin_generation(held, OTHER, keeps_input=True)
    begin_generation(held, FITS, keeps_input=True)
    assert held.start_offset == MicroBatchOffset({"pos": 20}, batch_time=5)


def test_another_input_begins_at_its_beginning_with_a_spool_of_its_own(held) -> None:
    begin_generation(held, {**OTHER, "input": "stdin"}, keeps_input=False)
    assert held.start_offset is None and held.read_record()["inputs"] == {}
    assert held.spool == held.directory / "spool-1"


def test_a_checkpoint_is_called_the_same_in_all_its_generations(held) -> None:
    called = held.identity
    begin_generation(held, OTHER, keeps_input=True)
    held.bind(OTHER, {})
    assert held.identity == called != ""


def test_micro_batches_of_generations_have_numbers_of_their_own(held) -> None:
    before = held.global_batch_number(3)
    begin_generation(held, OTHER, keeps_input=True)
    assert held.global_batch_number(0) > before == 3


def test_what_a_micro_batch_has_written_that_is_read_again_is_taken_back(held, tmp_path) -> None:
    out = tmp_path / "out"
    out.write_bytes(b"committed\n")
    journal = FileJournal(held.directory / "files.json")
    journal.begin(held.global_batch_number(2), [str(out)])
    out.write_bytes(b"committed\nplanned\n")
    begin_generation(held, OTHER, keeps_input=True)
    assert out.read_bytes() == b"committed\n"


def test_what_a_committed_micro_batch_has_written_stays(held, tmp_path) -> None:
    out = tmp_path / "out"
    journal = FileJournal(held.directory / "files.json")
    journal.begin(held.global_batch_number(1), [str(out)])
    out.write_bytes(b"committed\n")
    begin_generation(held, OTHER, keeps_input=True)
    assert out.read_bytes() == b"committed\n"


def test_what_former_generations_have_left_is_swept_away(held) -> None:
    former = held.spark
    (held.directory / "spool").mkdir()
    begin_generation(held, {**OTHER, "input": "stdin"}, keeps_input=False)
    held.spark.mkdir()
    delete_old_generations(held)
    assert held.spark.exists() and not former.exists()
    assert not (held.directory / "spool").exists()


def test_a_generation_that_never_ran_is_gone_back_from(held) -> None:
    before, former = held.read_record(), held.spark
    begin_generation(held, OTHER, keeps_input=True)
    restore_record(held, before)
    assert held.spark == former and held.is_resumable and held.check_fingerprint(FITS) == FITS


def test_the_end_of_a_run_is_the_end_of_all_its_generations(held) -> None:
    begin_generation(held, OTHER, keeps_input=True)
    held.spark.mkdir()
    held.finish()
    assert held.clear_finished_run() and not [*held.directory.glob("spark*")]
    assert held.global_batch_number(0) == 0 and held.start_offset is None


def test_what_inputs_remember_later_leaves_the_generation_as_it_is(held) -> None:
    begin_generation(held, OTHER, keeps_input=True)
    record = held.read_record()
    held.bind(OTHER, {"": ["b.jsonl"]})
    assert held.read_record() == {**record, "inputs": {"": ["b.jsonl"]}}


def test_a_drain_is_remembered_until_a_generation_begins(held) -> None:
    assert read_drain(held) is None
    begin_drain(held, Drain(plan(), keeps_input=True))
    held.bind(FITS, {})
    found = read_drain(held)
    assert found is not None and found.keeps_input and found.plan == plan()
    assert stat.S_IMODE((held.directory / "drain.plan").stat().st_mode) == 0o600
    begin_generation(held, OTHER, keeps_input=True)
    assert read_drain(held) is None
    delete_old_generations(held)
    assert not (held.directory / "drain.plan").exists()


def test_a_drain_that_cannot_be_done_is_forgotten(held) -> None:
    record = held.read_record()
    begin_drain(held, Drain(plan(), keeps_input=True))
    cancel_drain(held)
    assert held.read_record() == record and not (held.directory / "drain.plan").exists()


@pytest.mark.parametrize("harm", ["gone", "other", "version"])
def test_a_drain_that_cannot_be_read_says_what_to_do(held, harm) -> None:
    begin_drain(held, Drain(plan(), keeps_input=True))
    path = held.directory / "drain.plan"
    if harm == "gone":
        os.unlink(path)
    elif harm == "other":
        path.write_bytes(b"something else")
    else:
        path.write_bytes(path.read_bytes().replace(b'"version": "', b'"version": "0.', 1))
    with pytest.raises(CheckpointError, match="letting open windows out.*start the former config"):
        read_drain(held)


class Ten:
    """A source of ten messages, which are never the last."""

    def latest_offset(self, start: Any, now: int, limit: Limit) -> LatestOffset:
        end = min(start["n"] + limit.messages, 10)
        return LatestOffset({"n": end}, end - start["n"], has_more=end < 10)


def test_a_drain_takes_nothing_or_all_that_there_is() -> None:
    source: Any = Ten()
    nothing = DrainLimit().apply_to(source).latest_offset({"n": 3}, 0, Limit(5))
    assert nothing == LatestOffset({"n": 3}, 0, is_ended=True)
    some = DrainLimit(to_end=True).apply_to(source).latest_offset({"n": 3}, 0, Limit(5))
    assert (some.offset, some.is_ended) == ({"n": 8}, False)
    rest = DrainLimit(to_end=True).apply_to(source).latest_offset(some.offset, 0, Limit(5))
    assert (rest.offset, rest.is_ended) == ({"n": 10}, True)


@pytest.mark.parametrize("buffer", ["tumbling_window", "system_window"])
def test_windows_of_a_drain_come_out_whatever_the_config_says(buffer: str) -> None:
    text = f"input: {{stdin: {{}}}}\nbuffer: {{{buffer}: {{size: 1s, end_of_input: keep}}}}\n"
    made = make_plan(parse_config(text, "a.yaml"))
    found = with_flush_at_end(made)
    assert made.window is not None and made.window.end_of_input == "keep"
    assert found.window is not None and found.window.end_of_input == "flush"
    assert found.fingerprint == made.fingerprint


def test_what_runs_is_remembered_for_its_generation(held) -> None:
    text = "input: {stdin: {}}\nbuffer: {tumbling_window: {size: 1s}}\n"
    config = parse_config(text, "a.yaml")
    assert load_running(held) is None
    save_running(held, config, make_plan(config))
    assert load_running(held) == (config, make_plan(config))
    assert stat.S_IMODE((held.directory / "running.plan").stat().st_mode) == 0o600
    (held.directory / "running.plan").chmod(0o622)
    assert load_running(held) is None, "others may have written it"
    (held.directory / "running.plan").chmod(0o600)
    begin_generation(held, OTHER, keeps_input=True)
    assert load_running(held) is None


def moved(head: dict[str, Any]) -> None:
    classes = head["classes"]
    name = next(one for one in classes if one.endswith(":Plan"))
    classes["streamer.plan.gone:Plan"] = classes.pop(name)


def another_field(head: dict[str, Any]) -> None:
    next(fields for name, fields in head["classes"].items() if name.endswith(":Plan")).insert(
        1, "x"
    )


def without_classes(head: dict[str, Any]) -> None:
    del head["classes"]


@pytest.mark.parametrize("change", [moved, another_field, without_classes])
def test_what_another_build_has_pickled_is_not_read_and_nothing_ends_for_it(held, change) -> None:
    config = parse_config("input: {stdin: {}}\nbuffer: {tumbling_window: {size: 1s}}\n", "a.yaml")
    save_running(held, config, make_plan(config))
    begin_drain(held, Drain(plan(), keeps_input=True))
    for name in ("running.plan", "drain.plan"):
        line, _, body = (held.directory / name).read_bytes().partition(b"\n")
        head = json.loads(line)
        change(head)
        (held.directory / name).write_bytes(json.dumps(head).encode() + b"\n" + body)
    lines: list[tuple[str, str, Any]] = []
    assert load_running(held, lambda *line: lines.append(line)) is None
    ((level, _, fields),) = lines
    assert level == "WARN" and "another build of streamer has written it" in fields["reason"]
    with pytest.raises(
        CheckpointError, match="another build of streamer .*start the streamer that"
    ):
        read_drain(held)


class Breaks:
    """What ends in an error of its own when it is read again."""

    def __reduce__(self) -> Any:
        return (_broken, ("kept",))


_BREAKS = {"now": False}


def _broken(text: str) -> str:
    if _BREAKS["now"]:
        raise ZeroDivisionError(text)
    return text


@pytest.mark.parametrize("harm", ["error", b"", b"x", b"{}", b"[1]\nx", b'{"digest": 1}\nx'])
def test_nothing_that_reading_it_again_raises_ends_a_start(held, harm, monkeypatch) -> None:
    path = held.directory / "running.plan"
    write_value(path, Breaks())
    monkeypatch.setitem(_BREAKS, "now", True)
    if harm != "error":
        path.write_bytes(harm)
    lines: list[Any] = []
    assert load_running(held, lambda *line: lines.append(line)) is None and len(lines) == 1
