"""Whether cases of a switch that change rows of one table do so in no order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Final, NamedTuple

from streamer.config.nodes import Mapping, Node, Scalar, Sequence
from streamer.config.read_context import ReadContext

_OUTPUTS: Final = ("sql_insert", "sql_raw")
_SECTIONS: Final = ("output", "output_resources")
_TABLE_IN_QUERY: Final = re.compile(r"\b(?:INTO|FROM|UPDATE|JOIN)\s+([\w.\"`]+)", re.I)
_CHANGE: Final = re.compile(r"\b(?:DELETE|UPDATE|MERGE|REPLACE)\b", re.I)
_HINT: Final = (
    "set max_in_flight: 1 in both, or write upserts and deletes by one sql_insert with upsert_by "
    "and delete_when; keep_order: false says that the order does not matter"
)


class _TableWriter(NamedTuple):
    """An output of a case that writes to a database.

    Attributes:
        number: of the case.
        name: where it stands in the config.
        dsn: the database.
        tables: names of tables, in small letters.
        is_changing: whether it changes rows that are there.
        is_in_order: whether it sends one batch at a time.
    """

    number: int
    name: Node
    dsn: str
    tables: frozenset[str]
    is_changing: bool
    is_in_order: bool


def check_order_among_cases(context: ReadContext, root: Mapping) -> None:
    """Add a warning where cases of a switch change the same table at once.

    Args:
        context: gets the findings.
        root: the config's tree.
    """
    for section in _SECTIONS:
        entry = root.entries.get(section)
        for switch in _find_switches(entry[1]) if entry else ():
            _check_switch(context, switch)


def _check_switch(context: ReadContext, switch: Mapping) -> None:
    cases = switch.entries.get("cases")
    if not cases or not isinstance(cases[1], Sequence) or "keep_order" in switch.entries:
        return
    items = [item for item in cases[1].items if isinstance(item, Mapping)]
    goes_on = any(_text(item, "continue") == "true" for item in items)
    writers = [one for number, item in enumerate(items) for one in _find_writers(number, item)]
    for first, second in combinations(writers, 2):
        shared = first.tables & second.tables
        if first.dsn != second.dsn or not shared or not (first.is_changing or second.is_changing):
            continue
        if goes_on or not (first.is_in_order and second.is_in_order):
            message = (
                f"cases {first.number} and {second.number} write to the table {min(shared)} at "
                f"once: a later message may overtake an earlier one"
            )
            context.findings.add_at(second.name, "no_order_among_cases", message, _HINT)
            return


def _find_switches(node: Node) -> Iterator[Mapping]:
    """Yield the fields of every `switch` in a tree."""
    if isinstance(node, Sequence):
        for item in node.items:
            yield from _find_switches(item)
    elif isinstance(node, Mapping):
        for name, (_, value) in node.entries.items():
            if name == "switch" and isinstance(value, Mapping):
                yield value
            yield from _find_switches(value)


def _find_writers(number: int, case: Mapping) -> Iterator[_TableWriter]:
    output = case.entries["output"][1] if "output" in case.entries else None
    for name, (key, body) in output.entries.items() if isinstance(output, Mapping) else ():
        if name not in _OUTPUTS or not isinstance(body, Mapping):
            continue
        texts = [_text(body, field) for field in ("query", "suffix", "prefix")]
        queries = body.entries.get("queries")
        for item in queries[1].items if queries and isinstance(queries[1], Sequence) else ():
            texts.append(_text(item, "query") if isinstance(item, Mapping) else "")
        tables = [_text(body, "table"), *_TABLE_IN_QUERY.findall(" ".join(texts))]
        yield _TableWriter(
            number,
            key,
            _text(body, "dsn"),
            frozenset(table.strip('"`').lower() for table in tables if table),
            "upsert_by" in body.entries or any(map(_CHANGE.search, texts)),
            _text(body, "max_in_flight") == "1",
        )


def _text(body: Mapping, name: str) -> str:
    """Return a field as it is written; empty where it is not, or is no text."""
    entry = body.entries.get(name)
    return entry[1].text if entry is not None and isinstance(entry[1], Scalar) else ""
