"""What the inputs of all stores of objects must do, with any store."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from streamer.connectors.objects import object_pieces
from streamer.connectors.objects.store import (
    ObjectMissingError,
    ObjectReplacedError,
    ObjectStore,
)
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import planned, raws_of

Put = Callable[[Mapping[str, bytes]], None]


def everything(of: Any, limit: Limit | None = None, parts: int = 2) -> list[bytes]:
    """Read an input to its end, as a stream does."""
    raws = []
    for start, latest in planned(of, limit or Limit()):
        raws += raws_of(of, start, latest.offset, parts)
        of.on_committed(latest.offset)
    return raws


def store_of(source: Any) -> Any:
    """Return the store of an input."""
    return source._store


def check_reading(make: Callable[[str], Any], put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check ten thousand lines: of many objects, and of a large one that several tasks read.

    Args:
        make: makes the input, with more fields.
        put: writes objects of an empty place.
        monkeypatch: lets large objects be small.
    """
    monkeypatch.setattr(object_pieces, "_MIN_RANGE_BYTES", 1 << 16)
    small = [[b"%d-%d" % (number, line) for line in range(200)] for number in range(25)]
    large = [b"%d %s" % (number, b"x" * (number % 90)) for number in range(5_000)]
    objects = {f"a{number:02}": b"\n".join(lines) for number, lines in enumerate(small)}
    put({**objects, "b": b"\n".join(large), "c": b""})
    expected = [line for lines in small for line in lines] + large
    assert len(expected) == 10_000
    found = everything(make("scanner: {lines: {}}"), Limit(size=100_000))
    assert found == expected
    assert everything(make("prefix: a0")) == list(objects.values())[:10]
    assert everything(make("prefix: a0, delete_objects: true")) == list(objects.values())[:10]
    assert everything(make("prefix: a0")) == []


def check_store(
    store: ObjectStore, put: Put, order: Callable[[str], Any] = lambda name: name.encode()
) -> None:
    """Check the methods of a store that has no objects yet, and lists keys in an order."""
    names = sorted(["a", "a b", "a1", "b", "ä"], key=order)

    def behind(after: str) -> list[str]:
        return [name for name in names if order(name) > order(after)]

    put({name: name.encode() * 3 for name in names})
    for copy in (store, pickle.loads(pickle.dumps(store))):
        pages, after, is_last = [], "", False
        while not is_last:
            page = copy.list_page("", after, 2)
            assert len(page.objects) <= 2
            pages += page.objects
            after, is_last = page.objects[-1].key if page.objects else after, page.is_last
        assert [one.key for one in pages] == names
        assert [one.size for one in pages] == [len(name.encode()) * 3 for name in names]
    # In another process the listing goes on behind a name, which need not be there.
    other = pickle.loads(pickle.dumps(store))
    assert [one.key for one in other.list_page("", "a").objects] == behind("a")
    other = pickle.loads(pickle.dumps(store))
    assert [one.key for one in other.list_page("", "aa").objects] == behind("aa")
    listed = store.head("b")
    assert listed is not None and listed == pages[names.index("b")]
    opened = store.open("b", 1, 3, listed.version)
    assert opened.info.version == listed.version and opened.info.size == 3
    assert opened.stream.read(1) + opened.stream.read(9) + opened.stream.read(9) == b"bb"
    opened.stream.close()
    assert store.open("b", 3).stream.read(9) == b""
    put({"b": b"other than before"})
    with pytest.raises(ObjectReplacedError):
        store.open("b", version=listed.version)
    assert store.open("b").stream.read(99) == b"other than before"
    assert store.delete(["b", "none"]) == {}
    assert store.head("b") is None
    with pytest.raises(ObjectMissingError):
        store.open("b")
