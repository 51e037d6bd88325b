"""Watching for new objects: which are read, and what is remembered of them."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.objects.listings import WatchSettings
from streamer.connectors.objects.object_source import ObjectSource
from streamer.connectors.objects.read_objects import FILE_NAME, ReadObjects
from streamer.connectors.objects.store import ListedObject
from streamer.sdk.input.replayable import Limit, Offset
from tests.components.inputs.reading import raws_of
from tests.connectors.objects.scripted_store import ScriptedStore
from tests.connectors.objects.test_object_source import scanner_of

ALL = Limit()
SETTINGS = WatchSettings(poll_interval=10, minimum_age=0)


def watching(store: ScriptedStore, directory: Path, **more: Any) -> ObjectSource:
    scanner = scanner_of("to_the_end: {}")
    return ObjectSource(store, scanner, watch=SETTINGS, directory=directory, **more)


class Reader:
    """Reads what a source has, again and again, each time a little later."""

    def __init__(self, of: ObjectSource, at: Offset | None = None, now: int = 1_000) -> None:
        self.of = of
        self.at = of.initial_offset() if at is None else at
        self.now = now

    def read(self, limit: Limit = ALL) -> list[bytes]:
        raws: list[bytes] = []
        for _ in range(20):
            self.now += 10
            end = self.of.latest_offset(self.at, self.now, limit).offset
            raws += raws_of(self.of, self.at, end)
            self.at = end
            self.of.on_committed(end)
        return raws


def test_objects_are_read_once_wherever_their_keys_are(tmp_path: Path) -> None:
    store = ScriptedStore(m=b"1", n=b"2")
    reader = Reader(watching(store, tmp_path))
    assert reader.read() == [b"1", b"2"]
    store.put("a", b"3")
    store.put("z", b"4")
    assert reader.read() == [b"3", b"4"] and reader.read() == []
    store.put("m", b"again")
    assert reader.read() == [b"again"]


@pytest.mark.parametrize("limit", [Limit(1), Limit(3), ALL])
def test_a_restart_at_any_place_reads_each_object_once(tmp_path: Path, limit: Limit) -> None:
    store = ScriptedStore(**{f"{number:03}": b"%d" % number for number in range(40)})
    chance = random.Random(7)
    at, now, raws = None, 1_000, []
    for number in range(40, 120):
        of = pickle.loads(pickle.dumps(watching(store, tmp_path)))
        at = of.initial_offset() if at is None else at
        now += 100
        end = of.latest_offset(at, now, limit).offset
        if chance.random() < 0.5:
            # What was planned comes again after a crash, though others have come meanwhile.
            store.put(f"{chance.randrange(10**6):06}-{number}", b"%d" % number)
            of = pickle.loads(pickle.dumps(watching(store, tmp_path)))
        else:
            store.put(f"{number:03}", b"%d" % number)
        raws += raws_of(of, at, end)
        at = end
    raws += Reader(watching(store, tmp_path), at, now).read()
    assert sorted(map(int, raws)) == list(range(120))


def test_an_object_that_is_too_young_is_read_later(tmp_path: Path) -> None:
    store = ScriptedStore()
    store.put("a", b"1", modified=5_000)
    of = ObjectSource(
        store,
        scanner_of("to_the_end: {}"),
        watch=WatchSettings(poll_interval=10, minimum_age=100),
        directory=tmp_path,
    )
    start = of.initial_offset()
    assert of.latest_offset(start, 5_050, ALL).waiting == 0
    assert of.next_poll(start, 5_050) == 5_060
    assert of.latest_offset(start, 5_200, ALL).waiting == 1


def test_another_machine_takes_all_for_read_that_was_before_the_last_listing(
    tmp_path: Path,
) -> None:
    store = ScriptedStore(a=b"1")
    here = Reader(watching(store, tmp_path / "here"))
    assert here.read() == [b"1"]
    store.put("b", b"2", modified=here.now + 5)
    assert here.read() == [b"2"]
    store.put("c", b"3", modified=here.now + 5)
    there = Reader(watching(store, tmp_path / "there"), here.at, here.now)
    assert there.read() == [b"3"]


def test_a_deleted_object_is_deleted_once_and_may_come_again(tmp_path: Path) -> None:
    store = ScriptedStore(a=b"1")
    reader = Reader(watching(store, tmp_path, deletes=True))
    assert reader.read() == [b"1"] and store.keys() == []
    store.put("a", b"1")
    assert reader.read() == [b"1"] and store.keys() == []


def listed(number: int) -> ListedObject:
    return ListedObject(f"{number:09}", 1, "v", 1)


class TestMemory:
    def test_it_has_eight_bytes_for_an_object_and_is_there_after_a_restart(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / FILE_NAME
        read = ReadObjects(path, 0)
        for first in range(0, 200_000, 1000):
            read.add(listed(number) for number in range(first, first + 1000))
        assert path.stat().st_size == 8 * 200_001 and read._sorted.nbytes <= 8 * 200_000
        # A half-written hash at the end is of no object.
        with path.open("ab") as file:
            file.write(b"abc")
        again = ReadObjects(path, 0)
        assert len(again) == 200_000 and path.stat().st_size == 8 * 200_001
        assert all(again.is_read(listed(number)) for number in range(0, 200_000, 97))
        assert not again.is_read(listed(200_000))
        assert not again.is_read(listed(0)._replace(version="w"))

    def test_what_is_gone_is_forgotten_at_the_end_of_a_listing(self, tmp_path: Path) -> None:
        path = tmp_path / FILE_NAME
        read = ReadObjects(path, 0)
        read.add(listed(number) for number in range(60_000))
        read.begin_listing()
        for number in range(50_000, 60_000):
            assert read.is_read(listed(number))
        read.add([listed(60_000)])
        read.end_listing()
        assert len(read) == 10_001 and path.stat().st_size == 8 * 10_002
        assert read.is_read(listed(60_000)) and not read.is_read(listed(0))
        again = ReadObjects(path, 0)
        assert len(again) == 10_001 and again.is_read(listed(59_999))
