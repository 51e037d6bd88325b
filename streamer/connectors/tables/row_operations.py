"""Operations of rows: a row is added, replaces the row of its key, or removes that row.

The operation may be the same for all messages, or come from each of them. Then it travels beside
the rows, in the metadata of the Arrow stream, one byte a row: no column can have its name.
Source: the output `iceberg` of Redpanda Connect, whose last operation for a key wins in a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

import pyarrow as pa
from pyarrow import compute

from streamer.bloblang import Interpolation
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Message

_METADATA_NAME: Final = b"operations"


class RowOperation(IntEnum):
    """The operation of a row."""

    INSERT = 0
    UPSERT = 1
    DELETE = 2

    @property
    def word(self) -> str:
        """The name that a config has."""
        return self.name.lower()


_BY_WORD: Final = {one.word: one for one in RowOperation} | {
    "": RowOperation.INSERT,
    "append": RowOperation.INSERT,
}
OPERATION_NAMES: Final = tuple(one.word for one in RowOperation)


def read_operation(word: str) -> RowOperation:
    """Return the operation that a word names; none is an insert, as in Connect.

    Raises:
        ValueError: it names none; the text continues "the row operation …".
    """
    operation = _BY_WORD.get(word)
    if operation is None:
        raise ValueError(f"is {word!r}; expected {', '.join(OPERATION_NAMES)}")
    return operation


class RowOperations:
    """The operations of messages.

    Attributes:
        static: the operation, where it is the same for all messages; else None.
    """

    def __init__(self, text: Interpolation) -> None:
        """Take the text, in which messages may be interpolated.

        Raises:
            ValueError: it names no operation.
        """
        self._text = text
        self.static = None if text.static is None else read_operation(text.static)

    def of_message(self, message: Message, ex: Execution) -> RowOperation:
        """Return the operation of a message.

        Raises:
            MessageError: it has none.
        """
        try:
            return read_operation(self._text.text_of([message], 0, ex))
        except MessageError as error:
            raise MessageError(f"row operation interpolation error: {error}") from None
        except ValueError as error:
            raise MessageError(f"the row operation {error}") from None


def attach_operations(rows: pa.RecordBatch, operations: Sequence[RowOperation]) -> pa.RecordBatch:
    """Return rows with their operations."""
    return rows.replace_schema_metadata({_METADATA_NAME: bytes(operations)})


def take_operations(rows: pa.Table, default: RowOperation) -> tuple[pa.Table, pa.Array]:
    """Return rows without what was attached, and their operations, each a number.

    Args:
        rows: what `attach_operations` has returned, or other rows.
        default: the operation of rows that have none attached.
    """
    attached = (rows.schema.metadata or {}).get(_METADATA_NAME)
    if attached is None:
        return rows, repeat_operation(default, rows.num_rows)
    operations = pa.Array.from_buffers(pa.int8(), len(attached), [None, pa.py_buffer(attached)])
    return rows.replace_schema_metadata(None), operations


def repeat_operation(operation: RowOperation, count: int) -> pa.Array:
    """Return the same operation for a number of rows."""
    return pa.repeat(pa.scalar(int(operation), pa.int8()), count)


def find_newest(rows: pa.Table, operations: pa.Array, keys: Sequence[str]) -> pa.Array | None:
    """Return the indexes of rows that count: of each key the last, as they come.

    Rows that are inserted count each, and replace none. None stands for all rows.
    """
    is_keyed = compute.not_equal(operations, int(RowOperation.INSERT))
    if not keys or not compute.any(is_keyed).as_py():
        return None
    numbers = pa.array(range(rows.num_rows), pa.int64())
    keyed = rows.select(list(keys)).append_column("#", numbers).filter(is_keyed)
    names = [f"k{at}" for at in range(len(keys))]
    newest = keyed.rename_columns([*names, "#"]).group_by(names).aggregate([("#", "max")])
    inserted = numbers.filter(compute.invert(is_keyed))
    indexes = pa.chunked_array([*newest.column("#_max").chunks, inserted], pa.int64())
    return indexes.combine_chunks().sort()
