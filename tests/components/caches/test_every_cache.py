"""What every cache does, whatever it keeps its values in."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from streamer.core.execution import Execution
from streamer.sdk.cache import Cache, CacheItem, KeyAlreadyExistsError, KeyNotFoundError, set_many
from tests.components.caches.conftest import Caches, Run

KEEPING = {
    "memory": "memory: {}",
    "memory in parts": "memory: {shards: 7}",
    "lru": "lru: {}",
    "lru without a lock": "lru: {optimistic: true}",
    "lru in two queues": "lru: {algorithm: two_queues}",
    "lru that adapts": "lru: {algorithm: arc}",
    "ttlru": "ttlru: {}",
    "file": "file: {directory: DIRECTORY}",
    "multilevel": "multilevel: [near, far]\n---\nlabel: near\nmemory: {}\n---\nlabel: far\nlru: {}",
}


@pytest.fixture(params=KEEPING)
def kept(request: pytest.FixtureRequest, cache: Caches, tmp_path: Path) -> Cache:
    return cache(KEEPING[request.param].replace("DIRECTORY", str(tmp_path)))


def _get(cache: Cache, key: str, ex: Execution) -> bytes | None:
    try:
        return cache.get(key, ex)
    except KeyNotFoundError:
        return None


def test_a_value_is_found_under_its_key_until_it_is_deleted(kept: Cache, a_run: Run) -> None:
    assert _get(kept, "a", a_run.ex) is None
    kept.set("a", b"one", None, a_run.ex)
    kept.set("b", b"", None, a_run.ex)
    kept.set("a", b"two\n\xff", None, a_run.ex)
    assert _get(kept, "a", a_run.ex) == b"two\n\xff"
    assert _get(kept, "b", a_run.ex) == b""
    kept.delete("a", a_run.ex)
    assert _get(kept, "a", a_run.ex) is None
    assert _get(kept, "b", a_run.ex) == b""
    kept.delete("a", a_run.ex)  # is none: as good


def test_a_key_is_added_once(kept: Cache, a_run: Run) -> None:
    kept.add("a", b"one", None, a_run.ex)
    with pytest.raises(KeyAlreadyExistsError, match="^key already exists$"):
        kept.add("a", b"two", None, a_run.ex)
    assert _get(kept, "a", a_run.ex) == b"one"
    kept.delete("a", a_run.ex)
    kept.add("a", b"three", None, a_run.ex)
    assert _get(kept, "a", a_run.ex) == b"three"


def test_several_values_are_stored_at_once(kept: Cache, a_run: Run) -> None:
    set_many(kept, {"a": CacheItem(b"1"), "b": CacheItem(b"2", 10**9)}, a_run.ex)
    # Caches that a cache is made of count too.
    assert a_run.counted.count(("cache_success", "set")) >= 2
    assert [_get(kept, key, a_run.ex) for key in "abc"] == [b"1", b"2", None]


def test_every_operation_is_counted_by_its_outcome(kept: Cache, a_run: Run) -> None:
    _get(kept, "a", a_run.ex)
    kept.add("a", b"", None, a_run.ex)
    with pytest.raises(KeyAlreadyExistsError):
        kept.add("a", b"", None, a_run.ex)
    kept.set("a", b"", None, a_run.ex)
    _get(kept, "a", a_run.ex)
    kept.delete("a", a_run.ex)
    outcomes = a_run.counted
    for name, operation in (
        *(("cache_not_found", "get"), ("cache_success", "add"), ("cache_duplicate", "add")),
        *(("cache_success", "set"), ("cache_success", "get"), ("cache_success", "delete")),
    ):
        assert (name, operation) in outcomes


# Benthos's multilevel does not add to all levels at once either.
@pytest.mark.parametrize("name", sorted({*KEEPING} - {"lru without a lock", "multilevel"}))
def test_of_threads_that_add_one_key_at_once_one_succeeds(
    name: str, cache: Caches, tmp_path: Path, a_run: Run
) -> None:
    kept, gate = cache(KEEPING[name].replace("DIRECTORY", str(tmp_path))), threading.Barrier(4)
    added: list[str] = []

    def add() -> None:
        gate.wait(30)
        for key in map(str, range(100)):
            try:
                kept.add(key, b"", None, a_run.ex)
            except KeyAlreadyExistsError:
                continue
            added.append(key)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(added, key=int) == [str(n) for n in range(100)]


def test_noop_takes_everything_and_finds_nothing(cache: Caches, a_run: Run) -> None:
    noop = cache("noop: {}")
    noop.set("a", b"x", None, a_run.ex)
    noop.add("a", b"x", None, a_run.ex)
    noop.add("a", b"x", None, a_run.ex)
    noop.delete("a", a_run.ex)
    assert _get(noop, "a", a_run.ex) is None
    assert {level for level, _ in a_run.logged} == {"TRACE"}
