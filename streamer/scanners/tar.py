"""`tar`: a message of each file in a tar archive.

It will "consume a tar archive file by file", and adds the metadata `tar_name`. As in Benthos every
entry is a message: a directory, too, which is empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from streamer.message import Message
from streamer.source.scanning import MOST, START, Cut, Mark, Opened, ScanError, skip
from streamer.source.tar_entries import entries
from streamer.spec import BuildContext, Field, Kind, Spec

NAME: Final = "tar_name"

SPEC: Final = Spec(
    Kind.SCANNER,
    "tar",
    "Makes a message of each entry of a tar archive.",
    description="Adds the metadata `tar_name`, the entry's name, to each message.",
    config=Field("", "object", "It has no fields.", default={}),
)


@dataclass(frozen=True, slots=True)
class TarScanner:
    """Reads entry by entry."""

    def cuts(self, source: Opened, since: Mark = START, most: int = MOST) -> Iterator[Cut]:
        """Cut a stream; see `Scanner`. An entry is a cut of its own."""
        skip(source.stream, since.position)
        number = since.number
        try:
            for name, content, end in entries(source.stream):
                number += 1
                message = Message(content, {**source.meta, NAME: name})
                yield Cut([[message]], Mark(since.position + end, number))
        except ScanError as error:
            raise ScanError(f"{source.name}: {error}") from None


def build(parsed: object, context: BuildContext) -> TarScanner:
    """There is nothing to take."""
    return TarScanner()
