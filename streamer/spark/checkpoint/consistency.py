"""Whether the files of a checkpoint fit together, seen before anything runs on it.

Spark takes an emptied file for an error that it does not name, and some damage for what a crash
leaves: of logs whose newest files are gone, or are copies of older ones, it does work again that
was done and delivered. Only the newest files of each log are read, as Spark reads them.
"""

from __future__ import annotations

import json
from typing import Any, Final

from streamer.core.json.checksums import has_valid_checksum
from streamer.engine.planner.checkpoint_path import Location, list_batch_numbers
from streamer.engine.planner.planner_channels import MicroBatchOffset
from streamer.spark.checkpoint.checkpoint import Checkpoint, CheckpointError
from streamer.spark.checkpoint.checkpoint_diagnosis import REMEDY, find_damaged_file

_CHECKED_OFFSET_FILES: Final = 3


def check_consistent(checkpoint: Checkpoint) -> None:
    """Check that a checkpoint's record and Spark's logs are what was written last.

    Args:
        checkpoint: nothing runs on it.

    Raises:
        CheckpointError: one is damaged, gone, or an older copy; the text says which.
    """
    checkpoint.read_record()
    if problem := _find_later_generation(checkpoint) or _find_log_problem(checkpoint.spark):
        raise CheckpointError(f"the checkpoint {checkpoint} is damaged: {problem}; {REMEDY}")


def _find_later_generation(checkpoint: Checkpoint) -> str:
    """Return what is wrong when a later generation than that of the record has run."""
    for place in checkpoint.find_paths("spark-*"):
        number = place.name.partition("-")[2]
        later = number.isdecimal() and int(number) > checkpoint.generation
        if later and next(list_batch_numbers(place / "commits"), None) is not None:
            return (
                f"{checkpoint.root / 'streamer.json'} is an older copy, since {place} has run, and "
                "this would read the input again from where that has begun"
            )
    return ""


def _find_log_problem(spark: Location) -> str:
    """Return what is wrong with Spark's logs; empty for nothing."""
    planned, committed = (sorted(list_batch_numbers(spark / log)) for log in ("offsets", "commits"))
    if not planned:
        if committed:
            return f"{spark}/offsets has no files, though {spark}/commits has"
        return ""
    if damaged_file := find_damaged_file(spark):
        return f"{spark}/{damaged_file} is empty, ends too soon or was written over"
    newest = planned[-1]
    if committed and committed[-1] > newest:
        return f"{spark}/offsets/{committed[-1]} is missing, and its micro-batch would be repeated"
    if newest > planned[0] and (not committed or committed[-1] < newest - 1):
        return f"{spark}/commits/{newest - 1} is missing, and its micro-batch would be repeated"
    if newest and len(planned) > 1 and planned[-2] != newest - 1:
        return f"{spark}/offsets/{newest - 1} is missing"
    return _find_metadata_problem(spark) or _find_offset_problem(
        spark, planned[-_CHECKED_OFFSET_FILES:]
    )


def _find_metadata_problem(spark: Location) -> str:
    """Return what is wrong with Spark's file about the query; that it is not there is nothing."""
    file = spark / "metadata"
    try:
        metadata = json.loads(file.read_bytes())
    except FileNotFoundError:
        return ""  # Spark makes another one, which nothing depends on.
    except ValueError:
        metadata = None
    if isinstance(metadata, dict) and isinstance(metadata.get("id"), str):
        return ""
    return f"{file} was changed; it only names the query, so delete it to continue, or"


def _find_offset_problem(spark: Location, numbers: list[int]) -> str:
    """Return what is wrong when offsets are not those of their micro-batch."""
    before: tuple[str, int] | None = None
    for number in numbers:
        file = spark / "offsets" / str(number)
        try:
            text = file.read_text()
        except FileNotFoundError:
            return ""  # On a file system elsewhere, while it is swept.
        fields = _parse_offset(text)
        if not has_valid_checksum(fields):
            return f"{file} was changed: its checksum is wrong"
        try:
            # It never runs backwards.
            now = text, MicroBatchOffset.from_fields(fields).batch_time
        except ValueError as e:
            return f"{file} is not what was written: {e}"
        if before is not None and (now[0] == before[0] or 0 < now[1] < before[1]):
            return f"{file} is an older copy, so that messages would be read again"
        before = now
    return ""


def _parse_offset(text: str) -> dict[str, Any]:
    """Return the offset of our own source; empty when there is none."""
    try:
        offset = json.loads(text.splitlines()[2])
    except (IndexError, ValueError):
        return {}
    return offset if isinstance(offset, dict) else {}
