"""The rows of results: how they travel from a worker to the driver, and how they lie in a file.

A row is a message that the pipeline has made of a window. All rows of one emission of a window are
alike but for `part` and what is the message's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from streamer.connectors.tables.arrow_streams import decode_batches, encode_batch

_TIME_TYPE: Final = pa.timestamp("ns")

WORKER_SCHEMA: Final = pa.schema(
    [
        ("key", pa.string()),  # as `window_key` shows it; null without a key
        ("key_json", pa.string()),  # the same as JSON, which tells 1 from "1"
        ("branch", pa.int32()),  # which check of a `group_by` the window was parted by
        ("window_start", _TIME_TYPE),
        ("window_end", _TIME_TYPE),
        ("emit", pa.string()),
        ("ordinal", pa.int64()),  # the emission's place in its shard and micro-batch
        ("part", pa.int32()),  # the message's place in its emission, from 0
        ("content", pa.binary()),
        ("metadata", pa.string()),  # as JSON, without what the columns say; null for none
        ("error", pa.string()),
    ]
)
"""What a worker says."""

FILE_SCHEMA: Final = pa.schema(
    [
        *list(WORKER_SCHEMA)[:8],
        ("content", pa.string()),  # null where it is no text
        ("bytes", pa.binary()),  # the content where it is no text
        *list(WORKER_SCHEMA)[9:],
        ("epoch", pa.int64()),  # the micro-batch, in order over all starts from the beginning
        ("emitted_at", _TIME_TYPE),
        ("earlier", pa.int32()),  # emissions of the window that this one has stood in for
    ]
)
"""What a file holds, in this order, sorted by key and end."""

SORT_COLUMNS: Final = ("key", "key_json", "window_end", "window_start", "epoch", "ordinal", "part")
"""What the rows of a file are sorted by: a key's results are together, the oldest first."""


def encode_rows(columns: Iterable[Iterable[object]]) -> bytes:
    """Return rows as a worker sends them, from their columns in the order of `WORKER_SCHEMA`."""
    arrays = [
        pa.array(column, field.type) for column, field in zip(columns, WORKER_SCHEMA, strict=True)
    ]
    return encode_batch(pa.RecordBatch.from_arrays(arrays, schema=WORKER_SCHEMA))


def build_table(portions: Iterable[bytes], epoch: int, emitted_at: int) -> pa.Table:
    """Return the rows of a micro-batch as they are written.

    Args:
        portions: what `packed` made, one at least.
        epoch: stands for the micro-batch.
        emitted_at: its time, ns.
    """
    table = pa.concat_tables([table for body in portions for table in decode_batches(body)])
    text, blob = _split_text_and_bytes(table.column("content"))
    count = table.num_rows
    table = (
        table.set_column(table.schema.get_field_index("content"), "content", text)
        .append_column("bytes", blob)
        .append_column("epoch", pa.repeat(pa.scalar(epoch, pa.int64()), count))
        .append_column("emitted_at", pa.repeat(pa.scalar(emitted_at, _TIME_TYPE), count))
        .append_column("earlier", pa.repeat(pa.scalar(0, pa.int32()), count))
    )
    ordered = table.select(FILE_SCHEMA.names).cast(FILE_SCHEMA)
    return ordered.sort_by([(name, "ascending") for name in SORT_COLUMNS])


def _split_text_and_bytes(content: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return contents as far as they are text, and the others."""
    try:
        return content.cast(pa.string()), pa.nulls(len(content), pa.binary())
    except pa.ArrowInvalid:
        pass
    texts: list[str | None] = []
    blobs: list[bytes | None] = []
    for raw in content.to_pylist():
        try:
            texts.append(raw.decode())
            blobs.append(None)
        except UnicodeDecodeError:
            texts.append(None)
            blobs.append(raw)
    return pa.array(texts, pa.string()), pa.array(blobs, pa.binary())
