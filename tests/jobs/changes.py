"""Changes of a table, as Debezium tells them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

_INSERTS, _DELETES, _SAME = 0.3, 0.2, 0.1

Row = dict[str, Any]


def change_rows(
    rng: random.Random, number: int, make_values: Callable[[], Row]
) -> list[dict[str, Any]]:
    """Return changes in the order in which they were made, `ts_ms` counting them.

    Args:
        rng: the source of chance.
        number: how many changes.
        make_values: makes the columns of a row, but for its `id`.
    """
    rows: dict[int, Row] = {}
    ids: list[int] = []
    changes = []
    for n in range(number):
        chance = rng.random()
        if len(ids) < 10 or chance < _INSERTS:
            before, op = None, "r" if n < 10 else "c"
            after: Row | None = {"id": n, **make_values()}
            ids.append(n)
        else:
            index = rng.randrange(len(ids))
            before = rows[ids[index]]
            if chance < _INSERTS + _DELETES:
                after, op = None, "d"
                ids[index] = ids[-1]
                ids.pop()
            else:
                same = chance < _INSERTS + _DELETES + _SAME
                op, after = "u", {**before, **({} if same else make_values())}
        if after is None:
            del rows[before["id"]]  # type: ignore[index]
        else:
            rows[after["id"]] = after
        changes.append({"op": op, "before": before, "after": after, "ts_ms": n})
    return changes
