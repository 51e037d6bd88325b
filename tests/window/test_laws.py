"""The laws of windows, on random streams, against the oracle."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.window.oracle.system import MicroBatch, Oracle, Out, Rules, Said
from tests.window.stream import Given, Stream

KEYS = ["", "a", "b", "c", "ö\n"]
FIRST = -(2**63)
AROUND = (0, 0, 0, FIRST)
"""Times that streams lie around; the first one that there is, too."""


@st.composite
def rules(draw: st.DrawFn) -> Rules:
    size = draw(st.integers(1, 12))
    slide = draw(st.none() | st.integers(1, size - 1)) if size > 1 else None
    bound = (slide or size) - 1
    return Rules(
        size,
        slide,
        draw(st.integers(-bound, bound)),
        draw(st.integers(0, size - 1)),
        draw(st.none() | st.integers(0, 20)),
        draw(st.sampled_from(["drop", "keep"])),
        draw(st.sampled_from(["wait", "flush", "keep"])),
    )


@st.composite
def streams(draw: st.DrawFn, says: str, around: int) -> list[MicroBatch]:
    """Micro-batches whose clock mostly moves on, sometimes leaps or falls back; with restarts."""
    t = around + draw(st.integers(-30, 30))
    batches: list[MicroBatch] = []
    start, backlog, number = 0, draw(st.booleans()), 0
    for _ in range(draw(st.integers(1, 12))):
        t += draw(st.sampled_from([0, 1, 1, 2, 3, 5, 8, 40, -4, -25]))
        t = max(t, FIRST)
        if draw(st.integers(0, 5)) == 0:
            start, backlog = start + 1, draw(st.booleans())
        backlog = backlog and draw(st.booleans())
        messages = []
        for _ in range(draw(st.integers(0, 8))):
            number += 1
            messages.append(draw(said(f"m{number}", t, says)))
        ended = draw(st.integers(0, 4)) == 0
        # Of the time before the micro-batch before nothing is said.
        before = max((batch.t for batch in batches), default=t)
        busy = draw(st.none() | busy_times(before, max(before, t)))
        batches.append(MicroBatch(t, tuple(messages), f"start{start}", backlog, ended, busy))
    return batches


@st.composite
def busy_times(draw: st.DrawFn, before: int, newest: int) -> tuple[tuple[int, int], ...]:
    """When a stream was at work between two micro-batches: once, twice, or not at all."""
    cuts = sorted(draw(st.lists(st.integers(before, newest), max_size=4)))
    return tuple((a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=False) if a < b)


def said(name: str, t: int, says: str) -> st.SearchStrategy[Said]:
    near = st.integers(max(t - 20, FIRST), t + 15)
    if says == "both":  # what says now() and what names that very instant look the same
        near = near.filter(lambda time: time != t)
    times: st.SearchStrategy[object] = st.just("now")
    if says != "now":
        times = st.one_of(near, near, near, st.just(t) if says == "time" else times, st.none())
    failed = st.integers(0, 9).map(lambda n: n == 0)
    return st.builds(Said, st.just(name), times, st.sampled_from(KEYS), failed)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Rules, str, list[MicroBatch]]:
    says = draw(st.sampled_from(["time", "time", "now", "both"]))
    return draw(rules()), says, draw(streams(says, draw(st.sampled_from(AROUND))))


@settings(max_examples=examples(12, 250), deadline=None)
@given(cases(), st.integers(1, 4), st.booleans(), st.integers(0, 1000))
def test_every_micro_batch_gives_what_the_rules_say(
    case: tuple[Rules, str, list[MicroBatch]], shards: int, keyed: bool, seed: int
) -> None:
    rules, says, batches = case
    oracle = Oracle(rules)
    stream = Stream(rules, shards, keyed, random.Random(seed), says)
    shard_of: dict[str, int] = {}
    dropped: Counter[str] = Counter()
    failed = emitted = 0
    for batch in batches:
        expected, found = oracle.step(batch), stream.step(batch)
        assert found.failed == expected.failed
        assert found.dropped == expected.dropped
        assert_windows(expected, found, keyed, shard_of)
        assert {status.closed_until for status in found.statuses} == {oracle.horizon}
        assert {status.now for status in found.statuses} == {oracle.now}
        dropped.update(expected.dropped.values())
        failed += len(expected.failed)
        emitted += sum(len(inside) for _, _, inside in expected.windows)
        assert_counters(found, oracle, dropped, failed, emitted)
        assert_open(found, oracle)


def assert_windows(expected: Out, found: Given, keyed: bool, shard_of: dict[str, int]) -> None:
    """Whole windows without a key; with one, groups in order of their first message."""
    if not keyed:
        windows = [
            (end, reason, [n for n, _ in inside]) for end, reason, inside in expected.windows
        ]
        assert found.batches.pop(0) == windows
        assert not any(found.batches.values())
        return
    groups: list[tuple[str, tuple[int, str, list[str]]]] = []
    for end, reason, inside in expected.windows:
        by_key: dict[str, list[str]] = {}
        for name, key in inside:
            by_key.setdefault(key, []).append(name)
        groups += [(key, (end, reason, names)) for key, names in by_key.items()]
    for shard, batches in found.batches.items():
        for batch in batches:
            keys = [key for key, group in groups if group == batch]
            assert len(keys) == 1
            assert shard_of.setdefault(keys[0], shard) == shard
        assert batches == [group for key, group in groups if shard_of.get(key) == shard]
    assert sum(map(len, found.batches.values())) == len(groups)


def assert_counters(
    found: Given, oracle: Oracle, dropped: Counter[str], failed: int, emitted: int
) -> None:
    """What went in is what failed, was dropped, is held or was given back: nothing else."""
    counters = [status.counters for status in found.statuses]
    sums: Counter[str] = Counter()
    for each in counters:
        sums.update(each.dropped)
    held = sum(status.held for status in found.statuses)
    released = sum(each.released for each in counters)
    assert sums == dropped
    assert sum(each.failed for each in counters) == failed
    assert held == len(oracle.held)
    assert released == len(oracle.released)
    assert sum(each.taken for each in counters) == held + released + sums["expired"]
    assert sum(each.emitted_messages for each in counters) == emitted


def assert_open(found: Given, oracle: Oracle) -> None:
    open_windows: Counter[int] = Counter()
    for status in found.statuses:
        for window in status.open:
            open_windows[window.end] += window.messages
    if max(len(status.open) for status in found.statuses) < 16:  # a shard lists no more
        assert open_windows == Counter(end for held in oracle.held for end in held.open)
    due = [status.next_due for status in found.statuses if status.next_due is not None]
    assert bool(due) == bool(oracle.held)


@settings(max_examples=examples(8, 60), deadline=None)
@given(cases(), st.integers(1, 3), st.booleans(), st.integers(0, 1000))
def test_when_all_windows_have_closed_nothing_of_them_is_stored(
    case: tuple[Rules, str, list[MicroBatch]], shards: int, keyed: bool, seed: int
) -> None:
    rules, says, batches = case
    stream = Stream(rules, shards, keyed, random.Random(seed), says)
    for batch in batches:
        stream.step(batch)
    found = stream.step(MicroBatch(batches[0].t + 10_000, (), "last"))
    assert [status.held for status in found.statuses] == [0] * shards
    assert [status.next_due for status in found.statuses] == [None] * shards
    assert [list(store.values) for store in stream.stores] == [[(0, -1)]] * shards
