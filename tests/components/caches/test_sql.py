"""Values in tables of SQLite and of a real PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.sdk.cache import Cache, CacheError, KeyAlreadyExistsError, KeyNotFoundError
from tests.components.caches.conftest import Caches, Run
from tests.connectors.sql.databases import BOTH, Place, place

_UPSERT = "ON CONFLICT (id) DO UPDATE SET content=excluded.content"
REPLACING = {
    "postgres": _UPSERT,
    "sqlite": _UPSERT,
    "mysql": "ON DUPLICATE KEY UPDATE content=VALUES(content)",
}
TYPES = {"postgres": ("text", "bytea"), "sqlite": ("text", "blob"), "mysql": ("text", "blob")}


@pytest.fixture(params=BOTH)
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place(request.param, request, tmp_path)


def made(cache: Caches, db: Place, of_bytes: bool = True, suffix: str | None = None) -> Cache:
    kind = TYPES[db.driver][of_bytes]
    key = "varchar(99)" if db.driver == "mysql" else "text"
    ending = REPLACING[db.driver] if suffix is None else suffix
    return cache(
        f"sql:\n  driver: {db.driver}\n  dsn: '{db.dsn}'\n  table: {db.table}\n"
        f"  key_column: id\n  value_column: content\n  set_suffix: '{ending}'\n"
        f"  init_statement: CREATE TABLE IF NOT EXISTS {db.table} "
        f"(id {key} PRIMARY KEY, content {kind})"
    )


@pytest.mark.parametrize("of_bytes", [False, True])
def test_a_value_is_kept_until_it_is_replaced_or_deleted(
    cache: Caches, db: Place, a_run: Run, of_bytes: bool
) -> None:
    kept = made(cache, db, of_bytes)
    with pytest.raises(KeyNotFoundError):
        kept.get("a", a_run.ex)
    for value in (b"one", b"", "\\x61 'quoted' \\ é\n".encode()):
        kept.set("a", value, None, a_run.ex)
        assert kept.get("a", a_run.ex) == value
    kept.delete("a", a_run.ex)
    kept.delete("a", a_run.ex)
    with pytest.raises(KeyNotFoundError):
        kept.get("a", a_run.ex)


@pytest.mark.parametrize("of_bytes", [False, True])
def test_a_key_is_added_once(cache: Caches, db: Place, a_run: Run, of_bytes: bool) -> None:
    kept = made(cache, db, of_bytes)
    kept.add("a", b"one", None, a_run.ex)
    with pytest.raises(KeyAlreadyExistsError):
        kept.add("a", b"two", None, a_run.ex)
    assert kept.get("a", a_run.ex) == b"one"
    assert len(db.rows()) == 1


def test_columns_of_bytes_keep_any_value(cache: Caches, db: Place, a_run: Run) -> None:
    kept, value = made(cache, db), bytes(range(256))
    kept.set("a", value, None, a_run.ex)
    assert kept.get("a", a_run.ex) == value


def test_values_that_others_have_written_are_found(cache: Caches, db: Place, a_run: Run) -> None:
    kept = made(cache, db, of_bytes=False)
    kept.set("a", b"", None, a_run.ex)  # now there is a table
    db.run(f"INSERT INTO {db.table} VALUES ('b', 'written')")
    assert kept.get("b", a_run.ex) == b"written"


def test_without_a_suffix_a_value_is_not_replaced(cache: Caches, db: Place, a_run: Run) -> None:
    kept = made(cache, db, suffix="")
    kept.set("a", b"one", None, a_run.ex)
    with pytest.raises(CacheError, match="duplicate key|UNIQUE constraint|Duplicate entry"):
        kept.set("a", b"two", None, a_run.ex)
    ignoring = made(cache, db, suffix=db.skipping)
    ignoring.set("a", b"two", None, a_run.ex)
    assert kept.get("a", a_run.ex) == b"one"


def test_a_table_that_is_missing_is_an_error(cache: Caches, db: Place, a_run: Run) -> None:
    kept = cache(
        f"sql: {{driver: {db.driver}, dsn: '{db.dsn}', table: nowhere, "
        "key_column: id, value_column: content}"
    )
    with pytest.raises(CacheError, match="nowhere"):
        kept.get("a", a_run.ex)
    assert a_run.counted == [("cache_error", "get")]


@pytest.mark.slow
def test_a_column_of_text_takes_nothing_else_in_postgresql(
    cache: Caches, request: pytest.FixtureRequest, tmp_path: Path, a_run: Run
) -> None:
    kept = made(cache, place("postgres", request, tmp_path), of_bytes=False)
    with pytest.raises(CacheError, match="the column content takes nothing else"):
        kept.set("a", b"\xff", None, a_run.ex)
