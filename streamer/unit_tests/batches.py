"""What came out against what a test expects, batch by batch and message by message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from streamer.message import Batch, Execution, Message
from streamer.spec import Parsed
from streamer.unit_tests.conditions import check_message
from streamer.unit_tests.failure import Failure, Line, at, failure, labelled, listed, shown

_COMPARES: Final = re.compile(r"(content|file)_equals \[line \d+\]: content mismatch")

Expected = Sequence[Sequence[Parsed]]


def check_batches(
    expected: Expected, found: Sequence[Batch], directory: Path, ex: Execution, hint: str = ""
) -> Iterator[Failure]:
    """Return what is wrong with batches; they are counted from 0, as in Benthos.

    Args:
        expected: conditions, by batch and message.
        found: what came out.
        directory: where the files are that conditions name.
        ex: what mappings may ask for.
        hint: what may tell why there are too few.
    """
    if len(found) < len(expected):
        counts = f"expected {len(expected)}, got {len(found)}"
        yield failure(f"wrong batch count, {counts}", [Line(f"  {hint}")] if hint else [])
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
        if wrong and not _is_shown(message, wrong):
            yield tuple(labelled(f"{place}: ", shown(message), "received"))


def _is_shown(message: Message, wrong: Sequence[Failure]) -> bool:
    """Tell whether failures show all that there is of a message, which was only its content."""
    if message.meta or message.error is not None:
        return False
    whole = f"  received: {message.raw.decode(errors='replace')}"
    return any(_COMPARES.match(one[0].text) or Line(whole, "received") in one for one in wrong)
