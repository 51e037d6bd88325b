"""`decompress`: unpacks the stream, and lets another scanner cut what was in it.

It will "decompress the stream of bytes according to an algorithm, before feeding it into a child
scanner", piece by piece, so that what is unpacked need not fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from streamer.connectors.files.decompression import ALGORITHMS, decompress_stream
from streamer.sdk.input.scanning import (
    MAX_CUT_MESSAGES,
    START_MARK,
    ScanInput,
    ScanMark,
    ScannedCut,
    Scanner,
)
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

ALGORITHM: Final = "algorithm"
INTO: Final = "into"

SPEC: Final = Spec(
    Kind.SCANNER,
    "decompress",
    "Unpacks the stream, and lets another scanner cut what is in it.",
    description=(
        "A packed file cannot be entered in its middle: when one is larger than a micro-batch may "
        "be, each micro-batch unpacks it from its beginning and leaves out what came before."
    ),
    fields=(
        Field(ALGORITHM, "string", "Compression of the stream.", options=ALGORITHMS),
        Field(INTO, "scanner", "Scanner for the decompressed stream.", default={"to_the_end": {}}),
    ),
    limits="a packed file is entered at its beginning alone",
    examples=(
        Example(
            "Lines of files that gzip has packed",
            "input:\n"
            "  file:\n"
            "    paths: [ ./data/*.jsonl.gz ]\n"
            "    scanner:\n"
            "      decompress:\n"
            "        algorithm: gzip\n"
            "        into: { lines: {} }\n",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class DecompressScanner:
    """Hands on the unpacked stream; marks are places in that.

    Attributes:
        algorithm: one of `ALGORITHMS`.
        into: cuts what comes out.
        expansion: about how many bytes come out for one.
    """

    algorithm: str
    into: Scanner
    expansion: int = 8

    def scan_stream(
        self, source: ScanInput, since: ScanMark = START_MARK, max_messages: int = MAX_CUT_MESSAGES
    ) -> Iterator[ScannedCut]:
        """Cut a stream; see `Scanner`."""
        return self.into.scan_stream(
            source.with_stream(decompress_stream(self.algorithm, source.stream)),
            since,
            max_messages,
        )


def build(parsed: ParsedFields, context: BuildContext) -> DecompressScanner:
    """Build the inner scanner."""
    return DecompressScanner(parsed[ALGORITHM].lower(), context.build(parsed[INTO]))
