"""The text of a partition spec, such as `(day(at), bucket(16, id), light)`, as Connect has it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_TERM: Final = re.compile(
    r"\s*(?:(?P<name>year|month|day|hour|void|identity)\s*\(\s*(?P<of>[^\s(),]+)\s*\)"
    r"|(?P<sized>bucket|truncate)\s*\(\s*(?P<size>\d{1,9})\s*,\s*(?P<column>[^\s(),]+)\s*\)"
    r"|(?P<plain>[^\s(),]+))\s*(?:,|$)"
)


class PartitionTerm(NamedTuple):
    """One field of a partition spec.

    Attributes:
        column: the column that it is made of.
        transform: as Iceberg writes it: `day`, `bucket[16]`, `identity`.
    """

    column: str
    transform: str


def parse_partition_spec(text: str) -> list[PartitionTerm]:
    """Return the fields of a partition spec.

    Raises:
        ValueError: the text is none; its text continues "the spec …".

    Example:
        >>> parse_partition_spec("(bucket(16, id))")
        [PartitionTerm(column='id', transform='bucket[16]')]
    """
    text = text.strip()
    if not (text.startswith("(") and text.endswith(")")):
        raise ValueError("has no parentheses around it; expected such as (day(at), light)")
    inner, at, terms = text[1:-1], 0, list[PartitionTerm]()
    while at < len(inner) and inner[at:].strip():
        match = _TERM.match(inner, at)
        if match is None:
            raise ValueError(
                f"has {inner[at:].strip()!r}; expected a column, or year, month, day, hour, "
                "bucket(n, …) or truncate(n, …) of one"
            )
        if match["sized"]:
            terms.append(PartitionTerm(match["column"], f"{match['sized']}[{match['size']}]"))
        else:
            terms.append(PartitionTerm(match["of"] or match["plain"], match["name"] or "identity"))
        at = match.end()
    return terms
