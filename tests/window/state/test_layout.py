"""The table of a shard's state is whole, true of what is kept, and no two values of it clash."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import chain, combinations
from pathlib import Path

import orjson
import pytest

import streamer.window
from streamer.window.pack import pack_codec
from streamer.window.state import layout
from streamer.window.state.keyed_values import KeyedValues
from streamer.window.state.layout import LAYOUT, ShardKind, StateValue
from streamer.window.state_store import StateStore
from tests.window.keyed.columns.stream import FoldedSessions
from tests.window.kinds_stream import EventStream
from tests.window.oracle.events import Event, MicroBatch
from tests.window.oracle.hopping import Hopping
from tests.window.oracle.join import Join
from tests.window.oracle.session import Session
from tests.window.oracle.table_join import TableJoin

WINDOW = Path(streamer.window.__file__).parent
KINDS: tuple[ShardKind, ...] = ("panes", "keys", "join", "table_join")
SIDED = {"join": 2, "table_join": 1}
"""By kind with two sides, whether messages of the right side come in all micro-batches."""


def values_of(kind: ShardKind) -> list[StateValue]:
    return [value for value in LAYOUT if kind in value.shards]


def test_the_table_lists_all_keys_and_formats() -> None:
    """Checkpoints are made of them: a number that is changed here makes all of them unreadable."""
    assert [(*sorted(v.shards), v.pane, v.seqs, v.versions, v.module) for v in LAYOUT] == [
        ("panes", 0, (-1, -1), (1,), "state.pane_store"),
        ("join", "keys", "table_join", 0, (-1, -1), (1, 2, 3, 4), "keyed.head"),
        ("panes", "bucket", (-2, -2), (1,), "state.pane_store"),
        ("keys", "bucket", (-3, -3), (1,), "keyed.key_buckets"),
        ("join", "keys", "table_join", "seq of the pack", (-4, -4), (), "keyed.pack_store"),
        ("join", "block", (-5, -5), (2,), "keyed.matched_bits"),
        ("keys", "block", (-5, -5), (1,), "keyed.columns.session_blocks"),
        ("keys", 0, (-6, -6), (1,), "keyed.columns.session_blocks"),
        ("join", "keys", "panes", "table_join", "bucket", (-7, -7), (1,), "state.keyed_values"),
        ("join", "keys", "panes", "table_join", 0, (-8, -8), (1,), "state.keyed_values"),
        ("table_join", "bucket", (-9, -9), (1,), "keyed.table_rows"),
        ("table_join", 0, (-10, -10), (1,), "keyed.table_rows"),
        ("panes", "pane", (0, 2**63 - 1), (1, 2, 3), "state.pane_store"),
        ("keys", "table_join", 0, (0, 2**63 - 1), (1, 3), "keyed.pack_store"),
        ("join", 0, (0, 2**30 - 1), (1, 3), "keyed.pack_store"),
        ("join", 0, (2**30, 2**63 - 1), (1, 3), "keyed.pack_store"),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_values_of_a_shard_have_a_key_in_common(kind: ShardKind) -> None:
    values = values_of(kind)
    assert values[0].seqs == (-1, -1)
    for one, other in combinations(values, 2):
        assert one.seqs[1] < other.seqs[0] or other.seqs[1] < one.seqs[0], (one, other)


def test_packs_have_the_formats_of_their_codec() -> None:
    messages = {pack_codec.VERSION, pack_codec.TIMED_VERSION}
    for value in LAYOUT:
        if value.encoding == "pack":
            more = {pack_codec.AGGREGATED_VERSION} if "panes" in value.shards else set()
            assert set(value.versions) == messages | more


def test_every_number_of_the_table_stands_in_this_file_alone() -> None:
    """Each module that the table names takes its numbers from it, and no other has any."""
    named = {WINDOW / f"{value.module.replace('.', '/')}.py" for value in LAYOUT}
    for path in WINDOW.rglob("*.py"):
        if path == Path(layout.__file__):
            continue
        tree = ast.parse(path.read_text())
        imported = any(
            isinstance(node, ast.ImportFrom)
            and node.module in ("streamer.window.state", "streamer.window.state.layout")
            for node in ast.walk(tree)
        )
        assert imported or path not in named, path
        for name in _assigned(tree.body):
            assert not name.endswith(("_SEQ", "HEAD_KEY")), (path, name)


def _assigned(body: Iterable[ast.stmt]) -> Iterable[str]:
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _streams(kind: ShardKind) -> list[EventStream]:
    if kind == "panes":
        return [EventStream(Hopping(size=100, keyed=True), shards=2)]
    if kind == "join":
        return [EventStream(Join(before=60, after=60, keyed=True, type="outer"), shards=2)]
    if kind == "table_join":
        rules_of_table = TableJoin(keyed=True, history=60, allowed_lateness=60)
        return [EventStream(rules_of_table, shards=2)]
    rules = Session(gap=50, keyed=True)
    return [EventStream(rules), FoldedSessions(rules, range(1, 9))]


def _events(kind: ShardKind, batch: int) -> tuple[Event, ...]:
    """Return many events, or one that lets windows of every third of them close."""
    return tuple(
        Event(
            f"{batch} {number}",
            40 * batch + 40 * (number % 3 > 0),
            number // 2 if kind in SIDED else 40 * batch + number,
            side="right" if number % 2 and batch % 2 < SIDED.get(kind, 0) else "left",
        )
        for number in (range(40) if batch % 2 == 0 else range(1, 2))
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_of_a_shard_holds_what_the_table_says(kind: ShardKind) -> None:
    values = values_of(kind)
    seen: set[int] = set()
    for stream in _streams(kind):
        for number in range(6):
            stream.step(MicroBatch(number, _events(kind, number)))
            for store in stream.stores:
                _keep_value(store, number)
            for (pane, seq), data in chain.from_iterable(
                store.values.items() for store in stream.stores
            ):
                (at,) = [n for n, v in enumerate(values) if v.seqs[0] <= seq <= v.seqs[1]]
                assert isinstance(values[at].pane, str) or pane == values[at].pane
                if values[at].versions:
                    assert _version(values[at], data) in values[at].versions
                seen.add(at)
    assert [value.content for n, value in enumerate(values) if n not in seen] == []


def _keep_value(store: StateStore, number: int) -> None:
    """Keep a value of a key, as a pipeline behind the windows does it."""
    values = KeyedValues(store, None)
    values.begin(b"%d" % number, number)
    values.put("name", number)
    values.commit()


def _version(value: StateValue, data: bytes) -> int:
    if value.encoding == "json":
        version = orjson.loads(data)["version"]
        assert isinstance(version, int)
        return version
    if value.encoding == "pack":
        data = bytes(layout.decode_stored_pack(data)[0])
    return data[0]
