"""What a pair is told: a mapping like any other, which is made once, and only when asked for."""

from typing import Any

from streamer.core.message import Message
from streamer.window.keyed.lazy_metadata import LazyMetadata


def test_it_is_made_once_and_only_for_those_who_ask() -> None:
    asked: list[int] = []

    def entries(place: int) -> dict[str, Any]:
        asked.append(place)
        return {"place": place, "b": None}

    some = [Message(b"x", LazyMetadata(entries, place)) for place in range(3)]
    assert asked == []
    meta = some[2].meta
    assert dict(meta) == {"place": 2, "b": None} == {**meta}
    assert (len(meta), "b" in meta, meta["place"], meta.get("none")) == (2, True, 2, None)
    assert meta == {"b": None, "place": 2}
    assert repr(meta) == "{'place': 2, 'b': None}"
    assert asked == [2]
