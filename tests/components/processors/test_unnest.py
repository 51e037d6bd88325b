"""A message for each item of an array."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.processing import run

ITEMS = {"order": 7, "items": [{"sku": "a", "order": "x"}, {"sku": "b"}], "to": {"city": "Bonn"}}


def unnest(doc: Any, more: str = "", **fields: Any) -> list[Message]:
    text = json.dumps({"unnest": fields}) + more
    config = parse_config(f"pipeline: {{processors: [{text}]}}", env={})
    processors = build_context().build_all(config.processors)
    message = Message.from_value(doc, {"topic": "orders"})
    return [one for batch in run(processors, [[message]], Execution(lambda: 0)) for one in batch]


@pytest.mark.parametrize(
    ("doc", "fields", "expected"),
    [
        (
            ITEMS,
            {"path": "items"},
            [
                {"order": 7, "to": {"city": "Bonn"}, "item": {"sku": "a", "order": "x"}},
                {"order": 7, "to": {"city": "Bonn"}, "item": {"sku": "b"}},
            ],
        ),
        (
            ITEMS,
            {"path": "items", "into": "", "index": "line"},
            [
                {"order": "x", "to": {"city": "Bonn"}, "sku": "a", "line": 0},
                {"order": 7, "to": {"city": "Bonn"}, "sku": "b", "line": 1},
            ],
        ),
        (
            {"a": {"b": [1, None], "c": 2}},
            {"path": "a.b", "into": "n"},
            [{"a": {"c": 2}, "n": 1}, {"a": {"c": 2}, "n": None}],
        ),
        ({"items": []}, {"path": "items"}, []),
        ({"items": None}, {"path": "items"}, []),
        ({"a": 1}, {"path": "items"}, []),
        ({"a": 1}, {"path": "items", "keep_empty": True}, [{"a": 1, "item": None}]),
        (
            {"a": 1, "items": []},
            {"path": "items", "keep_empty": True, "into": "", "index": "i"},
            [{"a": 1, "i": None}],
        ),
    ],
)
def test_items_become_messages(doc: Any, fields: dict[str, Any], expected: list[Any]) -> None:
    made = unnest(doc, **fields)
    assert [message.doc for message in made] == expected
    assert all(message.error is None and message.meta["topic"] == "orders" for message in made)


def test_messages_know_their_place() -> None:
    metas = [message.meta for message in unnest(ITEMS, path="items")]
    assert [(meta["unnest_index"], meta["unnest_count"]) for meta in metas] == [(0, 2), (1, 2)]


def test_what_they_share_is_not_changed_by_one_of_them() -> None:
    more = ', {"mutation": "root.to.city = root.to.city + this.item.sku"}'
    made = unnest(ITEMS, more, path="items")
    assert [message.doc["to"]["city"] for message in made] == ["Bonna", "Bonnb"]
    assert ITEMS["to"] == {"city": "Bonn"}


@pytest.mark.parametrize(
    ("doc", "fields", "expected"),
    [
        ([1], {"path": "items"}, "expected a JSON object, got an array"),
        ({"items": "x"}, {"path": "items"}, "expected an array at items, got a text"),
        (
            {"items": [{}, 1]},
            {"path": "items", "into": ""},
            "item 1 is a number; expected an object",
        ),
    ],
)
def test_a_message_without_an_array_stays_and_is_marked(
    doc: Any, fields: dict[str, Any], expected: str
) -> None:
    [message] = unnest(doc, **fields)
    assert message.doc == doc and expected in str(message.error)
