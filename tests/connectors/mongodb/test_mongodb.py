"""`mongodb`: input, output, processor and cache, with FerretDB, which speaks its protocol."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.connectors.mongodb.connection import MongodbConnection, MongodbError
from streamer.connectors.mongodb.writes import BulkWriter, Write
from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.sdk.cache import KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.output.rejection import Reason, Rejection
from tests.components.inputs.landing import receiving
from tests.components.outputs.scripted import Seen, built
from tests.servers import free_port, lasting_port
from tests.servers.ferretdb import ferretdb_server

_NUMBERS = itertools.count()


class Collection:
    """A collection of a server that no other test uses."""

    def __init__(self, port: int) -> None:
        self.name = f"c{next(_NUMBERS)}"
        self.fields = f"url: 'mongodb://127.0.0.1:{port}', database: tests, collection: {self.name}"
        self._port = port

    def documents(self) -> list[Any]:
        import pymongo

        with pymongo.MongoClient("127.0.0.1", self._port) as client:
            return list(client["tests"][self.name].find(sort=[("_id", 1)]))

    def insert(self, *documents: Any) -> None:
        import pymongo

        with pymongo.MongoClient("127.0.0.1", self._port) as client:
            client["tests"][self.name].insert_many(documents)

    def output(self, more: str) -> str:
        return f"mongodb: {{{self.fields}, {more}}}"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    number = free_port()
    with ferretdb_server(tmp_path_factory.mktemp("ferretdb"), number):
        yield number


@pytest.fixture
def there(port: int) -> Collection:
    return Collection(port)


def send(collection: Collection, more: str, *documents: Any) -> Any:
    batch = [Message(json.dumps(one).encode()) for one in documents]
    [error] = built(collection.output(more)).deliver([batch], Seen().ex).errors
    return error


@pytest.mark.slow
class TestOutput:
    def test_each_operation(self, there: Collection) -> None:
        insert = "operation: insert-one, document_map: 'root = this'"
        documents = [{"_id": n, "n": n % 3} for n in range(10_000)]
        assert send(there, insert, *documents) is None
        by_id = "filter_map: 'root._id = this._id'"
        update = f"operation: update-one, {by_id}, document_map: 'root.\"$set\".n = this.n'"
        assert send(there, update, {"_id": 1, "n": 70}, {"_id": 1, "n": 71}) is None
        replace = f"operation: replace-one, {by_id}, upsert: true, document_map: 'root = this'"
        assert send(there, replace, {"_id": 2, "x": 1}, {"_id": 20_000, "x": 2}) is None
        assert send(there, f"operation: delete-one, {by_id}", {"_id": 3}) is None
        assert (
            send(there, "operation: delete-many, filter_map: 'root.n = this.n'", {"n": 0}) is None
        )
        left = there.documents()
        assert len(left) == 10_001 - 3_334
        assert left[:2] == [{"_id": 1, "n": 71}, {"_id": 2, "x": 1}]
        assert left[-1] == {"_id": 20_000, "x": 2}

    def test_a_bad_document_fails_alone(self, there: Collection) -> None:
        there.insert({"_id": 5})
        fields = "operation: insert-one, document_map: 'root = this.d'"
        texts = [{"d": {"_id": n, "f": n}} for n in range(9)]
        texts[3] = {"d": "no object"}
        texts[6] = {"d": {"_id": 6, "x": "x" * (17 << 20)}}
        error = send(there, fields, *texts, {"d": {"_id": 8, "f": 99}})
        assert error is not None and sorted(error.errors) == [3, 5, 6, 9]
        reasons = {
            n: text.reason for n, text in error.errors.items() if isinstance(text, Rejection)
        }
        assert reasons == {
            **{3: Reason.INVALID, 5: Reason.REFUSED, 6: Reason.TOO_LARGE, 9: Reason.REFUSED}
        }
        assert [one["_id"] for one in there.documents()] == [0, 1, 2, 4, 5, 7, 8]

    def test_types_of_extended_json(self, there: Collection) -> None:
        fields = "operation: insert-one, document_map: 'root = this'"
        given = {
            "_id": {"$oid": "0123456789abcdef01234567"},
            "at": {"$date": "2024-01-02T03:04:05Z"},
            "n": {"$numberLong": "5"},
            "deep": {"a": [1, None, "x"]},
        }
        assert send(there, fields, given) is None
        read = process_one(there, "operation: find-one, filter_map: 'root = this'", {"n": 5})
        assert read == {
            "_id": {"$oid": "0123456789abcdef01234567"},
            "at": {"$date": {"$numberLong": "1704164645000"}},
            "n": {"$numberLong": "5"},
            "deep": {"a": [{"$numberInt": "1"}, None, "x"]},
        }

    def test_a_server_that_comes_back(self, tmp_path: Path) -> None:
        place = Collection(lasting_port())
        number = int(place.fields.split(":")[3].partition("'")[0])
        text = place.output("operation: insert-one, document_map: 'root = this'").replace(
            f":{number}'", f":{number}/?serverSelectionTimeoutMS=500'"
        )
        output = built(text)
        with ferretdb_server(tmp_path, number) as server:
            assert output.deliver([[Message(b'{"_id":1}')]], Seen().ex).errors == [None]
            server.kill()
            server.wait()
        with pytest.raises(MongodbError, match="refused"):
            output.probe()
        with ferretdb_server(tmp_path, number):
            assert output.deliver([[Message(b'{"_id":2}')]], Seen().ex).errors == [None]
            assert output.probe() == "the server answers"
            assert place.documents() == [{"_id": 1}, {"_id": 2}]

    def test_wrong_credentials(self, there: Collection) -> None:
        fields = (
            "operation: insert-one, document_map: 'root = this', username: me, password: s3cret"
        )
        with pytest.raises(MongodbError) as caught:
            built(there.output(fields)).probe()
        assert "uthentication" in str(caught.value) and "s3cret" not in str(caught.value)


def process(fields: str, texts: list[str]) -> list[Message]:
    config = parse_config(f"pipeline:\n  processors:\n    - mongodb: {{{fields}}}\n")
    processor: Any = build_context(config.resources).build(config.processors[0])
    [made] = processor.process([Message(text.encode()) for text in texts], Seen().ex)
    return list(made)


def process_one(collection: Collection, more: str, document: Any) -> Any:
    [made] = process(f"{collection.fields}, {more}", [json.dumps(document)])
    return json.loads(made.raw) if made.error is None else made.error


@pytest.mark.slow
class TestProcessor:
    def test_documents_are_found(self, there: Collection) -> None:
        there.insert({"_id": 1, "n": 7}, {"_id": 2, "n": 8})
        find = "operation: find-one, filter_map: 'root._id = this.id', json_marshal_mode: relaxed"
        assert process_one(there, find, {"id": 2}) == {"_id": 2, "n": 8}
        assert process_one(there, find, {"id": 3}) == "mongo: no documents in result"
        stages = """operation: aggregate, document_map: 'root = [{"$match": {"n": this.n}}]'"""
        assert process_one(there, stages, {"n": 7}) == [
            {"_id": {"$numberInt": "1"}, "n": {"$numberInt": "7"}}
        ]

    def test_a_write_fails_for_its_message_alone(self, there: Collection) -> None:
        there.insert({"_id": 1})
        fields = f"{there.fields}, document_map: 'root._id = this.id'"
        made = process(fields, ['{"id": 0}', '{"id": 1}', "no JSON", '{"id": 2}'])
        assert [one.error is None for one in made] == [True, False, False, True]
        assert [one["_id"] for one in there.documents()] == [0, 1, 2]


@pytest.mark.slow
class TestInput:
    def test_each_document_is_read_and_then_it_ends(
        self, there: Collection, tmp_path: Path
    ) -> None:
        there.insert(*({"_id": n, "even": n % 2 == 0} for n in range(5_000)))
        fields = "json_marshal_mode: relaxed, query: 'root.even = true', batch_size: 100"
        with receiving(tmp_path, f"mongodb: {{{there.fields}, {fields}}}") as taken:
            raws = taken.raws(2_500)
        assert sorted(json.loads(raw)["_id"] for raw in raws) == list(range(0, 5_000, 2))
        assert taken.messages[0].meta == {
            "mongo_database": "tests",
            "mongo_collection": there.name,
        }

    def test_an_interrupted_query_goes_on_behind_the_last_id(
        self, there: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from streamer.connectors.spool.reconnecting_receiver import Session

        mixed: list[Any] = [f"s{n:04}" for n in range(1_500)]
        there.insert(*({"_id": one} for one in (*range(1_500), *mixed)))
        fields = "query: 'root = {}', sort: {_id: -1}, limit: 2900"
        config = f"mongodb: {{{there.fields}, {fields}}}"
        writes = itertools.count()
        write = Session.write

        def write_once(self: Session, records: Any, mark: Any = None) -> bool:
            if next(writes) == 0:
                return write(self, records, mark)
            # As when the program ends behind the first block.
            while not self.context.wait(1):
                pass
            return False

        with monkeypatch.context() as patched:
            patched.setattr(Session, "write", write_once)
            with receiving(tmp_path, config) as taken:
                assert len(taken.raws(1_000)) == 1_000
        with receiving(tmp_path, config) as taken:
            found = [json.loads(raw)["_id"] for raw in taken.raws(2_900)]
        expected = [*reversed(mixed), *({"$numberInt": str(n)} for n in range(1_499, 99, -1))]
        assert found == expected


@pytest.mark.slow
def test_cache(there: Collection) -> None:
    fields = f"{there.fields}, key_field: _id, value_field: v"
    config = parse_config(f"cache_resources: [{{label: c, mongodb: {{{fields}}}}}]\n")
    [component] = config.resources.values()
    cache: Any = build_context(config.resources).build(component)
    ex = Seen().ex
    with pytest.raises(KeyNotFoundError):
        cache.get("a", ex)
    cache.set("a", b"1", None, ex)
    cache.set("a", b"2", None, ex)
    assert cache.get("a", ex) == b"2"
    cache.add("b", b"\xff\x00", None, ex)
    with pytest.raises(KeyAlreadyExistsError):
        cache.add("b", b"4", None, ex)
    assert cache.get("b", ex) == b"\xff\x00"
    cache.delete("a", ex)
    with pytest.raises(KeyNotFoundError):
        cache.get("a", ex)


class TestBulk:
    """By replies as MongoDB gives them; FerretDB names the wrong one of several updates."""

    def bulk(self, operation: str, failing: dict[int, int], sent: list[list[int]]) -> Any:
        config = parse_config(
            f"output: {{mongodb: {{url: 'mongodb://h', database: d, collection: c, "
            f"operation: {operation}, document_map: 'root = this', "
            + ("filter_map: 'root = this'}}" if operation != "insert-one" else "}}")
        )
        fields = config.output.config

        class Scripted(BulkWriter):
            def _send(self, collection: str, documents: Any) -> Any:
                numbers = [one["n"] for one in documents]
                sent.append(numbers)
                if 40 in numbers:
                    raise MongodbError("a command is wrong", is_connection_lost=False, code=9)
                errors = [
                    {"index": at, "code": failing[n], "errmsg": f"error {n}"}
                    for at, n in enumerate(numbers)
                    if n in failing
                ]
                return {"n": 0, "writeErrors": errors[:1] if self._is_ordered else errors}

        return Scripted(fields, MongodbConnection(fields))

    def test_an_ordered_bulk_goes_on_behind_what_has_failed(self) -> None:
        sent: list[list[int]] = []
        bulk = self.bulk("replace-one", {2: 11000, 4: 91}, sent)
        failed = bulk.write("c", {n: Write({"n": n}, 10) for n in range(1, 6)})
        assert sent == [[1, 2, 3, 4, 5], [3, 4, 5], [5]]
        assert failed == {2: "error 2", 4: "error 4"}
        assert [isinstance(failed[n], Rejection) for n in (2, 4)] == [True, False]

    def test_inserts_are_one_command_and_all_that_failed_are_named(self) -> None:
        sent: list[list[int]] = []
        bulk = self.bulk("insert-one", {2: 11000, 4: 11000}, sent)
        failed = bulk.write("c", {n: Write({"n": n}, 10) for n in range(1, 6)})
        assert sorted(failed) == [2, 4] and len(sent) == 1

    def test_a_command_that_fails_as_a_whole_is_sent_one_by_one(self) -> None:
        sent: list[list[int]] = []
        failed = self.bulk("update-one", {}, sent).write(
            "c", {n: Write({"n": n}, 10) for n in (39, 40, 41)}
        )
        assert failed == {40: "a command is wrong"} and sent == [[39, 40, 41], [39], [40], [41]]

    def test_commands_are_no_larger_than_a_server_takes(self) -> None:
        sent: list[list[int]] = []
        bulk = self.bulk("insert-one", {}, sent)
        bulk.write("c", {n: Write({"n": n}, 12 << 20) for n in range(5)})
        assert sent == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("url: 'http://x'", "expected a URL such as mongodb://"),
        ("username: me", "need each other"),
        ("aws: {enabled: true}", "AWS IAM is not available"),
        ("operation: insert-one, filter_map: 'root = this'", "is not used by insert-one"),
        ("operation: delete-one", "filter_map is needed by delete-one"),
        ("operation: delete-one, filter_map: 'root = this', upsert: true", "upsert is not used"),
    ],
)
def test_fields_that_cannot_work_are_refused(fields: str, text: str) -> None:
    url = "" if "url" in fields else "url: 'mongodb://h', "
    if "operation" not in fields:
        fields += ", operation: insert-one, document_map: 'root = this'"
    with pytest.raises(ConfigError, match=text):
        built(f"mongodb: {{{url}database: d, collection: c, {fields}}}")
