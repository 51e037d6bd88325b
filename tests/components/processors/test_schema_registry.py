"""`schema_registry_decode` and `schema_registry_encode`, by a real registry.

What is written is byte by byte what Confluent's own serializers write.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.message import Message
from streamer.sdk.processing import run as run_processors
from tests.docs.test_docs import ROOT, blocks
from tests.servers.registry import Registry

from .conftest import Make, Run

pytestmark = pytest.mark.slow

PAGE = ROOT / "streamer/docs/schema-registry.md"
_NUMBERS = itertools.count()

ADDRESS = {
    "type": "record",
    "name": "Address",
    "namespace": "shop",
    "fields": [{"name": "city", "type": "string"}],
}
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "to", "type": "shop.Address"},
    ],
}
ORDERS = [
    {"id": 1, "note": None, "at": 1577934245678, "to": {"city": "Bonn"}},
    {"id": -(2**40), "note": "caf\u00e9", "at": 0, "to": {"city": ""}},
]


def subject(what: str) -> str:
    return f"{what}-{next(_NUMBERS)}-value"


def run(make: Make, a_run: Run, name: str, fields: str, *messages: Message) -> list[Message]:
    processor = make(f"{name}: {{{fields}}}")
    [made] = processor.process(list(messages), a_run.ex)
    return made


def encoded(make: Make, a_run: Run, at: Registry, of: str, *documents: Any) -> list[Message]:
    messages = [Message.from_value(one) for one in documents]
    return run(
        make, a_run, "schema_registry_encode", f"url: '{at.url}', subject: '{of}'", *messages
    )


def decoded(make: Make, a_run: Run, at: Registry, more: str, *raws: bytes) -> list[Message]:
    fields = f"url: '{at.url}'{more}"
    return run(make, a_run, "schema_registry_decode", fields, *map(Message, raws))


def confluent(at: Registry, make_serializer: Callable[[Any], Any], of: str, value: Any) -> bytes:
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.serialization import MessageField, SerializationContext

    serializer = make_serializer(SchemaRegistryClient({"url": at.url}))
    topic = of.removesuffix("-value")
    written: bytes = serializer(value, SerializationContext(topic, MessageField.VALUE))
    return written


LATEST = {"auto.register.schemas": False, "use.latest.version": True}


def test_avro_with_references(make: Make, a_run: Run, schema_registry: Registry) -> None:
    from confluent_kafka.schema_registry.avro import AvroSerializer

    of, inner = subject("avro"), subject("address")
    schema_registry.register(inner, ADDRESS)
    references = [{"name": "shop.Address", "subject": inner, "version": 1}]
    schema_id = schema_registry.register(of, ORDER, references=references)
    made = encoded(make, a_run, schema_registry, of, *ORDERS)
    assert [one.error for one in made] == [None, None]
    for order, message in zip(ORDERS, made, strict=True):
        theirs = confluent(
            schema_registry, lambda client: AvroSerializer(client, conf=LATEST), of, order
        )
        assert message.raw == theirs and message.raw[:5] == b"\0" + schema_id.to_bytes(4, "big")
    raws = [one.raw for one in made]
    back = decoded(make, a_run, schema_registry, ", avro: {raw_unions: true}", *raws)
    assert [one.doc for one in back] == ORDERS
    assert [one.meta["schema_id"] for one in back] == [schema_id, schema_id]
    tagged = decoded(make, a_run, schema_registry, "", raws[1])[0]
    assert tagged.doc["note"] == {"string": "caf\u00e9"}
    times = ", avro_raw_json: true, avro: {preserve_logical_types: true}"
    time = json.loads(decoded(make, a_run, schema_registry, times, raws[0])[0].raw)["at"]
    assert time == "2020-01-02T03:04:05.678Z"


@pytest.mark.parametrize("rule", ["decode", "encode"])
def test_the_schema_of_a_registry_is_a_rule_of_expectations(
    make: Make, a_run: Run, schema_registry: Registry, rule: str
) -> None:
    of, inner = subject("judged"), subject("address")
    schema_registry.register(inner, ADDRESS)
    references = [{"name": "shop.Address", "subject": inner, "version": 1}]
    schema_registry.register(of, ORDER, references=references)
    fields = f"url: '{schema_registry.url}'"
    good = Message.from_value(ORDERS[0])
    bad = Message.from_value(dict(ORDERS[0], id="seven"))
    if rule == "decode":
        [good] = encoded(make, a_run, schema_registry, of, ORDERS[0])
        bad = Message(good.raw[:-3])
    else:
        fields += f", subject: '{of}'"
    name = f"schema_registry_{rule}"
    processor = make(
        f"expect: {{expectations: [{{name: fits, schema: {{{name}: {{{fields}}}}}}}]}}"
    )
    [made] = processor.process([good, bad, good], a_run.ex)
    assert [one.raw for one in made] == [good.raw, bad.raw, good.raw]
    assert [one.error is None for one in made] == [True, False, True]
    assert str(made[1].error).startswith(f"expectation fits failed: {name}: ")
    assert made[1].meta["failed_expectations"] == ["fits"] and "schema_id" not in made[0].meta


def test_the_config_of_the_page_runs(make: Make, a_run: Run, schema_registry: Registry) -> None:
    (block,) = [one for one in blocks(PAGE) if one.name == "orders_avro.yaml"]
    fields = [("id", "long"), ("price", "double"), ("pieces", "int"), ("note", ["null", "string"])]
    made_fields = [("order", "long"), ("total", "double"), fields[3]]
    orders, totals = (
        schema_registry.register(
            of,
            {
                "type": "record",
                "name": "Record",
                "fields": [{"name": name, "type": kind} for name, kind in listed],
            },
        )
        for of, listed in (("orders-value", fields), ("totals-value", made_fields))
    )
    assert orders != totals
    document = {"id": 7, "price": 1.5, "pieces": 2, "note": "x"}
    [message] = encoded(make, a_run, schema_registry, "orders-value", document)
    config = parse_config(block.text.replace("http://localhost:8081", schema_registry.url))
    built = build_context(config.resources).build_all(config.processors)
    [[made]] = run_processors(built, [[message]], a_run.ex)
    assert made.error is None and int.from_bytes(made.raw[1:5], "big") == totals
    [back] = decoded(make, a_run, schema_registry, "", made.raw)
    assert back.doc == {"order": 7, "total": 3.0, "note": {"string": "x"}}


def test_protobuf_with_references(make: Make, a_run: Run, schema_registry: Registry) -> None:
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
    from google.protobuf import json_format, struct_pb2

    of, other = subject("proto"), subject("other")
    schema_registry.register(
        other, 'syntax = "proto3"; package shop; message City { string name = 1; }', "PROTOBUF"
    )
    text = (
        'syntax = "proto3"; package shop; import "city.proto";'
        "message Visit { City city = 1; int64 at = 2; } message Leave { double when = 1; }"
    )
    references = [{"name": "city.proto", "subject": other, "version": 1}]
    schema_id = schema_registry.register(of, text, "PROTOBUF", references)
    documents = [{"city": {"name": "Bonn"}, "at": "12345678901234567"}, {"when": 1.5}]
    made = encoded(make, a_run, schema_registry, of, *documents)
    head = b"\0" + schema_id.to_bytes(4, "big")
    assert [one.raw[: len(head) + 2] for one in made] == [head + b"\0\x0a", head + b"\2\2"]
    back = decoded(make, a_run, schema_registry, "", *(one.raw for one in made))
    assert [one.doc for one in back] == documents

    # Confluent's serializer needs classes: a type that comes with Protobuf has one.
    of = subject("struct")
    document = {"a": [1.5, True, None, "x"]}
    for kind in (struct_pb2.Value, struct_pb2.Struct):
        theirs = confluent(
            schema_registry,
            lambda client, kind=kind: ProtobufSerializer(
                kind, client, {"use.deprecated.format": False}
            ),
            of,
            json_format.ParseDict(document, kind()),
        )
        assert decoded(make, a_run, schema_registry, "", theirs)[0].doc == document
    # An object fits the first type, `Struct`.
    assert encoded(make, a_run, schema_registry, of, document)[0].raw == theirs


def test_json_schema_with_references(make: Make, a_run: Run, schema_registry: Registry) -> None:
    from confluent_kafka.schema_registry.json_schema import JSONSerializer

    of = subject("json")
    schema = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}})
    schema_registry.register(of, schema, "JSON")
    made = encoded(make, a_run, schema_registry, of, {"n": 1}, {"n": "x"})
    theirs = confluent(
        schema_registry, lambda client: JSONSerializer(schema, client, conf=LATEST), of, {"n": 1}
    )
    # Confluent's has blanks, which JSON does not count.
    assert made[0].raw[:5] == theirs[:5]
    assert made[0].raw[5:] == b'{"n":1}' and json.loads(theirs[5:]) == {"n": 1}
    assert made[1].error is not None and made[1].doc == {"n": "x"}
    assert "json message does not conform to schema: [n " in made[1].error
    assert decoded(make, a_run, schema_registry, "", theirs)[0].doc == {"n": 1}


def test_each_message_may_have_a_subject_of_its_own_and_failures_are_marked(
    make: Make, a_run: Run, schema_registry: Registry
) -> None:
    first, second = subject("a"), subject("b")
    ids = [schema_registry.register(of, '"string"') for of in (first, second)]
    messages = [Message.from_value("x", {"of": of}) for of in (first, second, subject("nobody's"))]
    made = run(
        make,
        a_run,
        "schema_registry_encode",
        f"url: '{schema_registry.url}', subject: '${{! @of }}'",
        *messages,
    )
    assert [int.from_bytes(one.raw[1:5], "big") for one in made[:2]] == ids
    assert made[2].error and made[2].raw == b'"x"'

    unknown, bare = decoded(make, a_run, schema_registry, "", b"\0\0\1\0\0x", b"no header")
    assert unknown.error is not None and bare.error is not None
    assert unknown.error.startswith("schema 65536 not found by registry: ")
    assert (unknown.raw, bare.raw) == (b"\0\0\1\0\0x", b"no header")
    assert bare.error == "5 byte header for value is missing or does not have 0 magic byte"
    given = f", default_schema_id: {ids[0]}, avro: {{raw_unions: true}}"
    assert decoded(make, a_run, schema_registry, given, b"\x04hi")[0].doc == "hi"
