"""Results of users' functions as messages: rows, messages, frames, generators, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from streamer.connectors.python.owned_message import release
from streamer.core.limits import current_limits
from streamer.core.message import Batch, Message, keep_place
from streamer.core.python_values import NoValueError, to_message_value

_EXPECTED: Final = (
    "expected dict, Message, a list or a generator of these, pyarrow.Table, pandas.DataFrame, "
    "polars.DataFrame, or None"
)


class Origins:
    """The messages that a function got, and the metadata that its results take from them."""

    def __init__(
        self,
        batch: Batch,
        rows: Sequence[dict[str, Any]] = (),
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Take the messages.

        Args:
            batch: the messages.
            rows: their documents, as the function got them; empty where it got others.
            metadata: their metadata, as the function has left it; None for that of the messages.
        """
        self._batch = batch
        self._places = {id(row): at for at, row in enumerate(rows)}
        self._metadata = metadata

    def make_messages(self, result: Any) -> Batch:
        """Return a result as messages.

        A row that is an object of the input keeps the metadata of its message. So do others, in
        order, where there are as many rows as messages. Else rows get that of the first message.

        Raises:
            NoValueError: it is none of what a function may return.
        """
        items = _list_items(result)
        is_aligned = len(items) == len(self._batch)
        made = []
        for number, item in enumerate(items):
            if item is None:
                continue
            if isinstance(item, Message):
                origin = self._batch[0] if len(self._batch) == 1 else None
                made.append(release(item, origin))
                continue
            if not isinstance(item, dict):
                where = "" if len(items) == 1 else f"as item {number} "
                raise NoValueError(
                    f"returned {type(item).__name__} {where}; {_EXPECTED}".replace(" ;", ";")
                )
            at = self._places.get(id(item), number if is_aligned else 0)
            made.append(self._make_row(item, at))
        return made

    def _make_row(self, row: dict[str, Any], at: int) -> Message:
        document = to_message_value(row)
        origin = self._batch[at]
        meta = origin.meta if self._metadata is None else self._metadata[at]
        kept = keep_place(origin, Message(None, meta, origin.error, document))
        assert kept is not None
        return kept


def _list_items(result: Any) -> Sequence[Any]:
    if result is None:
        return ()
    if isinstance(result, dict | Message):
        return (result,)
    if isinstance(result, list | tuple):
        return result
    if rows := _frame_rows(result):
        return rows[0]
    if isinstance(result, Iterator):
        most = current_limits().messages
        items = list(islice(result, most + 1))
        if len(items) > most:
            raise NoValueError(f"gives more than the {most:,} messages of limits.messages")
        return items
    if isinstance(result, Iterable) and not isinstance(result, str | bytes | bytearray | Mapping):
        return list(result)
    raise NoValueError(f"returned {type(result).__name__}; {_EXPECTED}")


def _frame_rows(result: Any) -> tuple[list[dict[str, Any]]] | None:
    """Return the rows of a frame; None where it is none."""
    from streamer.connectors.tables.batch_table import make_row_documents

    table: Any = None
    root = type(result).__module__.partition(".")[0]
    pandas, polars, arrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    if root == "pandas" and pandas is not None and isinstance(result, pandas.Series):
        result = result.to_frame()
    if root == "pandas" and pandas is not None and isinstance(result, pandas.DataFrame):
        return (_pandas_rows(result),)
    if root == "polars" and polars is not None and isinstance(result, polars.LazyFrame):
        result = result.collect()
    if root == "polars" and polars is not None and isinstance(result, polars.DataFrame):
        table = result.to_arrow()
    elif arrow is not None and isinstance(result, arrow.Table | arrow.RecordBatch):
        table = result
    if table is None:
        return None
    try:
        return (make_row_documents(table),)
    except ValueError as e:
        raise NoValueError(f"returned a frame that is no messages: {e}") from None


def _pandas_rows(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a frame; of an index that has a name, the values too."""
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    names = [name if type(name) is str else str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise NoValueError(f"returned a frame in which two columns have the name {twice!r}")
    columns = [frame.iloc[:, at].tolist() for at in range(len(names))]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
