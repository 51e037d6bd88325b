"""Caches in memory that several processes share, as the workers of a local master do."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.plan import Plan, make_plan
from streamer.sdk.cache import (
    CacheCall,
    CacheError,
    KeyAlreadyExistsError,
    KeyNotFoundError,
    call_many,
)
from streamer.sdk.cache.shared import CacheServer, SharedCache, connect_shared_cache
from streamer.sdk.spec import Kind
from tests.components.caches.conftest import Run

SECOND = 10**9

CONFIG = """
input: {generate: {mapping: root = 1}}
cache_resources:
  - {label: kept, memory: {default_ttl: 10s}}
  - {label: few, lru: {cap: 2}}
  - {label: filed, file: {directory: /nowhere}}
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    # Sockets have short paths, those of tests may be long.
    with tempfile.TemporaryDirectory(prefix="caches-") as made:
        yield Path(made)


@pytest.fixture
def plan() -> Iterator[Plan]:
    made = make_plan(parse_config(CONFIG, env={}))
    yield made
    made.forget()


@pytest.fixture
def hosted(plan: Plan) -> Iterator[CacheServer]:
    host = plan.host_caches()
    assert host is not None
    yield host
    host.close()


def test_all_who_know_the_run_share_its_caches(plan: Plan, hosted: CacheServer, a_run: Run) -> None:
    directory = plan.context().shared_directory()
    one, other = SharedCache(directory, "kept"), SharedCache(directory, "kept")
    one.add("a", b"one\xff", None, a_run.ex)
    assert other.get("a", a_run.ex) == b"one\xff"
    with pytest.raises(KeyAlreadyExistsError):
        other.add("a", b"", None, a_run.ex)
    other.set("a", b"two", 99 * SECOND, a_run.ex)
    assert one.get("a", a_run.ex) == b"two"
    other.delete("a", a_run.ex)
    with pytest.raises(KeyNotFoundError):
        one.get("a", a_run.ex)


def test_a_component_is_given_the_shared_cache(plan: Plan, hosted: CacheServer, a_run: Run) -> None:
    cache = plan.context().resource(Kind.CACHE, "kept")
    assert isinstance(cache.cache, SharedCache)
    cache.set("a", b"x", None, a_run.ex)
    assert a_run.counted == [("cache_success", "set")]
    assert not isinstance(plan.context().resource(Kind.CACHE, "filed").cache, SharedCache)


def test_times_are_those_of_who_asks(plan: Plan, hosted: CacheServer, a_run: Run) -> None:
    cache = plan.context().resource(Kind.CACHE, "kept")
    cache.set("a", b"x", None, a_run.ex)
    a_run.now += 10 * SECOND
    assert cache.get("a", a_run.ex) == b"x"
    a_run.now += 1
    with pytest.raises(KeyNotFoundError):
        cache.get("a", a_run.ex)


def test_several_calls_are_made_in_order_in_one_go(
    plan: Plan, hosted: CacheServer, a_run: Run
) -> None:
    cache = plan.context().resource(Kind.CACHE, "few")
    calls = [CacheCall("add", key, key.encode()) for key in "abac"] + [
        CacheCall("get", "a"),
        CacheCall("get", "b"),
    ]
    outcomes = call_many(cache, calls, a_run.ex)
    kinds = [type(one) for one in outcomes]
    assert kinds == [bytes, bytes, KeyAlreadyExistsError, bytes, KeyNotFoundError, bytes]
    assert outcomes[5] == b"b"
    assert [name for name, _ in a_run.counted] == [
        *("cache_success", "cache_success", "cache_duplicate"),
        *("cache_success", "cache_not_found", "cache_success"),
    ]


def test_keys_need_not_be_text_that_can_be_written(
    plan: Plan, hosted: CacheServer, a_run: Run
) -> None:
    cache = plan.context().resource(Kind.CACHE, "kept")
    cache.set("\udcff", b"x", None, a_run.ex)
    assert cache.get("\udcff", a_run.ex) == b"x"


def test_a_host_that_has_ended_is_an_error(plan: Plan, hosted: CacheServer, a_run: Run) -> None:
    cache = plan.context().resource(Kind.CACHE, "kept")
    cache.set("a", b"x", None, a_run.ex)
    hosted.close()
    with pytest.raises(CacheError, match="does not answer"):
        for _ in range(2):  # what is on its way may still be answered
            cache.get("a", a_run.ex)


def test_without_a_host_every_process_has_its_own(directory: Path) -> None:
    assert connect_shared_cache(directory, "kept") is None
    plan = make_plan(parse_config(CONFIG.replace("input:", "spark: {master: spark://a:1}\ninput:")))
    assert plan.host_caches() is None
    assert make_plan(parse_config("input: {stdin: {}}")).host_caches() is None


def _add(directory: str, keys: list[str], added: multiprocessing.Queue[int]) -> None:
    cache = SharedCache(Path(directory), "kept")
    outcomes = call_many(cache, [CacheCall("add", key) for key in keys], Execution(lambda: SECOND))
    added.put(sum(outcome == b"" for outcome in outcomes))


def test_of_processes_that_add_the_same_keys_each_key_is_added_by_one(
    plan: Plan, hosted: CacheServer
) -> None:
    started = multiprocessing.get_context("spawn")
    added: multiprocessing.Queue[int] = started.Queue()
    keys = [str(number) for number in range(1_000)]
    given = (str(plan.context().shared_directory()), keys, added)
    processes = [started.Process(target=_add, args=given) for _ in range(2)]
    for one in processes:
        one.start()
    total = sum(added.get(timeout=120) for _ in processes)
    for one in processes:
        one.join()
    assert total == 1_000
