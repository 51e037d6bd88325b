"""Messages by schemas, without a registry: Avro, JSON Schema and Protobuf."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.connectors.protobuf.messages import ProtobufOptions
from streamer.connectors.schema_registry.avro_schema import AvroMessageCodec
from streamer.connectors.schema_registry.client import Schema, UnknownSchemaError
from streamer.connectors.schema_registry.codecs import CodecCache
from streamer.connectors.schema_registry.json_schema import JsonMessageCodec
from streamer.connectors.schema_registry.protobuf_schema import ProtobufMessageCodec
from streamer.core.errors import MessageError, StreamerError
from streamer.core.message import Message


def record(*fields: tuple[str, Any], name: str = "R", **more: Any) -> str:
    listed = [{"name": name, "type": kind} for name, kind in fields]
    return json.dumps({"type": "record", "name": name, "fields": listed, **more})


def read(codec: Any, raw: bytes) -> Any:
    return codec.decode(Message(b""), raw).doc


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
UNIONS = record(("a", ["null", "string"]), ("t", ["null", MILLIS]), ("b", "bytes"), ("f", "double"))


@pytest.mark.parametrize("given", ["tagged", "plain", "raw"])
def test_values_of_unions_stand_with_or_without_the_name_of_their_type(given: str) -> None:
    tagged = {"a": {"string": "x"}, "t": {"long.timestamp-millis": 5}, "b": "\u00ff", "f": 1.5}
    plain = {"a": "x", "t": 5, "b": "\u00ff", "f": 1.5}
    half = {**tagged, "t": {"long": 5}}
    document = {"tagged": tagged, "plain": plain, "raw": half}[given]
    raw = AvroMessageCodec(UNIONS).encode(Message.from_value(document))
    assert raw.hex() == "0202" + "78" + "020a" + "02ff" + "000000000000f83f"
    assert read(AvroMessageCodec(UNIONS), raw) == tagged
    assert read(AvroMessageCodec(UNIONS, raw_unions=True), raw) == plain


def test_numbers_that_json_has_not_are_null_and_too_large() -> None:
    schema = record(("n", "double"), ("i", "double"), ("t", "string"))
    codec = AvroMessageCodec(schema)
    import struct

    raw = struct.pack("<dd", float("nan"), float("-inf")) + b"\x06inf"
    assert codec.decode(Message(b""), raw).raw == b'{"n":null,"i":-1e999,"t":"inf"}'


def test_logical_types_become_times_and_numbers() -> None:
    debezium = {"type": "int", "connect.name": "io.debezium.time.Date"}
    zoned = {"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"}
    kinds = {"t": MILLIS, "d": DECIMAL, "e": debezium, "z": zoned, "u": ["null", MILLIS]}
    schema = record(*kinds.items())
    zone = "2020-01-01T01:00:00+01:00"
    document = {"t": "2020-01-02T03:04:05.678Z", "d": 12.25, "e": 1, "z": zone}
    codec = AvroMessageCodec(
        schema, preserves_logical_types=True, translates_connect=True, raw_unions=True
    )
    raw = codec.encode(Message.from_value({**document, "u": 1_000}))
    assert codec.decode(Message(b""), raw).raw == (
        b'{"d":12.25,"e":"1970-01-02T00:00:00Z","t":"2020-01-02T03:04:05.678Z",'
        b'"u":"1970-01-01T00:00:01Z","z":"2020-01-01T00:00:00Z"}'
    )
    kept = AvroMessageCodec(schema, preserves_logical_types=True).decode(Message(b""), raw)
    assert (kept.doc["e"], kept.doc["z"]) == (1, "2020-01-01T01:00:00+01:00")
    assert read(AvroMessageCodec(schema, raw_unions=True), raw)["d"] == "\x04\u00c9"
    with pytest.raises(MessageError, match="12.255 has more than 2 digits behind the point"):
        codec.encode(Message.from_value({**document, "u": None, "d": 12.255}))


def test_a_schema_may_refer_to_others_that_refer_to_others() -> None:
    inner = record(("x", "long"), name="Inner", namespace="n")
    middle = record(("i", "n.Inner"), ("again", ["null", "n.Inner"]), name="Middle", namespace="n")
    root = record(("m", "Middle"), ("i", "Inner"), name="Root", namespace="n")
    codec = AvroMessageCodec(root, [("n.Inner", inner), ("n.Middle", middle)])
    document = {"m": {"i": {"x": 1}, "again": {"n.Inner": {"x": 2}}}, "i": {"x": 3}}
    raw = codec.encode(Message.from_value(document))
    assert raw.hex() == "02020406" and read(codec, raw) == document


@pytest.mark.parametrize(
    ("schema", "raw", "error"),
    [
        (UNIONS, b"", "decoding Avro: "),
        (record(("s", "string")), b"\x7fabc", "decoding Avro: "),
        (record(("s", ["null", "int"])), b"\x08", "decoding Avro: "),
    ],
)
def test_bytes_that_do_not_fit_are_an_error(schema: str, raw: bytes, error: str) -> None:
    with pytest.raises(MessageError, match=error):
        AvroMessageCodec(schema).decode(Message(b""), raw)
    with pytest.raises(StreamerError, match="parsing Avro schema: "):
        AvroMessageCodec('{"type": "nonsense"}')


def test_documents_are_checked_by_a_json_schema_and_those_that_it_refers_to() -> None:
    names = json.dumps({"$id": "http://x/name.json", "type": "string", "minLength": 2})
    by_name = '{"properties": {"n": {"$ref": "name.json"}}}'
    by_id = '{"$id": "http://x/root.json", "properties": {"n": {"$ref": "name.json"}}}'
    for schema in (by_name, by_id):
        codec = JsonMessageCodec(schema, [("name.json", names)])
        assert codec.decode(Message(b""), b'{"n": "ab"}').raw == b'{"n": "ab"}'
        with pytest.raises(MessageError) as caught:
            codec.encode(Message(b'{"n": "a"}'))
        assert str(caught.value) == (
            "json message does not conform to schema: "
            "[n string length must be greater than or equal to 2]"
        )
    with pytest.raises(MessageError, match="invalid character"):
        codec.decode(Message(b""), b"x")


PROTO = """
syntax = "proto3";
package p;
import "google/protobuf/timestamp.proto";
import "dir/other.proto";
message First { string only = 1; }
message Second {
  int64 big_number = 1; bytes raw = 2; google.protobuf.Timestamp at = 3; repeated Other others = 4;
  map<string, int32> counts = 5; Kind kind = 6; oneof one { string s = 7; bool b = 8; }
  message Inner { string x = 1; }
  Inner inner = 9;
  enum Kind { NONE = 0; SOME = 1; }
}
"""
OTHER = 'syntax = "proto3"; package p; message Other { string name = 1; }'
DOCUMENT = {
    "bigNumber": "9007199254740993",
    "raw": "/w==",
    "at": "2020-01-02T03:04:05Z",
    "others": [{"name": "n"}],
    "counts": {"a": 1},
    "kind": "SOME",
    "b": False,
}


@pytest.fixture(scope="module")
def codec() -> ProtobufMessageCodec:
    return ProtobufMessageCodec(PROTO, [("dir/other.proto", OTHER)])


def test_a_protobuf_message_is_the_first_that_a_document_fits(codec: ProtobufMessageCodec) -> None:
    raw = codec.encode(Message.from_value(DOCUMENT))
    assert raw[:2].hex() == "0202" and read(codec, raw) == DOCUMENT
    # The one that has fitted last comes first, and an empty document fits any.
    assert codec.encode(Message(b"{}")).hex() == "0202"
    assert codec.encode(Message(b'{"only": "x"}')).hex() == "000a0178"
    assert codec.encode(Message(b"{}")).hex() == "00"
    with pytest.raises(MessageError, match="unmarshal 'First': .* unmarshal 'Second': "):
        codec.encode(Message(b'{"nobody": 1}'))
    # Types within others are read all the same; the first one is that of the map.
    assert read(codec, bytes.fromhex("040202") + b"\x0a\x01y") == {"x": "y"}
    with pytest.raises(MessageError, match=r"index \(7\) is greater than available .* \(2\)"):
        read(codec, bytes.fromhex("020e"))
    with pytest.raises(MessageError):
        read(codec, b"\x00\xff\xff")


def test_options_of_protobuf_change_the_document(codec: ProtobufMessageCodec) -> None:
    raw = codec.encode(Message.from_value({**DOCUMENT, "s": None}))

    def written(**options: bool) -> Any:
        given = ProtobufOptions(**options)
        made = ProtobufMessageCodec(PROTO, [("dir/other.proto", OTHER)], given)
        return made.decode(Message(b""), raw).doc, made.decode(Message(b""), b"\x02\x02").doc

    names, empty = written(use_proto_names=True, use_enum_numbers=True)
    assert (names["big_number"], names["kind"], empty) == ("9007199254740993", 1, {})
    defaults = {"bigNumber": "0", "raw": "", "others": [], "counts": {}, "kind": "NONE"}
    assert written(emit_default_values=True)[1] == defaults
    assert written(emit_unpopulated=True)[1] == {**defaults, "at": None, "inner": None}
    values, _ = written(serialize_to_json=False)
    assert (values["bigNumber"], values["raw"], values["counts"]) == (
        9007199254740993, b"\xff", {"a": 1}
    )  # fmt: skip
    assert str(values["at"]) == "2020-01-02T03:04:05Z" and values["b"] is False


@pytest.mark.parametrize(
    ("text", "references", "error"),
    [
        ("message {", [], "parsing proto schema: schema:1:9: Expected message name"),
        ('syntax = "proto3"; import "no.proto";', [], "no.proto: File not found"),
        ('syntax = "proto3";', [("../out.proto", "")], "'../out.proto' is no name of a file"),
    ],
)
def test_a_schema_that_cannot_be_compiled_is_an_error(
    text: str, references: list[tuple[str, str]], error: str
) -> None:
    with pytest.raises(StreamerError, match=error):
        ProtobufMessageCodec(text, references)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_codecs_are_kept_refreshed_and_dropped_and_misses_are_remembered() -> None:
    clock, asked, answers = Clock(), list[Any](), dict[Any, Any]()

    def fetch(key: int | str) -> Schema:
        asked.append(key)
        if isinstance(answers.get(key), Exception):
            raise answers[key]
        return Schema(answers[key], "AVRO", '"string"')

    def make(schema: Schema) -> Any:
        return AvroMessageCodec(schema.text)

    errors: list[str] = []
    cache = CodecCache(fetch, make, stale_after=60, refresh_after=100, now=clock)
    answers["s"] = 1
    first = cache.find("s", errors.append)
    clock.now = 50
    assert cache.find("s", errors.append) is first and asked == ["s"]
    clock.now = 100
    assert cache.find("s", errors.append).codec is first.codec and len(asked) == 2
    answers["s"] = 2
    clock.now = 205
    assert cache.find("s", errors.append).schema_id == 2
    answers["s"] = StreamerError("away")
    clock.now = 306
    assert cache.find("s", errors.append).schema_id == 2
    assert errors == ["Failed to refresh schema subject 's': away"] and len(asked) == 4
    clock.now = 310
    cache.find("s", errors.append)
    assert len(asked) == 4
    clock.now = 317
    cache.find("s", errors.append)
    assert len(asked) == 5

    answers[7] = UnknownSchemaError("none")
    for _ in range(3):
        with pytest.raises(UnknownSchemaError, match="none"):
            cache.find(7, errors.append)
    assert asked.count(7) == 1
    clock.now += 6
    answers[7] = 7
    assert cache.find(7, errors.append).schema_id == 7
    clock.now += 61
    cache.find(7, errors.append)
    answers["s"] = 3
    assert cache.find("s", errors.append).schema_id == 3, "it was dropped"
