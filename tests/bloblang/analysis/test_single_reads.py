"""Which mappings look at one message of a batch, where its order counts."""

from __future__ import annotations

import pytest

from streamer.bloblang import compile_mapping
from streamer.bloblang.analysis.single_reads import find_end_reads, find_own_reads


@pytest.mark.parametrize(
    ("mapping", "texts"),
    [
        ('root = json("a").from_all().index(0)', ['json("a").from_all().index(0)']),
        (
            'root.a = json("a").from(-1)\nroot.b = this.b.from(0)',
            ['json("a").from(-1)', "this.b.from(0)"],
        ),
        ("let all = json().from_all()\nroot = $all.index(-1)", ["$all.index(-1)"]),
        (
            'root = json("a").from_all().filter(a -> a > 1).index(0)',
            ['json("a").from_all().filter(a -> a > 1).index(0)'],
        ),
        ("root = json().from_all().sort_by(e -> e.ms).index(0)", []),
        ('root = json("a").from_all().index(1)', []),
        ('root = json("a").from(2)', []),
        ("root = this.list.index(0)", []),
    ],
)
def test_the_ends_of_a_batch(mapping: str, texts: list[str]) -> None:
    assert [read.text for read in find_end_reads(compile_mapping(mapping))] == texts


@pytest.mark.parametrize(
    ("mapping", "paths"),
    [
        ("root = this.event == 1 && this.a.b > 2", [("event",), ("a", "b")]),
        ('root = json("event") == 1', [("event",)]),
        ("root = batch_size() > 3", []),
        ('root = json("user").from_all().any(u -> u == "ann")', []),
        ("root = this.list.any(e -> e.name == this.name)", [("list",)]),
        ('root = @window_key == "ann"', []),
    ],
)
def test_what_is_read_of_the_message_at_hand(mapping: str, paths: list[tuple[str, ...]]) -> None:
    assert find_own_reads(compile_mapping(mapping)) == paths
