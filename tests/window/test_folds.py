"""Folded groups, as packs and merged."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from streamer.bloblang.parts import Kind
from streamer.window.folds.accumulators import KEEPERS
from streamer.window.folds.folder import Folder
from streamer.window.folds.groups import Groups, fold_for, merged
from streamer.window.folds.pack import decode, encode
from streamer.window.ints import Ints
from streamer.window.pack import PackError
from streamer.window.stamps import SLOT_BITS

FOLD = 'root = if batch_index() == 0 { {"sum": json("v").from_all().sum()} } else { deleted() }'
KEYS = [b"a", b"b"]


def folded(groups: list[int], times: list[int] | None, first: int = 0) -> Groups:
    """Messages of one slot, by the number of their group."""
    folder = Folder(fold_for(FOLD), 7)
    raws = [b'{"v":%d}' % group for group in groups]
    codes = np.array(groups, np.int64) + (1 << SLOT_BITS)
    columns = folder.columns([{"v": group} for group in groups])
    arrivals: Ints = np.arange(first, first + len(groups))
    of = None if times is None else np.array(times, np.int64)
    folder.add(raws, codes, arrivals, [b""], columns, of)
    ((_, _, found),) = folder.groups(2, KEYS, None)
    return found


def test_a_group_knows_the_largest_event_time_of_its_messages() -> None:
    found = folded([0, 1, 0, 1], [5, -3, 4, -2])
    assert found.newest is not None
    assert found.newest.tolist() == [5, -2]


def test_merged_groups_know_it_too_whichever_packs_they_are_in() -> None:
    both = merged([folded([0, 1], [5, -3]), folded([1], [9], 2), folded([1, 0], [-9, 6], 3)])
    assert both.newest is not None
    assert dict(zip(both.keys, both.newest.tolist(), strict=True)) == {b"a": 6, b"b": 9}


@pytest.mark.parametrize("times", [None, [5, -3]])
def test_a_pack_keeps_what_its_groups_know(times: list[int] | None) -> None:
    groups = folded([0, 1], times)
    found = decode(encode(groups)[0])
    assert (found.keys, found.counts.tolist()) == (KEYS, [1, 1])
    assert (None if found.newest is None else found.newest.tolist()) == times


def test_groups_that_another_version_folded_otherwise_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = encode(folded([0, 1], None))[0]
    fold = fold_for(FOLD)
    more = replace(fold, parts=fold.parts * 3)
    monkeypatch.setattr("streamer.window.folds.pack.fold_for", lambda text: more)
    with pytest.raises(PackError, match="holds 1 things.*finds 3 in the mapping"):
        decode(body)


def test_every_kind_of_part_has_what_keeps_it_up_to_date() -> None:
    assert set(KEEPERS) == set(get_args(Kind))
