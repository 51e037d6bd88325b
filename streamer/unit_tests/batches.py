"""What came out against what a test expects, batch by batch and message by message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from streamer.message import Batch, Execution
from streamer.spec import Parsed
from streamer.unit_tests.conditions import check_message
from streamer.unit_tests.failure import Failure, Line, at, failure, listed

Expected = Sequence[Sequence[Parsed]]


def check_batches(
    expected: Expected, found: Sequence[Batch], directory: Path, ex: Execution
) -> Iterator[Failure]:
    """Return what is wrong with batches; they are counted from 0, as in Benthos."""
    if len(found) < len(expected):
        yield failure(f"wrong batch count, expected {len(expected)}, got {len(found)}")
    for number, batch in enumerate(found):
        if number >= len(expected):
            yield failure(f"unexpected batch {number}", listed(batch))
            continue
        wanted = expected[number]
        if len(wanted) != len(batch):
            yield failure(
                f"mismatch of output batch {number} message counts, "
                f"expected {len(wanted)}, got {len(batch)}"
            )
        yield from check_messages(wanted, batch, f"batch {number} ", directory, ex)


def check_messages(
    expected: Sequence[Parsed], found: Batch, of: str, directory: Path, ex: Execution
) -> Iterator[Failure]:
    """Return what is wrong with messages; `of` says what they belong to, for the texts."""
    for number, message in enumerate(found):
        place = f"{of}message {number}"
        if number >= len(expected):
            yield failure(f"unexpected {place}", listed([message]))
            continue
        wrong = check_message(expected[number], message, directory, ex)
        yield from (at(place, one) for one in wrong)
        if wrong and message.error is not None:
            # A message that has failed on its way is likely wrong for that reason.
            yield (Line(f"{place} had failed: {message.error}", "received"),)
