"""Tables of `table_resources`: their fields, loading, and the form in which they are kept.

A component reads rows, and knows by which sign it may see that they have changed. The rest is here:
keys, bounds, and the bytes of a version, which are the same for the same rows.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol

import orjson

from streamer.bloblang import Mapping as Bloblang
from streamer.bloblang import compile_mapping
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.lookup_tables import LookupTable, TableRow, key_text, use_tables
from streamer.core.message import Message
from streamer.core.value import DELETED, NOTHING
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import (
    BuildContext,
    Field,
    Kind,
    ParsedComponent,
    ParsedFields,
    duration_field,
)

KEY: Final = "key"
KEY_MAPPING: Final = "key_mapping"
REFRESH_INTERVAL: Final = "refresh_interval"
MAX_ROWS: Final = "max_rows"
MAX_BYTES: Final = "max_bytes"

TABLE_BEGIN: Final = {KEY: "id"}
"""What a new config has, since a table without a key is not right."""


class TableError(StreamerError):
    """A table cannot be loaded: its file is away, a row has no key, it is too large."""


def _check_positive(value: int) -> str | None:
    return None if value > 0 else f"is {value}; expected 1 or more"


def table_fields(refresh_interval: str, how: str) -> tuple[Field, ...]:
    """Return the fields of every table.

    Args:
        refresh_interval: the default of the field of that name.
        how: what is done then, in words.
    """
    return (
        Field(
            KEY,
            "string",
            "The column whose value is a row's key. Of rows with one key the last one counts.",
            default="",
            examples=("city",),
        ),
        Field(
            KEY_MAPPING,
            "string",
            "A mapping that makes a row's key, in the place of `key`. A row for which it is null "
            "or deleted is left out.",
            default="",
            mapping=True,
            examples=('root = this.country + "/" + this.city',),
        ),
        duration_field(
            REFRESH_INTERVAL,
            f"How often {how}; `0s` for never, so that only a start loads the table.",
            default=refresh_interval,
            check=lambda ns: None if ns >= 0 else "is negative; expected 0s or more",
        ),
        Field(
            MAX_ROWS,
            "int",
            "The most rows that it may have. Every worker process keeps the whole table.",
            default=1_000_000,
            advanced=True,
            check=_check_positive,
        ),
        Field(
            MAX_BYTES,
            "int",
            "The most bytes that its rows may have as JSON.",
            default=64 << 20,
            advanced=True,
            check=_check_positive,
        ),
    )


def table_problems(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    """Return what is wrong with the fields of a table together, for a spec's `check`."""
    if bool(parsed[KEY]) == bool(parsed[KEY_MAPPING].strip()):
        what = "both are set" if parsed[KEY] else "neither is set"
        yield KEY, f"or key_mapping says what a row's key is, and {what}; expected one of them"


class RowSource(Protocol):
    """Place that the rows of a table are in."""

    def read_rows(self, ex: Execution) -> Iterable[TableRow]:
        """Give the rows.

        Raises:
            StreamerError: they cannot be read.
            OSError: likewise.
        """

    def change_sign(self) -> str | None:
        """Return a text that changes when rows may have; None where only reading them tells.

        Raises:
            OSError: what there is to look at is away.
        """


class TableVersion(NamedTuple):
    """The rows of a table as they were at one time.

    Attributes:
        version: names what is in it: the same rows have the same name.
        body: the rows as bytes, see `read_version`.
        rows: how many there are.
        remark: what is odd about them, in words; empty for nothing.
    """

    version: str
    body: bytes
    rows: int
    remark: str


class TableLoader:
    """Loads one table.

    Attributes:
        refresh_interval: how often to look for other rows, ns; 0 for never.
    """

    def __init__(self, parsed: ParsedFields, source: RowSource, context: BuildContext) -> None:
        """Take the fields of `table_fields`, where the rows are, and the component's place."""
        self._source = source
        self._key: str = parsed[KEY]
        self._mapping = compile_mapping(parsed[KEY_MAPPING]) if parsed[KEY_MAPPING] else None
        self._max_rows, self._max_bytes = parsed[MAX_ROWS], parsed[MAX_BYTES]
        self._origin = ComponentRef(context.component)
        self.refresh_interval: int = parsed.get(REFRESH_INTERVAL) or 0

    def change_sign(self) -> str | None:
        """Return a text that changes when the rows may have; None where only loading tells."""
        try:
            return self._source.change_sign()
        except OSError:
            return None

    def load(self, ex: Execution) -> TableVersion:
        """Read the rows.

        Raises:
            TableError: they cannot be read, a row has no key, or they are too many.
        """
        rows: dict[str, TableRow] = {}
        count, without_key = 0, 0
        try:
            for row in self._source.read_rows(ex):
                count += 1
                key = self._key_of(row, count, ex)
                if key is None:
                    without_key += 1
                    continue
                rows[key] = row
                if len(rows) > self._max_rows:
                    raise TableError(f"it has over {self._max_rows:,} rows, which is its max_rows")
            body = dump_json(rows)
        except TableError:
            raise
        except OSError as e:
            raise TableError(f"{e.filename or ''}: {str(e.strerror or e).lower()}") from None
        except (StreamerError, ValueError) as e:
            raise TableError(str(e)) from None
        if len(body) > self._max_bytes:
            size = f"{len(body):,} bytes of JSON, over its max_bytes of {self._max_bytes:,}"
            raise TableError(f"its rows are {size}")
        remarks = []
        if without_key:
            remarks.append(f"{without_key} of {count} rows have no key and are left out")
        if repeated := count - without_key - len(rows):
            remarks.append(f"{repeated} rows have the key of a later row, which counts")
        return TableVersion(_name_version(body), _compress(body), len(rows), "; ".join(remarks))

    def probe(self) -> str:
        """Load the table; return what it has, for a check that nothing is kept of."""
        version = self.load(Execution(time.time_ns))
        return f"{version.rows:,} rows" + (f"; {version.remark}" if version.remark else "")

    def _key_of(self, row: TableRow, number: int, ex: Execution) -> str | None:
        if self._mapping is None:
            if self._key not in row:
                known = ", ".join(row) or "none"
                raise TableError(f"row {number} has no column {self._key!r}; it has {known}")
            return key_text(row[self._key])
        return _query_key(self._mapping, row, number, ex)


def _query_key(mapping: Bloblang, row: TableRow, number: int, ex: Execution) -> str | None:
    try:
        key = mapping.query([Message(None, {}, None, row)], 0, ex)
    except MessageError as e:
        raise TableError(f"key_mapping failed for row {number}: {e}") from None
    return None if key is DELETED or key is NOTHING else key_text(key)


def _name_version(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def _compress(body: bytes) -> bytes:
    from streamer.core.zstd import compress

    return compress(body)


def read_version(body: bytes) -> LookupTable:
    """Return the table of which `TableVersion.body` has the rows.

    Raises:
        ValueError: these are not its bytes.
    """
    from streamer.core.zstd import ZstdDecompressor, ZstdError

    try:
        return LookupTable(orjson.loads(ZstdDecompressor().decompress(body)))
    except (ZstdError, ValueError) as e:
        raise ValueError(f"they are no table: {e}") from None


class LoadedTables:
    """Tables that are loaded when they are first looked up, for tests and tools."""

    def __init__(self, loaders: Mapping[str, TableLoader], ex: Execution) -> None:
        """Take what loads the tables, by label, and what it is run in."""
        self._loaders = loaders
        self._ex = ex
        self._tables: dict[str, LookupTable] = {}

    def find(self, label: str) -> LookupTable:
        """Return a table; see `LookupTables.find`."""
        if label not in self._tables:
            if label not in self._loaders:
                raise missing_table(label, self._loaders)
            try:
                self._tables[label] = read_version(self._loaders[label].load(self._ex).body)
            except TableError as e:
                raise TableError(f"table {label!r} cannot be loaded: {e}") from None
        return self._tables[label]


def missing_table(label: str, known: Iterable[str]) -> TableError:
    """Return the error that there is no table of a label."""
    labels = ", ".join(sorted(known)) or "none"
    return TableError(f"there is no table with the label {label!r}; table_resources has {labels}")


@contextmanager
def use_local_tables(
    resources: Mapping[tuple[Kind, str], ParsedComponent], context: BuildContext
) -> Iterator[None]:
    """Let mappings look up a config's tables while the block runs: for tests and tools."""
    with use_tables(LoadedTables(build_loaders(resources, context), Execution(time.time_ns))):
        yield


def build_loaders(
    resources: Mapping[tuple[Kind, str], ParsedComponent], context: BuildContext
) -> dict[str, TableLoader]:
    """Build the tables among a config's resources, by label."""
    return {label: context.resource(kind, label) for kind, label in resources if kind == Kind.TABLE}
