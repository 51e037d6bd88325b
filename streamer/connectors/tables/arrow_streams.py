"""Rows on their way from a worker to the driver: Arrow streams behind one another.

What joins bytes on the way need not know them.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa


def encode_batch(rows: pa.RecordBatch) -> bytes:
    """Return rows as bytes; those of several batches may stand behind one another."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as out:
        out.write_batch(rows)
    body: bytes = sink.getvalue().to_pybytes()
    return body


def encode_table(rows: pa.Table) -> bytes:
    """Return the rows of a table as bytes, as `encode_batch` does."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as out:
        out.write_table(rows)
    body: bytes = sink.getvalue().to_pybytes()
    return body


def decode_batches(body: bytes) -> Iterator[pa.Table]:
    """Give the rows that were encoded into bytes, a table for each batch."""
    source = io.BytesIO(body)
    while source.tell() < len(body):
        yield pa.ipc.open_stream(source).read_all()
