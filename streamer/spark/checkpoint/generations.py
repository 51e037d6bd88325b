"""Generations of a checkpoint: windows that begin anew where the ones before have stopped.

A deploy that open windows do not survive begins a generation: fresh state, which reads on from the
offsets that the former one has committed. What decides between the two is the one record of the
checkpoint, which is replaced at once; what is left over of the other is swept away later.

While open windows are let out before (a *drain*), the record says so, and the plan that lets them
out is beside it: whatever is started next finishes that first.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamer.config import Config
from streamer.connectors.kafka.input.positions import replace_kafka_ends
from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.engine.driver.journal import FileJournal
from streamer.engine.planner.checkpoint_path import remove_tree
from streamer.engine.planner.offset_log import newest_number, read_newest_planned
from streamer.plan import Plan
from streamer.sdk.input.replayable import Offset
from streamer.spark.checkpoint.checkpoint import Checkpoint, CheckpointError
from streamer.spark.checkpoint.pickled_values import read_value, write_value
from streamer.spark.checkpoint.unfinished_batch import find_table_ahead, find_unfinished

_DRAIN_PLAN_FILE: Final = "drain.plan"
_RUNNING_PLAN_FILE: Final = "running.plan"


def _discard_log(level: str, text: str, fields: Mapping[str, Any]) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Drain:
    """A drain that was begun and is not over.

    Attributes:
        plan: what runs until its windows are out.
        keeps_input: whether the generation after it reads the same input.
        emits: whether open windows are let out; else only the micro-batch in hand is finished,
            since a table has it already.
    """

    plan: Plan
    keeps_input: bool
    emits: bool = True


def read_planned_position(checkpoint: Checkpoint) -> Offset | None:
    """Return the position in the input up to which micro-batches were planned; None for none.

    Where Spark's own file of it cannot be read, that is found by who has to read it.
    """
    try:
        planned = read_newest_planned(checkpoint.spark, has_kafka=False)
    except (OSError, StreamerError):
        return None
    offset = checkpoint.start_offset if planned is None else planned.offset
    return offset.data if offset is not None and isinstance(offset.data, dict) else None


def begin_drain(checkpoint: Checkpoint, drain: Drain) -> None:
    """Note that open windows are let out, and by which plan."""
    path = checkpoint.directory / _DRAIN_PLAN_FILE
    write_value(path, drain.plan, drain.plan.secret_references)
    note = {"keeps_input": drain.keeps_input, "emits": drain.emits}
    checkpoint.write_record({**checkpoint.read_record(), "draining": note})


def read_drain(checkpoint: Checkpoint) -> Drain | None:
    """Return the drain that was begun, and that a crash has broken off; None for none.

    Raises:
        CheckpointError: its plan cannot be read by this program.
    """
    note = checkpoint.read_record().get("draining")
    if note is None:
        return None
    path = checkpoint.directory / _DRAIN_PLAN_FILE
    try:
        return Drain(read_value(path), note["keeps_input"], note.get("emits", True))
    except (OSError, ValueError) as e:
        raise CheckpointError(
            f"a deploy was letting open windows out when it was broken off, and {path} cannot be "
            f"read ({e}); start the streamer that began it once more with the same checkpoint, or "
            f"take `draining` and `checksum` out of {checkpoint.root / 'streamer.json'} and start "
            "the former config"
        ) from None


def save_running(checkpoint: Checkpoint, config: Config, plan: Plan) -> None:
    """Keep what runs, so that a start with another config can let its windows out."""
    value = checkpoint.spark.name, config, plan
    write_value(checkpoint.directory / _RUNNING_PLAN_FILE, value, plan.secret_references)


def load_running(checkpoint: Checkpoint, log: LogLine = _discard_log) -> tuple[Config, Plan] | None:
    """Return what ran last; None when that was not kept, or by another version of the program.

    What ran in a former generation is of no use: its windows are out; nor is what ran here before
    another machine had the checkpoint.

    Args:
        checkpoint: nothing runs on it.
        log: takes a warning when it was kept, and cannot be read.
    """
    if not checkpoint.has_current_local_state:
        return None
    path = checkpoint.directory / _RUNNING_PLAN_FILE
    try:
        generation, config, plan = read_value(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as e:
        text = (
            "The config of the last run cannot be read; the stream continues, but a change that "
            "open windows cannot survive is refused once, because they cannot be drained"
        )
        log("WARN", text, {"file": str(path), "reason": str(e)})
        return None
    return (config, plan) if generation == checkpoint.spark.name else None


def begin_discard(
    checkpoint: Checkpoint,
    plan: Plan | None,
    fingerprint: Mapping[str, Any],
    keeps_input: bool,
    revision: str = "",
) -> None:
    """Drop open windows: begin a generation, or let the next start do it.

    It does where a table has the micro-batch in hand, which must be finished before.

    Args:
        checkpoint: no query runs on it.
        plan: what has run on it; None where that is not known.
        fingerprint: of the plan that is to run.
        keeps_input: whether it reads the same input.
        revision: what the deploy is called.
    """
    if plan is not None and keeps_input and find_table_ahead(checkpoint, plan):
        begin_drain(checkpoint, Drain(plan, keeps_input, emits=False))
        return
    begin_generation(checkpoint, fingerprint, keeps_input, revision)
    delete_old_generations(checkpoint)


def cancel_drain(checkpoint: Checkpoint) -> None:
    """Forget a drain: the former config goes on, and what is open stays open."""
    record = checkpoint.read_record()
    if record.pop("draining", None) is not None:
        checkpoint.write_record(record)
    (checkpoint.directory / _DRAIN_PLAN_FILE).unlink(missing_ok=True)


def begin_generation(
    checkpoint: Checkpoint,
    fingerprint: Mapping[str, Any],
    keeps_input: bool,
    revision: str = "",
) -> None:
    """Begin a generation: from now on, every start goes on with fresh state.

    Args:
        checkpoint: no query runs on it.
        fingerprint: of the plan that is to run.
        keeps_input: whether it reads on from the offsets that are committed; else its input is
            another one, and begins at its beginning.
        revision: what the deploy is called.
    """
    start = _start_of_next(checkpoint, has_same_state=False)
    _revert_uncommitted_files(checkpoint)
    record = checkpoint.read_record()
    number = int(record.get("generation", 0)) + 1
    after: dict[str, Any] = {
        "fingerprint": dict(fingerprint),
        "inputs": record.get("inputs", {}) if keeps_input else {},
        "generation": number,
        "spool": record.get("spool", 0) if keeps_input else number,
        "revision": revision,
    }
    if "identity" in record:
        after["identity"] = record["identity"]
    checkpoint.write_record({**after, **start} if keeps_input else after)


def _start_of_next(checkpoint: Checkpoint, has_same_state: bool) -> dict[str, Any]:
    """Return what the next generation's record has of the offsets that it goes on from."""
    committed = read_newest_planned(checkpoint.spark, "commits", has_kafka=False)
    if committed is None:
        offset, kafka = checkpoint.start_offset, checkpoint.kafka_start_offsets
    else:
        offset, kafka = committed.offset, [*committed.ends]
    if offset is None:
        return {}
    return {"begins_at": offset.to_start_fields(has_same_state), "kafka_begins_at": kafka}


def begin_rescaled_generation(checkpoint: Checkpoint, shards: int, state: Path) -> None:
    """Begin a generation that goes on with the state of this one, in other shards.

    Args:
        checkpoint: no query runs on it.
        shards: how many there are.
        state: a directory within the checkpoint, with the state of each; it is moved.

    Raises:
        CheckpointError: another program has taken the checkpoint over.
    """
    start = _start_of_next(checkpoint, has_same_state=True)
    record = checkpoint.read_record()
    number = int(record.get("generation", 0)) + 1
    seed = checkpoint.seed_path(number)
    if isinstance(seed, Path):
        shutil.rmtree(seed, ignore_errors=True)
        state.replace(seed)
    else:
        seed.delete()
        seed.receive(state)
        checkpoint.wait_lease_valid(lambda: False)
    _revert_uncommitted_files(checkpoint)
    fingerprint = {**record["fingerprint"], "shards": shards}
    after = {**record, "fingerprint": fingerprint, "generation": number, "seed": number}
    checkpoint.write_record({**after, **start})


def begin_moved_generation(
    checkpoint: Checkpoint,
    positions: Sequence[Mapping[str, Mapping[str, int]]],
    inputs: Mapping[str, Any],
) -> None:
    """Begin a generation of the same config that reads on from other offsets of Kafka.

    Args:
        checkpoint: no query runs on it.
        positions: the next offsets to be read of each Kafka input, by topic and partition.
        inputs: what the inputs remember.
    """
    start = _start_of_next(checkpoint, has_same_state=False)
    if "begins_at" in start:
        # Positions are there too where workers read Kafka.
        data = replace_kafka_ends(start["begins_at"]["data"], positions)
        start["begins_at"] = {**start["begins_at"], "data": data}
    _revert_uncommitted_files(checkpoint)
    record = checkpoint.read_record()
    kept = {name: value for name, value in record.items() if name != "seed"}
    after = {"generation": int(record.get("generation", 0)) + 1, "inputs": dict(inputs)}
    checkpoint.write_record({**kept, **start, **after, "kafka_begins_at": list(positions)})


def has_committed(checkpoint: Checkpoint) -> bool:
    """Whether a micro-batch of the generation was committed."""
    return newest_number(checkpoint.spark / "commits") is not None


def delete_used_seed(checkpoint: Checkpoint) -> None:
    """Once shards have what they began with, delete that, and the state that it was made of."""
    if checkpoint.seed is not None and has_committed(checkpoint):
        record = checkpoint.read_record()
        checkpoint.write_record({name: value for name, value in record.items() if name != "seed"})
        delete_old_generations(checkpoint)


def restore_record(checkpoint: Checkpoint, record: Mapping[str, Any]) -> None:
    """Go back to a generation of which nothing has been swept, as its record was.

    Its state must not have been gone on with by another one: for generations that never ran.
    """
    checkpoint.write_record({name: value for name, value in record.items() if name != "draining"})


def _revert_uncommitted_files(checkpoint: Checkpoint) -> None:
    """Cut files back to before a micro-batch that was not committed: it will be read again."""
    planned = find_unfinished(checkpoint)
    if planned is None:
        return
    for path in _journal_paths(checkpoint.directory):
        journal = FileJournal(path)
        if journal.batch == checkpoint.global_batch_number(planned):
            journal.roll_back()


def _journal_paths(directory: Path) -> list[Path]:
    return [*directory.glob("files*.json"), *directory.glob("dynamic-*/**/*.json")]


def delete_old_generations(checkpoint: Checkpoint) -> None:
    """Delete what former generations have left."""
    keep = {checkpoint.spark, checkpoint.spool, checkpoint.seed}
    for path in checkpoint.find_paths("spark", "spark-*", "seed-*", "spool", "spool-*"):
        if path not in keep:
            remove_tree(path)
    if "draining" not in checkpoint.read_record():
        (checkpoint.directory / _DRAIN_PLAN_FILE).unlink(missing_ok=True)
