"""Explains what an output does to its table, without a look at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def explain_table_output(
    columns: Mapping[str, str],
    partition: str,
    keys: Sequence[str],
    *,
    is_open: bool,
    operation: str = "",
) -> Iterator[str]:
    """Give lines for `explain`.

    Args:
        columns: the types of columns that the config names.
        partition: how a new table is partitioned, in words; empty for not at all.
        keys: the columns by which a row is replaced; none where rows are appended.
        is_open: whether the table is made, and gets columns.
        operation: what becomes of rows, as the config has it.
    """
    if is_open:
        by = f", partitioned by {partition}" if partition else ""
        yield f"table        made with the first rows where it is not there{by}"
        named = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        yield f"columns      {named}{'; ' if named else ''}further fields of messages are added"
    else:
        yield "table        must be there; a message with another field is rejected"
    how = f"replace the row of the same {', '.join(keys)}" if keys else "are appended"
    if operation == "delete":
        how = f"remove the row of the same {', '.join(keys)}"
    elif "${!" in operation:
        how = f"are inserted, or replace or remove the row of the same {', '.join(keys)}"
    yield f"rows         {how}; a micro-batch is one commit"
