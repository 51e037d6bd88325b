"""The text of a query: its tables, the columns that it may use, and its mistakes.

DuckDB's own parser reads it; nothing is run, and no table needs to be there.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from streamer.connectors.duckdb.errors import QueryError, join_lines, locate_byte

BATCH: Final = "batch"
"""The name of the table that has the messages."""

MAX_QUERY_CHARS: Final = 64 << 10

_FIXED_FUNCTIONS: Final = frozenset({"range", "generate_series", "unnest"})
"""Functions in the place of tables that read no other table."""

_FILE_FUNCTIONS: Final = ("read_", "parquet_", "sniff_csv", "glob", "json_scan")
_FILE_HINT: Final = "name the file in the field files, and use its name"


class TableUse(NamedTuple):
    """A table that a query names.

    Attributes:
        name: its name.
        line: the place in the query, from 1.
        column: likewise.
    """

    name: str
    line: int
    column: int


class QueryText(NamedTuple):
    """The tables and the names of a query.

    Attributes:
        tables: the tables that it reads, without those that it makes itself.
        names: all names in it, in lower case, of which some are columns; None where it may use
            any column.
    """

    tables: tuple[TableUse, ...]
    names: frozenset[str] | None

    def uses_field(self, name: str) -> bool:
        """Return whether the query may use the column of a name."""
        return self.names is None or name.lower() in self.names


_SERIALIZE_SQL: Final = (
    "SELECT json_serialize_sql(?, skip_null := true, skip_empty := true, skip_default := true)"
)
_lock = threading.Lock()


@lru_cache(maxsize=1)
def _open_parser() -> Any:
    import duckdb

    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": 1,
            "python_enable_replacements": False,
            "allow_persistent_secrets": False,
        },
    )
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


@lru_cache(maxsize=256)
def parse_query(sql: str) -> QueryText:
    """Return what a query says.

    Raises:
        QueryError: it is no single SELECT of DuckDB's SQL.
    """
    if len(sql) > MAX_QUERY_CHARS:
        raise QueryError(f"the query has {len(sql):,} characters; expected {MAX_QUERY_CHARS:,}")
    if not sql.strip():
        raise QueryError(f"the query is empty; expected a SELECT over the table {BATCH}")
    with _lock:
        parser = _open_parser()
        try:
            (row,) = parser.execute(_SERIALIZE_SQL, [sql]).fetchall()
        except UnicodeEncodeError:
            raise QueryError("the query has half of a character") from None
    tree = json.loads(row[0])
    if tree.get("error"):
        raise _read_parser_error(tree, sql)
    statements = tree.get("statements") or []
    if len(statements) != 1:
        raise QueryError(f"expected one SELECT, found {len(statements)} statements")
    return _read_tree(statements[0]["node"], sql)


def _read_parser_error(tree: Mapping[str, Any], sql: str) -> QueryError:
    text = join_lines(tree["error_message"])
    if tree["error_type"] == "not implemented":
        return QueryError(
            "expected one SELECT; the query has another statement, or a PIVOT without the values "
            "of its columns (PIVOT … ON light IN ('red', 'green'))"
        )
    place = locate_byte(sql, int(tree["position"])) if "position" in tree else (0, 0)
    return QueryError(text, *place)


def _read_tree(tree: Any, sql: str) -> QueryText:
    nodes = list(_iterate_nodes(tree))
    own = {
        entry["key"].lower()
        for node in nodes
        for entry in (node.get("cte_map") or {}).get("map") or ()
    }
    tables = []
    for node in nodes:
        kind = node.get("type")
        if kind == "BASE_TABLE" and node["table_name"].lower() not in own:
            tables.append(_read_table(node, sql))
        elif kind == "TABLE_FUNCTION":
            _check_function(node, sql)
    rows = {BATCH, *own, *(node["table_name"].lower() for node in nodes if "table_name" in node)}
    rows |= {str(node.get("alias") or "").lower() for node in nodes if "table_name" in node}
    is_any = any(_uses_all_columns(node, rows) for node in nodes)
    names = None if is_any else frozenset(text.lower() for text in _iterate_texts(tree))
    return QueryText(tuple(dict.fromkeys(tables)), names)


def _read_table(node: Mapping[str, Any], sql: str) -> TableUse:
    line, column = locate_byte(sql, node.get("query_location") or 0)
    name = node["table_name"]
    if node.get("schema_name") or node.get("catalog_name"):
        schema = node.get("schema_name") or node["catalog_name"]
        raise QueryError(
            f"the table {name} is of the schema {schema}; tables here have none", line, column
        )
    return TableUse(name.lower() if name.lower() == BATCH else name, line, column)


def _check_function(node: Mapping[str, Any], sql: str) -> None:
    name = node["function"]["function_name"].lower()
    if name.startswith(_FILE_FUNCTIONS):
        place = locate_byte(sql, node.get("query_location") or 0)
        raise QueryError(f"{name} cannot reach files; {_FILE_HINT}", *place)


def _uses_all_columns(node: Mapping[str, Any], rows: set[str]) -> bool:
    """Return whether a part of a query may use columns that it does not name."""
    if node.get("class") == "STAR" or node.get("ref_type") == "NATURAL":
        return True
    if node.get("class") in ("COLUMN_REF", "POSITIONAL_REFERENCE"):
        # The name of a table is a whole row, as one value.
        names = node.get("column_names")
        return not names or (len(names) == 1 and names[0].lower() in rows)
    kind = node.get("type")
    if kind == "TABLE_FUNCTION":
        return node["function"]["function_name"].lower() not in _FIXED_FUNCTIONS
    return kind in ("PIVOT", "SHOW_REF")


def _iterate_nodes(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Give all objects in a tree, without the stack of Python, in which a query may not fit."""
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(reversed(one))


def _iterate_texts(tree: Any) -> Iterator[str]:
    for node in _iterate_nodes(tree):
        for value in node.values():
            for one in value if isinstance(value, list) else (value,):
                if isinstance(one, str):
                    yield one
