"""INSERT and SELECT with what configs put before and behind them.

SQLAlchemy has no place before the first word of a statement, nor one behind an INSERT; both are
made by its own way to change how a construct is compiled.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnClause, Insert, Select, TableClause, TextClause, literal_column
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.visitors import InternalTraversal


class AffixedInsert(Insert):
    """An INSERT between two texts."""

    inherit_cache = True
    _traverse_internals = [
        *Insert._traverse_internals,
        ("framing_prefix", InternalTraversal.dp_clauseelement),
        ("framing_suffix", InternalTraversal.dp_clauseelement),
    ]

    def __init__(self, table: TableClause, prefix: str, suffix: str) -> None:
        """Take the table, and what stands before INSERT and after the values."""
        super().__init__(table)
        self.framing_prefix: ColumnClause[Any] = literal_column(prefix)
        self.framing_suffix: ColumnClause[Any] = literal_column(suffix)


class AffixedSelect(Select[*tuple[Any, ...]]):
    """A SELECT behind a text."""

    inherit_cache = True
    _traverse_internals = [
        *Select._traverse_internals,
        ("framing_prefix", InternalTraversal.dp_clauseelement),
    ]

    def __init__(self, *columns: TextClause, prefix: TextClause) -> None:
        """Take what is asked for, and what stands before SELECT."""
        super().__init__(*columns)
        self.framing_prefix = prefix


@compiles(AffixedInsert)
def _compile_insert(element: AffixedInsert, compiler: Any, **options: Any) -> str:
    prefix, suffix = (
        compiler.process(part) for part in (element.framing_prefix, element.framing_suffix)
    )
    return f"{prefix} {compiler.visit_insert(element, **options)} {suffix}".strip()


@compiles(AffixedSelect)
def _compile_select(element: AffixedSelect, compiler: Any, **options: Any) -> str:
    prefix = compiler.process(element.framing_prefix) if element.framing_prefix.text else ""
    return f"{prefix} {compiler.visit_select(element, **options)}".lstrip()
