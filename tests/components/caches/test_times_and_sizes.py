"""Which values a cache lets go, and when: by time, by size, and by what was used."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import pytest

from streamer.config import parse_config
from streamer.core.errors import ConfigError
from streamer.sdk.cache import Cache, CacheError, KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.cache.eviction import AdaptiveReplacement, LeastRecentlyUsed, TwoQueues
from tests.components.caches.conftest import Caches, Run

SECOND = 10**9


def found(cache: Cache, keys: str, run: Run) -> str:
    """Return those keys that the cache has a value for."""
    there = ""
    for key in keys:
        try:
            cache.get(key, run.ex)
        except KeyNotFoundError:
            continue
        there += key
    return there


def test_memory_lets_go_of_values_after_their_own_time_or_that_of_the_cache(
    cache: Caches, a_run: Run
) -> None:
    kept = cache("memory: {default_ttl: 10s}")
    kept.set("a", b"", None, a_run.ex)
    kept.set("b", b"", 20 * SECOND, a_run.ex)
    a_run.now += 10 * SECOND
    assert found(kept, "ab", a_run) == "ab"
    a_run.now += 1
    assert found(kept, "ab", a_run) == "b"
    kept.set("a", b"", None, a_run.ex)
    a_run.now += 10 * SECOND
    assert found(kept, "ab", a_run) == "a"


def test_memory_adds_no_key_that_is_over_before_a_compaction(cache: Caches, a_run: Run) -> None:
    kept = cache("memory: {default_ttl: 10s, compaction_interval: 60s}")
    kept.add("a", b"", None, a_run.ex)
    a_run.now += 30 * SECOND
    with pytest.raises(KeyAlreadyExistsError):
        kept.add("a", b"", None, a_run.ex)
    a_run.now += 30 * SECOND
    kept.add("b", b"", None, a_run.ex)  # a compaction goes before
    kept.add("a", b"", None, a_run.ex)


def test_memory_without_compactions_keeps_everything(cache: Caches, a_run: Run) -> None:
    kept = cache('memory: {default_ttl: 10s, compaction_interval: ""}')
    kept.set("a", b"", None, a_run.ex)
    kept.set("b", b"", SECOND, a_run.ex)
    a_run.now += 10**6 * SECOND
    assert found(kept, "ab", a_run) == "ab"


def test_memory_keeps_what_it_begins_with_until_it_is_overwritten(
    cache: Caches, a_run: Run
) -> None:
    kept = cache("memory: {default_ttl: 10s, init_values: {a: one, b: two}, shards: 3}")
    a_run.now += 10**6 * SECOND
    assert kept.get("a", a_run.ex) == b"one"
    kept.set("a", b"", None, a_run.ex)
    a_run.now += 11 * SECOND
    assert found(kept, "ab", a_run) == "b"


def test_lru_lets_go_of_what_was_not_used_for_longest(cache: Caches, a_run: Run) -> None:
    kept = cache("lru: {cap: 3, init_values: {z: early}}")
    for key in "abc":
        kept.set(key, b"", None, a_run.ex)
    assert found(kept, "zabc", a_run) == "abc"
    found(kept, "a", a_run)
    kept.add("d", b"", None, a_run.ex)
    assert found(kept, "abcd", a_run) == "acd"


def test_ttlru_lets_go_of_values_by_time_and_by_size(cache: Caches, a_run: Run) -> None:
    kept = cache("ttlru: {cap: 3, default_ttl: 10s, init_values: {z: early}}")
    for key in "abc":
        kept.set(key, b"", 10**6 * SECOND, a_run.ex)
        a_run.now += SECOND
    assert found(kept, "zabc", a_run) == "abc"
    a_run.now += 8 * SECOND
    assert found(kept, "abc", a_run) == "bc"
    kept.set("b", b"", None, a_run.ex)
    a_run.now += 9 * SECOND
    assert found(kept, "abc", a_run) == "b"
    kept.add("c", b"", None, a_run.ex)


def test_the_old_name_of_the_time_of_ttlru_wins(cache: Caches, a_run: Run) -> None:
    kept = cache("ttlru: {default_ttl: 10s, ttl: 5s}")
    kept.set("a", b"", None, a_run.ex)
    a_run.now += 6 * SECOND
    assert found(kept, "a", a_run) == ""


def test_two_queues_keep_what_is_used_often_through_a_burst() -> None:
    plain, queues = LeastRecentlyUsed[int](8), TwoQueues[int](8, 0.25, 0.5)
    for kept in (plain, queues):
        for key in ("a", "b"):
            kept.put(key, 1)
            kept.get(key)
        for number in range(100):
            kept.put(f"burst {number}", 1)
    assert plain.peek("a") is None
    assert (queues.peek("a"), queues.peek("b")) == (1, 1)
    assert sum(queues.peek(f"burst {n}") is not None for n in range(100)) == 6


def test_two_queues_bring_back_a_key_that_has_just_gone_as_a_frequent_one() -> None:
    kept = TwoQueues[int](4, 0.25, 0.5)
    for key in "abcde":
        kept.put(key, 1)
    assert kept.peek("a") is None
    kept.put("a", 2)
    for number in range(20):
        kept.put(f"burst {number}", 1)
    assert kept.peek("a") == 2


def test_arc_keeps_what_is_used_often_and_learns_from_what_was_missed() -> None:
    kept = AdaptiveReplacement[int](4)
    for key in "ab":
        kept.put(key, 1)
        kept.get(key)
    for number in range(50):
        kept.put(f"burst {number}", 1)
    assert (kept.peek("a"), kept.peek("b")) == (1, 1)
    # Each miss of a key that has just gone moves the border towards those used once.
    kept.put("burst 47", 2)
    kept.put("burst 46", 2)
    assert kept.peek("burst 47") == 2
    kept.remove("burst 47")
    assert kept.peek("burst 47") is None


@pytest.mark.parametrize(
    "kind", [LeastRecentlyUsed, AdaptiveReplacement, lambda size: TwoQueues(size, 0.25, 0.5)]
)
def test_no_more_values_are_kept_than_allowed_and_none_is_wrong(
    kind: type[LeastRecentlyUsed[int]],
) -> None:
    kept, written = kind(7), OrderedDict[str, int]()
    for number in range(2_000):
        key = str(number * 7_919 % 23)
        if number % 3 == 0:
            value = kept.get(key)
            assert value is None or value == written[key]
        elif number % 11 == 0:
            kept.remove(key)
        else:
            kept.put(key, number)
            written[key] = number
            assert kept.peek(key) == number
        there = [k for k in written if kept.peek(k) is not None]
        assert len(there) <= 7
        assert all(kept.peek(k) == written[k] for k in there)


def test_file_keeps_values_as_files_that_others_can_read(
    cache: Caches, tmp_path: Path, a_run: Run
) -> None:
    (tmp_path / "sub").mkdir()
    kept = cache(f"file: {{directory: {tmp_path}}}")
    kept.set("sub/a", b"one", 1, a_run.ex)
    a_run.now += SECOND
    assert (tmp_path / "sub" / "a").read_bytes() == b"one"
    kept.add("b", b"two", None, a_run.ex)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "sub"]
    (tmp_path / "c").write_bytes(b"three")
    assert cache(f"file: {{directory: {tmp_path}}}").get("c", a_run.ex) == b"three"


@pytest.mark.parametrize("key", ["../secret", "", ".", "a/../../secret", "a\0b"])
def test_file_refuses_keys_that_lead_out_of_the_directory(
    cache: Caches, tmp_path: Path, a_run: Run, key: str
) -> None:
    (tmp_path / "secret").write_text("no")
    (tmp_path / "inner").mkdir()
    kept = cache(f"file: {{directory: {tmp_path}/inner}}")
    with pytest.raises(CacheError, match="is no path of a file below"):
        kept.get(key, a_run.ex)


def test_file_makes_its_directory(cache: Caches, tmp_path: Path, a_run: Run) -> None:
    kept = cache(f"file: {{directory: {tmp_path}/none/yet}}")
    with pytest.raises(KeyNotFoundError):
        kept.get("a", a_run.ex)
    kept.add("a", b"1", None, a_run.ex)
    kept.set("b/c", b"2", None, a_run.ex)
    with pytest.raises(KeyAlreadyExistsError):
        kept.add("a", b"", None, a_run.ex)
    assert (kept.get("a", a_run.ex), kept.get("b/c", a_run.ex)) == (b"1", b"2")


def test_file_says_when_its_directory_is_none(cache: Caches, tmp_path: Path, a_run: Run) -> None:
    (tmp_path / "taken").touch()
    kept = cache(f"file: {{directory: {tmp_path}/taken}}")
    with pytest.raises(CacheError, match=r"^open .*/taken/a: .*/taken is not a directory$"):
        kept.set("a", b"", None, a_run.ex)
    assert a_run.counted == [("cache_error", "set")]


LEVELS = "multilevel: [near, far]\n---\nlabel: near\nfile: {directory: DIRECTORY/near}\n---\n"
LEVELS += "label: far\nfile: {directory: DIRECTORY/far}"


@pytest.fixture
def levels(cache: Caches, tmp_path: Path) -> Cache:
    for name in ("near", "far"):
        (tmp_path / name).mkdir()
    return cache(LEVELS.replace("DIRECTORY", str(tmp_path)))


def test_multilevel_brings_near_what_it_found_far(
    levels: Cache, tmp_path: Path, a_run: Run
) -> None:
    (tmp_path / "far" / "a").write_bytes(b"one")
    assert levels.get("a", a_run.ex) == b"one"
    assert (tmp_path / "near" / "a").read_bytes() == b"one"
    (tmp_path / "far" / "a").unlink()
    assert levels.get("a", a_run.ex) == b"one"


def test_multilevel_adds_no_key_that_any_level_has(
    levels: Cache, tmp_path: Path, a_run: Run
) -> None:
    (tmp_path / "near" / "a").write_bytes(b"")
    (tmp_path / "far" / "b").write_bytes(b"")
    for key in "ab":
        with pytest.raises(KeyAlreadyExistsError):
            levels.add(key, b"", None, a_run.ex)
    levels.add("c", b"new", None, a_run.ex)
    assert (tmp_path / "near" / "c").read_bytes() == (tmp_path / "far" / "c").read_bytes() == b"new"


def test_multilevel_gives_a_value_that_cannot_be_brought_near(
    levels: Cache, tmp_path: Path, a_run: Run
) -> None:
    (tmp_path / "far" / "a").write_bytes(b"one")
    (tmp_path / "near").rmdir()
    (tmp_path / "near").symlink_to("nowhere")
    assert levels.get("a", a_run.ex) == b"one"
    [(level, text)] = a_run.logged
    assert level == "ERROR"
    assert text.startswith("Unable to passively set key 'a' for cache 'near': ")


@pytest.mark.parametrize(
    ("yaml", "text"),
    [
        ("lru: {cap: 0}", "invalid lru cache parameter capacity: must be bigger than 0"),
        ("lru: {algorithm: fifo}", "is not one of arc, standard, two_queues"),
        ("lru: {algorithm: two_queues, two_queues_recent_ratio: 2.0}", "a ratio from 0 to 1"),
        ("lru: {algorithm: two_queues, cap: 1}", "leaves no room for a key"),
        ("ttlru: {cap: -1}", "invalid ttlru cache parameter capacity: must be bigger than 0"),
        ("ttlru: {default_ttl: 0s}", "must be bigger than 0s"),
        ("multilevel: [tested]", "expected at least two cache levels, found 1"),
        ("multilevel: [tested, other]", "no cache resource with the label 'other'"),
        ("file: {}", "directory"),
    ],
)
def test_lint_refuses_what_cannot_be_a_cache(yaml: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        parse_config(
            f"input: {{stdin: {{}}}}\ncache_resources:\n  - label: tested\n    {yaml}\n", env={}
        )
