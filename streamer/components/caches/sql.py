"""`sql`: values in a table of a database.

It "uses an SQL database table as a destination for storing cache key/value items": a row for each
key. How a database replaces a row is up to its dialect, so `set_suffix` says it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.sql import Database, SqlError
from streamer.connectors.sql.database_fields import (
    CONNECTION_FIELDS,
    DRIVER,
    PACKAGES,
    TABLE,
    TARGET_FIELDS,
    shared_database,
)
from streamer.connectors.sql.drivers import MYSQL, PGX, POSTGRES, SQLITE
from streamer.core.execution import Execution
from streamer.sdk.cache import CacheError, KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Executable

KEY_COLUMN: Final = "key_column"
VALUE_COLUMN: Final = "value_column"
SET_SUFFIX: Final = "set_suffix"

_POSTGRES: Final = (PGX, POSTGRES)
_DRIVERS: Final = (MYSQL, *_POSTGRES, SQLITE)
# What databases say of a key that is there already.
_DUPLICATE_KEY_TEXTS: Final = ("duplicate key", "UNIQUE constraint failed", "Duplicate entry")


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    if parsed[DRIVER] not in _DRIVERS:
        yield DRIVER, f"is {parsed[DRIVER]!r}; a cache has one of {', '.join(_DRIVERS)}"


SPEC: Final = Spec(
    Kind.CACHE,
    "sql",
    "Keeps values in a table of a database.",
    description=(
        "The table has a column for keys, which must be unique, and one for values, of a type for "
        "text or for bytes; other columns must have defaults. `get` is a `SELECT`, `delete` a "
        "`DELETE`, `add` and `set` are an `INSERT`, `set` with `set_suffix` behind it: without one "
        "`set` fails for a key that is there. Values have no time: a `ttl` has no effect."
    ),
    fields=(
        *TARGET_FIELDS,
        Field(TABLE, "string", "The table.", examples=("foo",)),
        Field(KEY_COLUMN, "string", "The column of keys.", examples=("foo",)),
        Field(VALUE_COLUMN, "string", "The column of values.", examples=("bar",)),
        Field(
            SET_SUFFIX,
            "string",
            "Suffix of the statement that sets a value, so that it replaces an existing one.",
            optional=True,
            examples=(
                "ON CONFLICT (foo) DO UPDATE SET bar=excluded.bar",
                "ON CONFLICT (foo) DO NOTHING",
            ),
        ),
        *CONNECTION_FIELDS,
    ),
    examples=(
        Example(
            "A table that makes itself",
            "cache_resources:\n"
            "  - label: kept\n"
            "    sql:\n"
            "      driver: sqlite\n"
            "      dsn: file:kept.db\n"
            "      table: kept\n"
            "      key_column: id\n"
            "      value_column: content\n"
            "      set_suffix: ON CONFLICT (id) DO UPDATE SET content=excluded.content\n"
            "      init_statement: |\n"
            "        CREATE TABLE IF NOT EXISTS kept (id text PRIMARY KEY, content blob);\n",
        ),
    ),
    check=_problems,
    categories=("Services",),
    limits="`mysql`, `postgres` and `sqlite`; nothing expires",
    requires=PACKAGES,
)


class SqlCache:
    """Values in a table."""

    def __init__(
        self,
        connect: Callable[[], Database],
        column: str,
        statements: Callable[[], dict[str, Executable]],
        origin: ComponentRef,
        *,
        postgres: bool,
    ) -> None:
        """Take what gives the database, and the statements by operation.

        Args:
            connect: gives the database.
            column: the column of values.
            statements: those of `get`, `set`, `add`, `delete` and `type`, which gives the type of
                the column of values.
            origin: where the cache stands.
            postgres: whether the database is a PostgreSQL.
        """
        self._connect = connect
        self._column = column
        self._make_statements = statements
        self._origin = origin
        self._postgres = postgres
        self._lock = threading.Lock()
        self._bytes: bool | None = None

    @cached_property
    def _statements(self) -> dict[str, Executable]:
        return self._make_statements()

    def get(self, key: str, ex: Execution) -> bytes:
        """Return the value of a key."""
        rows = self._run("get", ex, key=key)
        if not rows:
            raise KeyNotFoundError
        value = rows[0][0]
        return b"" if value is None else bytes.fromhex(value)

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value."""
        self._run("set", ex, key=key, value=self._to_column_value(value, ex))

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a key that has none."""
        try:
            self._run("add", ex, key=key, value=self._to_column_value(value, ex))
        except CacheError as error:
            if any(text in str(error) for text in _DUPLICATE_KEY_TEXTS):
                raise KeyAlreadyExistsError from None
            raise

    def delete(self, key: str, ex: Execution) -> None:
        """Forget a key."""
        self._run("delete", ex, key=key)

    def _run(self, operation: str, ex: Execution, **parameters: Any) -> list[Any]:
        try:
            on = self._connect()
            on.begin(ex, self._origin)
            rows = on.execute(self._statements[operation], **parameters)
        except SqlError as error:
            raise CacheError(str(error)) from None
        return [] if rows is None else list(rows.values)

    def _to_column_value(self, value: bytes, ex: Execution) -> bytes | str:
        """Return a value as its column takes it: a text, unless it is a column of bytes."""
        with self._lock:
            if self._bytes is None:
                self._bytes = not self._postgres or self._run("type", ex)[0][0] == "bytea"
        if self._bytes:
            return value
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CacheError(
                f"the value is no text, and the column {self._column} takes nothing else; let it "
                "be of a type for bytes"
            ) from None


def _build_statements(parsed: ParsedFields, *, postgres: bool) -> dict[str, Executable]:
    from sqlalchemy import Text, bindparam, cast, delete, func, insert, literal_column, select
    from sqlalchemy import column as named
    from sqlalchemy import quoted_name as name
    from sqlalchemy import table as of
    from sqlalchemy.types import NullType

    from streamer.connectors.sql.statement_affixes import AffixedInsert

    # Names are taken as they are written, and columns say what becomes of values.
    key, value = (
        named(name(parsed[field], quote=False), NullType()) for field in (KEY_COLUMN, VALUE_COLUMN)
    )
    table = of(name(parsed[TABLE], quote=False), key, value)
    given = bindparam("key", type_=NullType())
    row = {key.key: given, value.key: bindparam("value", type_=NullType())}
    # As digits, whatever the type: a driver would give back bytes as text.
    digits: ColumnElement[Any] = func.hex(value)
    if postgres:
        text = parsed[VALUE_COLUMN]
        # Bytes are written as digits behind two characters.
        digits = literal_column(
            f"CASE WHEN pg_typeof({text})::text = 'bytea' THEN substr({text}::text, 3) "
            f"ELSE encode(convert_to({text}::text, 'UTF8'), 'hex') END"
        )
    none = select(value).limit(literal_column("0")).scalar_subquery()
    return {
        "get": select(digits).select_from(table).where(key == given),
        "set": AffixedInsert(table, "", parsed[SET_SUFFIX] or "").values(row),
        "add": insert(table).values(row),
        "delete": delete(table).where(key == given),
        "type": select(cast(func.pg_typeof(none), Text)),
    }


def build(parsed: ParsedFields, context: BuildContext) -> SqlCache:
    """Take the statements; the database is asked at the first use."""
    postgres = parsed[DRIVER] in _POSTGRES
    return SqlCache(
        lambda: shared_database(parsed, context),
        parsed[VALUE_COLUMN],
        lambda: _build_statements(parsed, postgres=postgres),
        ComponentRef(context.component),
        postgres=postgres,
    )
