"""Everything of DynamoDB: output, cache and PartiQL, with a simulated DynamoDB."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.connectors.aws.attribute_values import make_attribute, read_attribute
from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError
from streamer.core.errors import ConfigError, MessageError
from streamer.core.message import Message
from streamer.sdk.cache import CacheError, KeyAlreadyExistsError, KeyNotFoundError
from tests.components.outputs.scripted import Seen, built
from tests.connectors.aws.sending import process, send
from tests.servers.aws import Aws


def make_table(aws: Aws, name: str) -> str:
    aws.client("dynamodb").create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return f"table: {name}, {aws.fields}"


def items_of(aws: Aws, table: str) -> dict[str, Any]:
    pages = aws.client("dynamodb").get_paginator("scan").paginate(TableName=table)
    items = [item for page in pages for item in page["Items"]]
    return {item["id"]["S"]: item for item in items}


@pytest.mark.slow
class TestOutput:
    def test_documents_become_items(self, aws: Aws) -> None:
        fields = make_table(aws, "documents")
        columns = "string_columns: {id: '${! @id }'}, json_map_columns: {all: ., b: a.1.b, '': a.2}"
        yaml = f"aws_dynamodb: {{{fields}, {columns}, ttl: 1h, ttl_key: until}}"
        text = b'{"a":[1.50,{"b":"c"},{"d":true}],"n":null}'
        assert send(yaml, [Message(text, {"id": "x"})]) is None
        levels = {
            "a": {"L": [{"N": "1.5"}, {"M": {"b": {"S": "c"}}}, {"M": {"d": {"BOOL": True}}}]}
        }
        assert items_of(aws, "documents") == {
            "x": {
                "id": {"S": "x"},
                "all": {"M": {**levels, "n": {"NULL": True}}},
                "b": {"S": "c"},
                "d": {"BOOL": True},
                "until": {"N": "3600"},
            }
        }
        assert built(yaml).probe() == "the table is active"

    def test_an_item_that_is_refused_fails_alone_and_the_last_of_a_key_stays(
        self, aws: Aws
    ) -> None:
        fields = make_table(aws, "refused")
        yaml = f"aws_dynamodb: {{{fields}, json_map_columns: {{'': .}}}}"
        batch = [Message(b'{"id":"%d","n":%d}' % (n % 90, n)) for n in range(100)]
        batch[40:40] = [Message(b'{"n":1}'), Message(b"no JSON")]
        error = send(yaml, batch)
        assert error.is_rejected and sorted(error.errors) == [40, 41]
        found = {key: int(item["n"]["N"]) for key, item in items_of(aws, "refused").items()}
        assert found == {f"{n % 90}": n for n in range(100)}

    def test_a_table_that_is_not_there(self, aws: Aws) -> None:
        yaml = f"aws_dynamodb: {{table: nowhere, {aws.fields}, string_columns: {{id: a}}}}"
        with pytest.raises(AwsError, match="ResourceNotFound"):
            built(yaml).probe()


class _Table:
    """A table that leaves the second item of its first request."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []

    def describe_table(self, **_: Any) -> Any:
        return {"Table": {"KeySchema": [{"AttributeName": "id"}], "TableStatus": "ACTIVE"}}

    def batch_write_item(self, RequestItems: Any) -> Any:  # noqa: N803
        [requests] = RequestItems.values()
        self.requests.append([one["PutRequest"]["Item"]["id"]["S"] for one in requests])
        left = requests[1:2] if len(self.requests) == 1 else []
        return {"UnprocessedItems": {"t": left} if left else {}}


def test_what_a_table_leaves_is_put_again_before_what_follows_of_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = _Table()
    monkeypatch.setattr(AwsClient, "run", lambda self, work: work(table))
    yaml = "aws_dynamodb: {table: t, string_columns: {id: '${! content() }'}}"
    batch = [Message(one) for one in (b"a", b"b", b"c", b"b", b"b")]
    assert send(yaml, batch) is None
    assert table.requests == [["a", "b", "c"], ["b"], ["b"], ["b"]]


@pytest.mark.slow
def test_a_cache(aws: Aws) -> None:
    fields = make_table(aws, "cache")
    text = f"{fields}, hash_key: id, data_key: v, default_ttl: 60s, ttl_key: until"
    config = parse_config(f"cache_resources: [{{label: c, aws_dynamodb: {{{text}}}}}]\n")
    [component] = config.resources.values()
    cache: Any = build_context(config.resources).build(component)
    ex = Seen().ex
    with pytest.raises(KeyNotFoundError):
        cache.get("a", ex)
    cache.add("a", b"1", None, ex)
    with pytest.raises(KeyAlreadyExistsError):
        cache.add("a", b"2", None, ex)
    cache.set("a", b"\xff3", 5 * 10**9, ex)
    assert cache.get("a", ex) == b"\xff3"
    assert items_of(aws, "cache")["a"]["until"] == {"N": "5"}
    cache.delete("a", ex)
    cache.delete("a", ex)
    cache.add("a", b"4", None, ex)
    assert items_of(aws, "cache")["a"]["until"] == {"N": "60"}
    with pytest.raises(CacheError, match="(?i)valid"):
        cache.set("", b"1", None, ex)


@pytest.mark.slow
@pytest.mark.parametrize("use_batch", ["true", "false"])
def test_statements(aws: Aws, use_batch: str) -> None:
    name = f"partiql{use_batch}"
    make_table(aws, name)
    columns = "string_columns: {id: '${! content() }'}, json_map_columns: {n: .}"
    # A request has 25 statements at most. The simulated DynamoDB looks at all items for each.
    numbers = [n % 3 for n in range(27 if use_batch == "true" else 4)]
    items = [Message(b"%d" % n) for n in range(3)]
    assert send(f"aws_dynamodb: {{table: {name}, {aws.fields}, {columns}}}", items) is None
    batch = [Message(b"%d" % n) for n in numbers]
    fields = f"aws_dynamodb_partiql: {{{aws.fields}, use_batch: {use_batch}"
    args = "args_mapping: 'root = [{\"S\": content().string().parse_json().string()}]'"
    select = f"query: 'SELECT * FROM {name} WHERE id = ?', {args}"
    batch[3:3] = [Message(b"no JSON"), Message(b"77")]
    made = process(f"{fields}, {select}}}", *batch)
    assert [index for index, one in enumerate(made) if one.error] == [3]
    assert made[4].raw == b"77"
    expected = [{"id": {"S": f"{n}"}, "n": {"N": f"{n}"}} for n in numbers]
    assert [one.doc for index, one in enumerate(made) if index not in (3, 4)] == expected
    # The simulated DynamoDB deletes by no arguments.
    delete = f"query: 'DELETE FROM \"{name}\" WHERE \"id\" = ''${{! content() }}'''"
    [deleted] = process(f"{fields}, {delete}, unsafe_dynamic_query: true}}", Message(b"2"))
    assert deleted.raw == b"2" and deleted.error is None
    assert set(items_of(aws, name)) == {"0", "1"}


def test_values_and_attributes() -> None:
    assert make_attribute([1e21, 0.1, -3, b"x"]) == {
        "L": [{"N": "1000000000000000000000"}, {"N": "0.1"}, {"N": "-3"}, {"B": b"x"}]
    }
    given = {"M": {"a": {"L": [{"N": 1.5}, {"B": "x"}]}, "b": {"SS": ["y"]}, "c": {"NULL": True}}}
    assert read_attribute(given) == {
        "M": {"a": {"L": [{"N": "1.5"}, {"B": b"x"}]}, "b": {"SS": ["y"]}, "c": {"NULL": True}}
    }
    for bad in ("x", {}, {"S": 1}, {"X": "y"}, {"N": True}, {"S": "a", "N": "1"}, {"SS": [1]}):
        with pytest.raises(MessageError):
            read_attribute(bad)
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    with pytest.raises(MessageError, match="more than 32 levels"):
        make_attribute(deep)


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ("output: {aws_dynamodb: {table: a}}", "has no column"),
        ("output: {aws_dynamodb: {table: a, string_columns: {a: b}, ttl: 1s}}", "need each other"),
        (
            "cache_resources: [{label: a, aws_dynamodb: {table: a, hash_key: b, data_key: c, "
            "default_ttl: 1s}}]",
            "needs the field ttl_key",
        ),
        (
            "pipeline: {processors: [{aws_dynamodb_partiql: {query: '${! nope( }', "
            "unsafe_dynamic_query: true}}]}",
            "query",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(config: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        parse_config(config)
