"""`tar`: a message of each file in a tar archive.

It will "consume a tar archive file by file", and adds the metadata `tar_name`. As in Benthos every
entry is a message: a directory, too, which is empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from streamer.connectors.files.tar_entries import read_entries
from streamer.core.message import Message
from streamer.sdk.input.scanning import (
    MAX_CUT_MESSAGES,
    START_MARK,
    ScanError,
    ScanInput,
    ScanMark,
    ScannedCut,
    skip_bytes,
)
from streamer.sdk.spec import NO_FIELDS, BuildContext, Kind, Spec

NAME: Final = "tar_name"

SPEC: Final = Spec(
    Kind.SCANNER,
    "tar",
    "Makes a message of each entry of a tar archive.",
    description="Adds the metadata `tar_name`, the entry's name, to each message.",
    config=NO_FIELDS,
)


@dataclass(frozen=True, slots=True)
class TarScanner:
    """Reads entry by entry."""

    def scan_stream(
        self, source: ScanInput, since: ScanMark = START_MARK, max_messages: int = MAX_CUT_MESSAGES
    ) -> Iterator[ScannedCut]:
        """Cut a stream; see `Scanner`. An entry is a cut of its own."""
        skip_bytes(source.stream, since.position)
        number = since.number
        try:
            for name, content, end in read_entries(source.stream):
                number += 1
                message = Message(content, {**source.meta, NAME: name})
                yield ScannedCut([[message]], ScanMark(since.position + end, number))
        except ScanError as error:
            raise ScanError(f"{source.name}: {error}") from None


def build(parsed: object, context: BuildContext) -> TarScanner:
    """There is nothing to take."""
    return TarScanner()
