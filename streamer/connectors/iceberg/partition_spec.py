"""The text of a partition spec, such as `(day(at), bucket(16, id), light)`, as Connect has it.

A sort order is such a text too, with directions: `(day(at) desc, light)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_TERM: Final = re.compile(
    r"\s*(?:(?P<name>year|month|day|hour|void|identity)\s*\(\s*(?P<of>[^\s(),]+)\s*\)"
    r"|(?P<sized>bucket|truncate)\s*\(\s*(?P<size>\d{1,9})\s*,\s*(?P<column>[^\s(),]+)\s*\)"
    r"|(?P<plain>[^\s(),]+))(?P<more>[^(),]*)(?:,|$)"
)
_DIRECTION: Final = re.compile(
    r"\s*(?P<direction>asc|desc)?\s*(?:nulls\s+(?P<nulls>first|last))?\s*", re.IGNORECASE
)


class PartitionTerm(NamedTuple):
    """One field of a partition spec.

    Attributes:
        column: the column that it is made of.
        transform: as Iceberg writes it: `day`, `bucket[16]`, `identity`.
    """

    column: str
    transform: str


class SortTerm(NamedTuple):
    """One field of a sort order.

    Attributes:
        term: the column, or its transform.
        is_descending: whether large values come first.
        nulls_first: whether nulls come before all values.
    """

    term: PartitionTerm
    is_descending: bool
    nulls_first: bool


def parse_partition_spec(text: str) -> list[PartitionTerm]:
    """Return the fields of a partition spec.

    Raises:
        ValueError: the text is none; its text continues "the spec …".

    Example:
        >>> parse_partition_spec("(bucket(16, id))")
        [PartitionTerm(column='id', transform='bucket[16]')]
    """
    terms = []
    for term, more in _parse_terms(text):
        if more:
            raise ValueError(f"has {more!r} behind {term.column}; expected a comma or the end")
        terms.append(term)
    return terms


def parse_sort_order(text: str) -> list[SortTerm]:
    """Return the fields of a sort order. Nulls come first where small values do, unless it says so.

    Raises:
        ValueError: the text is none; its text continues "the order …".

    Example:
        >>> parse_sort_order("(day(at) desc)")[0].is_descending
        True
    """
    terms = []
    for term, more in _parse_terms(text):
        match = _DIRECTION.fullmatch(more)
        if match is None:
            raise ValueError(
                f"has {more!r} behind {term.column}; expected asc or desc, and nulls first or "
                "nulls last"
            )
        is_descending = (match["direction"] or "").lower() == "desc"
        nulls = (match["nulls"] or "").lower()
        nulls_first = nulls == "first" if nulls else not is_descending
        terms.append(SortTerm(term, is_descending, nulls_first))
    return terms


def _parse_terms(text: str) -> Iterator[tuple[PartitionTerm, str]]:
    """Give the terms in parentheses, and what stands behind each."""
    text = text.strip()
    if not (text.startswith("(") and text.endswith(")")):
        raise ValueError("has no parentheses around it; expected such as (day(at), light)")
    inner, at = text[1:-1], 0
    while at < len(inner) and inner[at:].strip():
        match = _TERM.match(inner, at)
        if match is None:
            raise ValueError(
                f"has {inner[at:].strip()!r}; expected a column, or year, month, day, hour, "
                "bucket(n, …) or truncate(n, …) of one"
            )
        if match["sized"]:
            term = PartitionTerm(match["column"], f"{match['sized']}[{match['size']}]")
        else:
            term = PartitionTerm(match["of"] or match["plain"], match["name"] or "identity")
        yield term, match["more"].strip()
        at = match.end()
