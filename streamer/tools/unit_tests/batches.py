"""Compares results with a test's expectations, batch by batch and message by message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.spec import ParsedFields
from streamer.tools.unit_tests.conditions import check_message
from streamer.tools.unit_tests.failure import (
    Failure,
    Line,
    add_place,
    format_batch,
    format_message,
    label_lines,
    make_failure,
)

_CONTENT_MISMATCH: Final = re.compile(r"(content|file)_equals \[line \d+\]: content mismatch")

Expected = Sequence[Sequence[ParsedFields]]


def check_batches(
    expected: Expected,
    received: Sequence[Batch],
    directory: Path,
    ex: Execution,
    hint: Sequence[Line] = (),
) -> Iterator[Failure]:
    """Return what is wrong with batches; they are counted from 0, as in Benthos.

    Args:
        expected: conditions, by batch and message.
        received: what came out.
        directory: where the files are that conditions name.
        ex: what mappings may ask for.
        hint: lines that may say why there are too few.
    """
    if len(received) < len(expected):
        counts = f"expected {len(expected)}, got {len(received)}"
        yield make_failure(f"wrong batch count, {counts}", hint)
    for number, batch in enumerate(received):
        if number >= len(expected):
            yield make_failure(f"unexpected batch {number}", format_batch(batch))
            continue
        conditions = expected[number]
        if len(conditions) != len(batch):
            yield make_failure(
                f"mismatch of output batch {number} message counts, "
                f"expected {len(conditions)}, got {len(batch)}"
            )
        yield from check_messages(conditions, batch, f"batch {number} ", directory, ex)


def check_messages(
    expected: Sequence[ParsedFields], received: Batch, of: str, directory: Path, ex: Execution
) -> Iterator[Failure]:
    """Return what is wrong with messages; `of` says what they belong to, for the texts."""
    for number, message in enumerate(received):
        place = f"{of}message {number}"
        if number >= len(expected):
            yield make_failure(f"unexpected {place}", format_batch([message]))
            continue
        wrong = check_message(expected[number], message, directory, ex)
        yield from (add_place(place, one) for one in wrong)
        if wrong and not _is_shown(message, wrong):
            yield tuple(label_lines(f"{place}: ", format_message(message), "received"))


def _is_shown(message: Message, wrong: Sequence[Failure]) -> bool:
    """Return whether failures show all that there is of a message, which was only its content."""
    if message.meta or message.error is not None:
        return False
    whole = f"  received: {message.raw.decode(errors='replace')}"
    return any(
        _CONTENT_MISMATCH.match(one[0].text) or Line(whole, "received") in one for one in wrong
    )
