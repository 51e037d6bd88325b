"""`parquet_decode`: makes a message of each row of the Parquet files that messages are.

It "decodes Parquet files into a batch of structured messages".
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang.errors import ArgumentError, QueryError
from streamer.bloblang.runtime.parquet_rows import read_rows, row_documents
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

HANDLE_LOGICAL_TYPES: Final = "handle_logical_types"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "parquet_decode",
    "Makes a message of each row of the Parquet files that messages are.",
    description=(
        "The rows of a file are messages with its metadata, in one batch with those of the other "
        "files of the batch. Columns of bytes without a meaning are base64 in JSON, and decimals "
        "are texts. A file that has more rows, values or bytes than the section `limits` allows is "
        "marked as failed before it is read."
    ),
    fields=(
        Field(
            HANDLE_LOGICAL_TYPES,
            "string",
            "Form of times: the stored numbers (`v1`), or timestamps (`v2`).",
            default="v1",
            options=("v1", "v2"),
        ),
        Field(
            "byte_array_as_string",
            "bool",
            "Has no effect: columns of texts are always texts.",
            default=False,
            deprecated=True,
        ),
    ),
    examples=(
        Example(
            "Rows of Parquet files",
            "input:\n"
            "  file:\n"
            "    paths: ['./data/*.parquet']\n"
            "    scanner: {to_the_end: {}}\n"
            "pipeline:\n"
            "  processors:\n"
            "    - parquet_decode: {}\n",
        ),
    ),
    status="experimental",
    categories=("Parsing",),
)


class ParquetDecodeProcessor:
    """Decodes files."""

    def __init__(self, as_stored: bool, origin: ComponentRef) -> None:
        self._as_stored = as_stored
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return one batch of all rows; what is no file is marked and stays."""
        made: Batch = []
        for message in batch:
            made += self._decode_rows(message, ex)
        return [made] if made else []

    def _decode_rows(self, message: Message, ex: Execution) -> Batch:
        import pyarrow as pa

        made: Batch = []
        try:
            for rows in read_rows(message.raw):
                made += map(message.with_doc, row_documents(rows, as_stored=self._as_stored))
        except (pa.ArrowException, OSError, ValueError, QueryError, ArgumentError) as error:
            return [self._origin.fail(message, " ".join(str(error).split()), ex)]
        return made


def build(parsed: ParsedFields, context: BuildContext) -> ParquetDecodeProcessor:
    """Take what becomes of times."""
    as_stored = parsed[HANDLE_LOGICAL_TYPES] == "v1"
    return ParquetDecodeProcessor(as_stored, ComponentRef(context.component))
