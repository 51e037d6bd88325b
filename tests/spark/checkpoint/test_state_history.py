"""States of earlier micro-batches: listed, compared, exported, and gone on from by a copy."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from streamer.config import parse_config
from streamer.core.errors import StreamerError
from streamer.engine.driver.shard_state_file import ShardStateFile, shard_state_path
from streamer.plan import Plan, make_plan
from streamer.service.monitoring.state_windows import (
    diff_windows,
    list_state_windows,
    write_parquet,
)
from streamer.spark.checkpoint.checkpoint import Checkpoint, CheckpointError
from streamer.spark.checkpoint.state_history import copy_state, list_kept_batches, read_state
from tests.spark.checkpoint.test_rescaling import expected, in_order, part, text_of


def listing(
    session: Any, checkpoint: Checkpoint, plan: Plan, batch: int | None, directory: Path
) -> list[dict[str, Any]]:
    directory.mkdir()
    shards = read_state(lambda: session, checkpoint, plan, batch, directory)
    stores = [ShardStateFile(shard_state_path(directory, number)) for number in range(shards)]
    try:
        return list_state_windows(plan, stores)
    finally:
        for store in stores:
            store.close()


def digest(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in ("lock", "jvm.lock")
    }


def append(path: Path, events: list[Any]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps({"t": t, "k": k, "v": v}) + "\n" for t, k, v in events)


@pytest.mark.spark
def test_a_stream_goes_on_from_an_earlier_micro_batch(
    run_stream: Any, session: Any, tmp_path: Path
) -> None:
    path = tmp_path / "in.jsonl"
    text = text_of("folded", path, "keep")
    append(path, part(0))
    first = run_stream(text)
    early = first.last.batch
    append(path, part(100))
    second = run_stream(text)
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    plan = make_plan(parse_config(text, "test.yaml"))
    kept = list_kept_batches(checkpoint)
    assert early in kept and kept[-1] == second.last.batch > early

    before = digest(checkpoint.directory)
    old = listing(session, checkpoint, plan, early, tmp_path / "old")
    new = listing(session, checkpoint, plan, None, tmp_path / "new")
    assert sum(one["messages"] for one in old) == first.last.held
    assert sum(one["messages"] for one in new) == second.last.held
    changes = diff_windows(old, new)
    assert {one["change"] for one in changes} <= {"opened", "closed", "changed"}
    assert diff_windows(old, old) == [] and diff_windows(new, old) != []

    write_parquet(str(tmp_path / "old.parquet"), early, old)
    table = pyarrow.parquet.read_table(tmp_path / "old.parquet")
    assert table.num_rows == len(old) and set(table["micro_batch"].to_pylist()) == {early}
    assert sum(table["messages"].to_pylist()) == first.last.held

    with pytest.raises(CheckpointError, match="micro-batch 99 is not in the checkpoint"):
        read_state(lambda: session, checkpoint, plan, 99, tmp_path)
    copy = Checkpoint(tmp_path / "copy")
    assert copy_state(lambda: session, checkpoint, plan, early, copy) == early
    with pytest.raises(CheckpointError, match="name a new directory"):
        copy_state(lambda: session, checkpoint, plan, early, copy)
    copy.close()
    assert digest(checkpoint.directory) == before
    checkpoint.close()

    # The copy reads on behind that micro-batch, and so what the stream has read since.
    (tmp_path / "checkpoint").rename(tmp_path / "original")
    (tmp_path / "copy").rename(tmp_path / "checkpoint")
    ran = run_stream(text_of("folded", path, "flush"))
    found = [json.loads(line) for line in (*first.lines, *ran.lines)]
    wanted = expected("folded", [*part(0), *part(100)])
    assert in_order([{**one, "start": float(one["start"])} for one in found]) == in_order(
        [{**one, "start": float(one["start"])} for one in wanted]
    )
    assert digest(tmp_path / "original") == before


def test_without_windows_there_is_no_state(tmp_path: Path) -> None:
    plan = make_plan(parse_config("input: {stdin: {}}\n"))
    checkpoint = Checkpoint(tmp_path)
    with pytest.raises(StreamerError, match="has no windows"):
        read_state(lambda: None, checkpoint, plan, None, tmp_path)
    checkpoint.close()


def test_before_the_first_micro_batch_there_is_none(tmp_path: Path) -> None:
    plan = make_plan(parse_config(text_of("folded", tmp_path / "in.jsonl", "keep")))
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    with pytest.raises(CheckpointError, match="no micro-batch"):
        read_state(lambda: None, checkpoint, plan, None, tmp_path)
    checkpoint.close()
