"""Documents in Avro's JSON: what fits a type, defaults, and where it is told that one does not."""

from __future__ import annotations

from typing import Any

import pytest
from fastavro.schema import parse_schema

from streamer.connectors.formats.avro_json import AvroDocumentConverter

FIXED = {"type": "fixed", "name": "n.F", "size": 2}
TREE = {
    "type": "record",
    "name": "n.Tree",
    "fields": [
        {"name": "v", "type": "int", "default": 7},
        {"name": "next", "type": ["null", "n.Tree"], "default": None},
    ],
}


@pytest.mark.parametrize(
    ("schema", "document", "value"),
    [
        ("bytes", "a\xff", b"a\xff"),
        (FIXED, "ab", b"ab"),
        ({"type": "array", "items": ["null", "long"]}, [None, 1, {"long": 2}], [None, 1, 2]),
        ({"type": "map", "values": "double"}, {"a": 1}, {"a": 1}),
        (TREE, {}, {"v": 7, "next": None}),
        (
            TREE,
            {"v": 1, "next": {"n.Tree": {"v": 2}}},
            {"v": 1, "next": ("n.Tree", {"v": 2, "next": None})},
        ),
        (["null", "string", {"type": "map", "values": "string"}], {"string": "x"}, "x"),
        (["string", "bytes"], {"bytes": "x"}, b"x"),
    ],
)
def test_a_document_becomes_a_value(schema: Any, document: Any, value: Any) -> None:
    assert AvroDocumentConverter(parse_schema(schema)).to_value(document) == value


@pytest.mark.parametrize(
    ("schema", "document", "text"),
    [
        ("int", 1 << 31, "document is 2147483648; expected int"),
        ("int", True, "document is True; expected int"),
        ("bytes", "\u0100", "document has characters that stand for no byte"),
        (FIXED, "abc", "document is 'abc'; expected n.F"),
        ({"type": "array", "items": "int"}, [1, "x"], "document[1] is 'x'; expected int"),
        (TREE, {"next": {"n.Tree": {"v": "x"}}}, "document.next.n.Tree.v is 'x'; expected int"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}, {}, "has no a"),
        (["null", "int"], "x", "document is 'x'; expected one of null, int"),
    ],
)
def test_it_is_told_where_a_document_does_not_fit(schema: Any, document: Any, text: str) -> None:
    with pytest.raises(ValueError, match="document") as told:
        AvroDocumentConverter(parse_schema(schema)).to_value(document)
    assert text in str(told.value)
