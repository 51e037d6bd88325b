"""A stream whose shards change between its runs gives what one gives that never stood still."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.config import parse_config
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.message import Message
from streamer.engine.driver.shard_state_file import (
    ShardStateFile,
    load_initial_state,
    shard_state_path,
    write_shard_count,
)
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.plan import Plan, make_plan
from streamer.spark.checkpoint.checkpoint import Checkpoint, CheckpointError
from streamer.spark.checkpoint.generations import begin_rescaled_generation, delete_used_seed
from streamer.spark.checkpoint.rescaling import rescale_buffers, rescale_checkpoint
from streamer.window import DictStore, MicroBatchInfo, Shard
from tests.examples import examples

SIZE = 60
LATE = -1
COUNTS = """
    - mapping: |
        root = if batch_index() == 0 {
          {"key": this.k, "start": @window_start_unix_ms / 1000, "n": batch_size(),
           "sum": json("v").from_all().sum()}
        } else { deleted() }
"""
WHOLE = """
    - mapping: |
        root = if batch_index() == 0 {
          {"key": this.k, "start": @window_start_unix_ms / 1000,
           "ids": json("v").from_all().sort()}
        } else { deleted() }
"""
KINDS = {
    "folded": ("tumbling_window: {size: 60s", COUNTS),
    "whole": ("tumbling_window: {size: 60s", WHOLE),
    "sessions": ("session_window: {gap: 5s", COUNTS),
}
Event = tuple[int, str, int]
"""Event time, s; key; number."""


def text_of(kind: str, path: Path, end: str) -> str:
    window, mapping = KINDS[kind]
    return f"""
input: {{file: {{paths: [{path}]}}}}
buffer:
  {window}, timestamp_mapping: root = this.t, key_mapping: root = this.k, end_of_input: {end}}}
pipeline:
  processors: {mapping}
output: {{stdout: {{}}}}
spark: {{shards: 2}}
"""


def part(begin: int, late: int | None = None) -> list[Event]:
    """Events of 100 s, of some keys in every second, of others now and then; one may be late."""
    found = [
        (time, f"k{key}", 1000 * time + key)
        for time in range(begin, begin + 100)
        for key in range(9)
        if time % (3 * key + 1) == 0
    ]
    return found if late is None else [(late, "k1", LATE), *found]


def windows(events: list[Event]) -> dict[tuple[str, int], list[int]]:
    found: dict[tuple[str, int], list[int]] = {}
    for time, key, number in events:
        found.setdefault((key, time // SIZE * SIZE), []).append(number)
    return found


def sessions(events: list[Event]) -> dict[tuple[str, int], list[int]]:
    found: dict[tuple[str, int], list[int]] = {}
    last: dict[str, tuple[int, int]] = {}
    for time, key, number in events:
        start, end = last.get(key, (time, time))
        start = start if time - end <= 5 else time
        last[key] = start, time
        found.setdefault((key, start), []).append(number)
    return found


def expected(kind: str, events: list[Event]) -> list[dict[str, Any]]:
    groups = (sessions if kind == "sessions" else windows)(events)
    return [
        {"key": key, "start": start, "ids": sorted(numbers)}
        if kind == "whole"
        else {"key": key, "start": start, "n": len(numbers), "sum": sum(numbers)}
        for (key, start), numbers in groups.items()
    ]


def in_order(found: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(one, sort_keys=True, default=float) for one in found)


@pytest.mark.spark
@pytest.mark.parametrize("kind", KINDS)
def test_shards_change_twice_in_the_middle(
    kind: str, run_stream: Any, session: Any, tmp_path: Path
) -> None:
    if kind != "folded" and not os.environ.get("STREAMER_RESCALE"):
        pytest.skip("by hand: STREAMER_RESCALE=all; the kernel's laws hold for it without Spark")
    path = tmp_path / "in.jsonl"
    # The second part begins with an event whose window has closed: the clock must be known.
    late = None if kind == "sessions" else 3
    parts = [part(0), part(100, late=late), part(200)]
    said: list[dict[str, Any]] = []
    for events, shards in zip(parts, (3, 1, None), strict=True):
        with path.open("a") as file:
            file.writelines(json.dumps({"t": t, "k": k, "v": v}) + "\n" for t, k, v in events)
        text = text_of(kind, path, "keep" if shards else "flush")
        ran = run_stream(text)
        said += [json.loads(line) for line in ran.lines]
        if shards is not None:
            checkpoint = Checkpoint(tmp_path / "checkpoint")
            plan = make_plan(parse_config(text, "test.yaml"))
            done = rescale_checkpoint(plan, checkpoint, shards, lambda: session)
            assert done.shards_after == shards and done.former_state.exists()
            assert done.moved.messages == ran.last.held > 0
            delete_used_seed(checkpoint)
            assert done.former_state.exists(), "the new shards have not run"
            checkpoint.close()
    events = [event for some in parts for event in some if event[2] != LATE]
    wanted = [{**one, "start": float(one["start"])} for one in expected(kind, events)]
    assert in_order([{**one, "start": float(one["start"])} for one in said]) == in_order(wanted)
    assert ran.last.dropped.get("late", 0) == (late is not None)
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    delete_used_seed(checkpoint)
    left = sorted(path.name for path in checkpoint.directory.glob("s[pe]*-*"))
    assert left == [checkpoint.spark.name], "what came before is gone"
    checkpoint.close()


PLAN = make_plan(parse_config(text_of("folded", Path("in.jsonl"), "keep"), "test.yaml"))


def begun(place: Path | Checkpoint, shards: int = 2) -> Checkpoint:
    """A checkpoint whose shards have a clock, and have not run."""
    checkpoint = Checkpoint(place) if isinstance(place, Path) else place
    checkpoint.bind({**PLAN.fingerprint, "shards": shards}, {})
    state = checkpoint.directory / "made"
    state.mkdir()
    for shard in range(shards):
        assert PLAN.window is not None
        with ShardStateFile(shard_state_path(state, shard), new=True) as file:
            list(Shard(PLAN.window, file).step([MicroBatchInfo(1, "a").to_row(shard)]))
    begin_rescaled_generation(checkpoint, shards, state)
    return checkpoint


def never() -> Any:
    raise AssertionError("Spark is not needed")


def test_shards_that_have_not_run_are_changed_again_without_spark(tmp_path: Path) -> None:
    checkpoint = begun(tmp_path / "c")
    first = checkpoint.seed
    done = rescale_checkpoint(PLAN, checkpoint, 5, never)
    assert (done.shards_before, done.shards_after, done.former_state) == (2, 5, first)
    assert checkpoint.check_fingerprint(PLAN.fingerprint)["shards"] == 5
    assert checkpoint.seed is not None and len(list(checkpoint.seed.glob("*.state"))) == 5
    checkpoint.close()


KILLED = """
import os, signal, sys
from streamer.spark.checkpoint import generations, rescaling
from streamer.spark.checkpoint.checkpoint import Checkpoint
from tests.spark.checkpoint.test_rescaling import MOMENTS, PLAN, never

def killed(*args, **more):
    os.kill(os.getpid(), signal.SIGKILL)

rescaling.load_running = lambda checkpoint: (None, PLAN)
homes = {"rescaling": rescaling, "generations": generations, "Checkpoint": Checkpoint}
for moment, directory in zip(MOMENTS, sys.argv[1:], strict=True):
    if not os.fork():
        home, name = moment.split(".")
        setattr(homes[home], name, killed)
        rescaling.rescale_checkpoint(PLAN, Checkpoint(directory), 3, never)
        os._exit(0)
    print(os.WTERMSIG(os.wait()[1]))
"""
MOMENTS = {
    "rescaling.rescale": 2,
    "rescaling.begin_rescaled_generation": 2,
    "generations._revert_uncommitted_files": 2,
    "Checkpoint.write_record": 2,
    "rescaling.save_running": 3,
}
"""What is next when the program is killed, and the shards that there are then."""


def test_who_is_killed_leaves_the_old_shards_or_the_new_ones(tmp_path: Path) -> None:
    directories = [tmp_path / moment for moment in MOMENTS]
    for directory in directories:
        begun(directory).close()
    command = [sys.executable, "-c", KILLED, *map(str, directories)]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], timeout=80, capture_output=True)
    assert done.stdout.split() == [b"%d" % signal.SIGKILL] * len(MOMENTS), done.stderr
    for directory, shards in zip(directories, MOMENTS.values(), strict=True):
        checkpoint = Checkpoint(directory)
        assert checkpoint.check_fingerprint(PLAN.fingerprint)["shards"] == shards
        assert checkpoint.seed is not None
        assert len(list(checkpoint.seed.glob("*.state"))) == shards
        # Whatever was left over is not in the way.
        assert rescale_checkpoint(PLAN, checkpoint, 4, never).shards_after == 4
        checkpoint.close()


def test_a_full_disk_leaves_the_checkpoint_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = begun(tmp_path / "c")
    record = checkpoint.read_record()

    def full(*given: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("streamer.spark.checkpoint.rescaling.sync_entries", full)
    with pytest.raises(StreamerError, match="No space left on device; the checkpoint .* is as it"):
        rescale_checkpoint(PLAN, checkpoint, 3, never)
    assert checkpoint.read_record() == record
    assert not (tmp_path / "c" / "rescale.tmp").exists()
    checkpoint.close()


def test_a_store_begins_with_a_file_once(tmp_path: Path) -> None:
    with ShardStateFile(tmp_path / "0.state", new=True) as file:
        file.put(0, -1, b"head")
        file.put(7, 0, b"pack")
    store = DictStore()
    load_initial_state(store, tmp_path / "0.state")
    assert store.values == {(0, -1): b"head", (7, 0): b"pack"}
    store.delete(7, 0)
    load_initial_state(store, tmp_path / "gone.state")
    assert store.values == {(0, -1): b"head"}
    with pytest.raises(StreamerError, match="gone.state cannot be read"):
        load_initial_state(DictStore(), tmp_path / "gone.state")


def test_a_shard_of_a_buffer_that_was_added_has_no_file_and_begins_with_nothing(
    tmp_path: Path,
) -> None:
    write_shard_count(tmp_path, 6)
    store = DictStore()
    load_initial_state(store, tmp_path / "6.state")
    assert store.values == {}
    with pytest.raises(StreamerError, match="5.state cannot be read"):
        load_initial_state(store, tmp_path / "5.state")


def refused(plan: Plan, checkpoint: Checkpoint) -> str:
    with pytest.raises(StreamerError) as said:
        rescale_checkpoint(plan, checkpoint, 3, never)
    checkpoint.close()
    return str(said.value)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda c: c.finish(), "nothing is kept in the checkpoint"),
        (
            lambda c: c.write_record({**c.read_record(), "draining": {}}),
            "was letting open windows out",
        ),
        (
            lambda c: c.write_record({k: v for k, v in c.read_record().items() if k != "seed"}),
            "nothing is kept",
        ),
    ],
)
def test_what_cannot_be_rescaled_says_why(
    tmp_path: Path, change: Callable[[Checkpoint], None], text: str
) -> None:
    checkpoint = begun(tmp_path / "c")
    change(checkpoint)
    assert text in refused(PLAN, checkpoint)


def test_a_stream_without_windows_has_no_shards(tmp_path: Path) -> None:
    plain = make_plan(parse_config("input: {stdin: {}}\n", "test.yaml"))
    assert "has no windows" in refused(plain, Checkpoint(tmp_path / "c"))


def test_another_config_is_refused(tmp_path: Path) -> None:
    text = text_of("sessions", Path("in.jsonl"), "keep")
    other = make_plan(parse_config(text, "test.yaml"))
    assert "cannot go on with its open windows" in refused(other, begun(tmp_path / "c"))


def test_a_checkpoint_in_use_is_left_alone(tmp_path: Path) -> None:
    checkpoint = begun(tmp_path / "c")
    with pytest.raises(CheckpointError, match="another streamer uses the checkpoint"):
        Checkpoint(tmp_path / "c", wait=0.0)
    checkpoint.close()


BUFFERS = """
input: { stdin: {} }
buffers:
  - label: filled
    tumbling_window:
      timestamp_mapping: root = this.t
      key_mapping: root = this.k
      size: 10s
      allowed_lateness: 20s
      empty_windows: { emit: keys_seen, keys: [b, e], fill: previous, for: 40s }
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 {
              { "k": @window_key, "n": batch_size(), "v": json("v").from_all().max().catch(0) }
            } else { deleted() }
  - label: behind
    from: filled
    hopping_window: { key_mapping: root = this.k, size: 60s, every: 20s }
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 {
              {
                "k": this.k, "n": json("n").from_all().sum(), "avg": json("v").from_all().avg(),
                "median": json("v").from_all().median(), "all": json("v").from_all().count_by()
              }
            } else { deleted() }
  - label: visits
    from: filled
    session_window: { key_mapping: root = this.k, filter: this.n > 0, gap: 25s }
    pipeline: { processors: [ { mapping: 'root = this.merge({"all": batch_size()})' } ] }
  - label: gaps
    session_window:
      timestamp_mapping: root = this.t
      key_mapping: root = this.k
      gap: 5s
      gap_mapping: root = this.v + 1
      expected_keys: [c, e, f]
      allowed_lateness: 20s
      order: event_time
    pipeline: { processors: [ { mapping: 'root = {"k": @window_key, "v": this.v}' } ] }
  - label: totals
    global_window: { key_mapping: root = this.k, emit: each }
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 {
              {
                "k": this.k, "n": batch_size(), "p": json("v").from_all().percentile_approx(0.5),
                "stddev": json("v").from_all().stddev_pop(),
                "first": json("v").from_all().slice(0, 2)
              }
            } else { deleted() }
  - label: sorted
    keyed_state:
      key_mapping: root = this.k
      timestamp_mapping: root = this.t
      order: event_time
      allowed_lateness: 20s
    pipeline: { processors: [ { mapping: 'root = this.merge({"before": lag(this.v)})' } ] }
  - label: marked
    from: sorted
    tumbling_window:
      timestamp_mapping: root = this.t
      key_mapping: root = this.k
      size: 30s
      order: event_time
      emit: each
      emit_also: [close]
    pipeline: { processors: [ { mapping: root.all = json().from_all() } ] }
spark: { shards: 4 }
"""
"""What a window behind a window keeps, and all that is kept for the windows of other kinds."""

SENT = st.lists(st.tuples(st.integers(0, 20), st.sampled_from("abcd"), st.integers(0, 9)))
"""Seconds by which a message is earlier than the newest one may be; its key and its value."""


@cache
def plan_of_buffers() -> Plan:
    return make_plan(parse_config(BUFFERS))


def made_of_buffers(sent: list[list[tuple[int, str, int]]], turns: list[int]) -> Any:
    """Run a micro-batch of each list; before each, the shards become as many as `turns` says."""
    plan = plan_of_buffers()
    stream = ScriptedStream(plan, max_shards=2)
    found = []
    for number, some in enumerate(sent):
        if turns:
            former, stream = stream, ScriptedStream(plan, max_shards=turns[number % len(turns)])
            rescale_buffers(plan, former.stores, stream.stores)
        messages = [
            ScriptedMessage(
                Message.from_value({"t": 30 * number + 20 - early, "k": key, "v": value})
            )
            for early, key, value in some
        ]
        outcome = stream.run_micro_batch(number * SECOND, messages, number + 1 == len(sent))
        found.append(
            {
                label: sorted(str((one.raw, sorted(one.meta.items()))) for [one, *_] in batches)
                for label, batches in outcome.by_buffer.items()
            }
        )
    return found, stream.snapshot.held, stream.snapshot.open_windows


@settings(max_examples=examples(4, 80), deadline=None)
@given(sent=st.lists(SENT, min_size=2, max_size=8), turns=st.lists(st.integers(1, 4), min_size=1))
def test_buffers_of_a_list_go_on_in_other_shards(
    sent: list[list[tuple[int, str, int]]], turns: list[int]
) -> None:
    assert made_of_buffers(sent, turns) == made_of_buffers(sent, [])
