"""`elasticsearch`, `elasticsearch_v8`, `elasticsearch_v9` and `opensearch`, with a stand-in."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any

import pytest

from streamer.core.errors import ConfigError, StreamerError
from streamer.core.message import Message
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import Reason, Rejection
from tests.components.outputs.scripted import Seen, built
from tests.servers import free_port, lasting_port
from tests.servers.http import Asked, Reply, http_server
from tests.servers.search import SearchEngine, basic, search_engine

NEW = ("elasticsearch_v8", "elasticsearch_v9")
ALL = (*NEW, "elasticsearch", "opensearch")


@pytest.fixture
def engine() -> Iterator[SearchEngine]:
    with search_engine() as running:
        yield running


def send(
    engine: SearchEngine, name: str, fields: str, *batch: Message, seen: Seen | None = None
) -> SendError | None:
    config = f"{name}: {{urls: ['{engine.url}'], index: i, {fields}}}"
    [error] = built(config).deliver([[*batch]], (seen or Seen()).ex).errors
    return error


def reasons(error: SendError | None) -> dict[int, Reason | None]:
    """Return by index why messages were rejected; None of those that are to be sent again."""
    if error is None:
        return {}
    return {
        index: text.reason if isinstance(text, Rejection) else None
        for index, text in error.errors.items()
    }


def documents(*values: Any) -> list[Message]:
    return [Message(json.dumps(value).encode()) for value in values]


class TestActions:
    @pytest.mark.parametrize("name", ALL)
    def test_documents_are_indexed_by_their_id(self, engine: SearchEngine, name: str) -> None:
        batch = documents({"id": "a", "n": 1}, {"id": "b", "n": 2}, {"id": "a", "n": 3})
        seen = Seen()
        fields = "action: index, id: '${! this.id }', pipeline: p, routing: '${! this.n }'"
        assert send(engine, name, fields, *batch, seen=seen) is None
        assert engine.documents["i"] == {"a": {"id": "a", "n": 3}, "b": {"id": "b", "n": 2}}
        head = {"_index": "i", "_id": "a", "routing": "1", "pipeline": "p"}
        assert engine.heads[0] == ("index", head) and engine.requests == [3]
        assert seen.counts["http_request_code_2xx"] == 1

    @pytest.mark.parametrize("name", ALL)
    def test_a_document_is_deleted_however_often(self, engine: SearchEngine, name: str) -> None:
        engine.documents["i"] = {"a": {}, "b": {}}
        fields = "action: delete, id: '${! content() }', pipeline: p"
        assert send(engine, name, fields, Message(b"a"), Message(b"a"), Message(b"c")) is None
        assert engine.documents["i"] == {"b": {}}
        assert engine.heads[0] == ("delete", {"_index": "i", "_id": "a"})

    @pytest.mark.parametrize("name", (*NEW, "elasticsearch"))
    def test_what_is_there_is_not_created_again(self, engine: SearchEngine, name: str) -> None:
        engine.documents["i"] = {"a": {"id": "a", "n": 0}}
        fields = "action: create, id: '${! this.id }'"
        error = send(engine, name, fields, *documents({"id": "a", "n": 1}, {"id": "b"}))
        assert reasons(error) == {0: Reason.REFUSED}
        assert "document already exists" in str(error)
        assert engine.documents["i"] == {"a": {"id": "a", "n": 0}, "b": {"id": "b"}}

    @pytest.mark.parametrize("name", NEW)
    def test_an_update_has_its_parts_and_nothing_else(
        self, engine: SearchEngine, name: str
    ) -> None:
        engine.documents["i"] = {"a": {"n": 1, "m": 1}}
        fields = "action: update, id: '${! @id }', retry_on_conflict: 3"
        batch = [
            Message(b'{"doc": {"n": 2}, "detect_noop": false}', {"id": "a"}),
            Message(b'{"doc": {"n": 2}, "upsert": {"n": 9}}', {"id": "b"}),
            Message(b'{"doc": {"n": 2}}', {"id": "c"}),
            Message(b'{"n": 2}', {"id": "a"}),
        ]
        error = send(engine, name, fields, *batch)
        assert reasons(error) == {2: Reason.REFUSED, 3: Reason.INVALID}
        assert engine.documents["i"] == {"a": {"n": 2, "m": 1}, "b": {"n": 9}}
        assert engine.heads[0][1]["retry_on_conflict"] == 3

    def test_upsert_of_old_and_new_outputs(self, engine: SearchEngine) -> None:
        engine.documents["i"] = {"a": {"m": 1}}
        fields = "action: upsert, id: a"
        assert send(engine, "elasticsearch", fields, *documents({"n": 1})) is None
        assert engine.documents["i"] == {"a": {"m": 1, "n": 1}}
        assert send(engine, "elasticsearch_v8", fields, *documents({"n": 2})) is None
        assert engine.documents["i"] == {"a": {"n": 2}}

    def test_a_body_of_an_update_is_sent_as_it_is(self, engine: SearchEngine) -> None:
        batch = documents({"doc": {"n": 1}, "doc_as_upsert": True}, {"nonsense": 1})
        batch += documents({"doc": {"n": 2}, "doc_as_upsert": True})
        fields = "action: update, id: a"
        # The server refuses the request for one of them; its halves tell which.
        assert reasons(send(engine, "opensearch", fields, *batch)) == {1: Reason.REFUSED}
        assert engine.documents["i"] == {"a": {"n": 2}}

    def test_the_old_output_has_a_type_compresses_and_makes_ids(self, engine: SearchEngine) -> None:
        fields = "type: _doc, gzip_compression: true"
        assert send(engine, "elasticsearch", fields, *documents({"n": 1}, {"n": 2})) is None
        assert [head["_type"] for _, head in engine.heads] == ["_doc", "_doc"]
        assert len({head["_id"] for _, head in engine.heads}) == 2


class TestFailures:
    @pytest.mark.parametrize("name", ALL)
    def test_a_bad_message_fails_alone(self, engine: SearchEngine, name: str) -> None:
        batch = documents({"id": "a", "n": 1}, {"id": "b", "n": "x"}, {"id": "c", "n": 1}, [1])
        batch += [Message(b"garbage"), Message(b'{\n"id":"d"\r\n}'), Message(b"")]
        error = send(engine, name, "action: index, id: '${! this.id.or(\"\") }'", *batch)
        assert reasons(error) == {
            1: Reason.REFUSED,
            **dict.fromkeys((3, 4, 6), Reason.INVALID),
        }
        assert (
            error is not None
            and 'caused by number_format_exception: For input string: "x"' in (error.errors[1])
        )
        assert sorted(engine.documents["i"]) == ["a", "c", "d"]

    def test_what_the_server_cannot_take_now_is_sent_again_alone(
        self, engine: SearchEngine
    ) -> None:
        engine.full = 2
        batch = documents(*({"id": str(n)} for n in range(5)))
        error = send(engine, "elasticsearch_v8", "action: index, id: '${! this.id }'", *batch)
        assert reasons(error) == {0: None, 1: None}
        assert error is not None and "429" in error.text and not error.is_rejected
        assert sorted(engine.documents["i"]) == ["2", "3", "4"]

    def test_the_old_output_tries_again_by_itself(self, engine: SearchEngine) -> None:
        engine.full = 2
        batch = documents({"id": "a"}, {"id": "b", "n": "x"}, {"id": "c"})
        fields = "action: index, id: '${! this.id }', max_retries: 3"
        seen = Seen()
        error = send(engine, "elasticsearch", fields, *batch, seen=seen)
        assert reasons(error) == {1: Reason.REFUSED}
        assert len(seen.pauses) == 1 and engine.requests == [3, 2]
        assert sorted(engine.documents["i"]) == ["a", "c"]

    @pytest.mark.parametrize(
        ("reply", "words"),
        [
            (Reply(429, b'{"error": {"type": "t", "reason": "slowly"}}'), "429: t: slowly"),
            (Reply(503, b"<html>away</html>"), "503: <html>away"),
            (Reply(200, b"hello"), "is none of the bulk API"),
            (Reply(200, b'{"items": [{"index": {"status": 201}}]}'), "1 items for 2 actions"),
            (Reply(200, b'{"items": [{"index": {}}, {"index": []}]}'), "is none of the bulk API"),
        ],
    )
    def test_an_answer_for_all_fails_all(
        self, engine: SearchEngine, reply: Reply, words: str
    ) -> None:
        engine.answers.append(reply)
        fields = "action: index, id: a"
        error = send(engine, "opensearch", fields, *documents({"n": 1}, {"n": 2}))
        assert error is not None and words in str(error)
        assert not error.is_rejected and not error.errors

    def test_a_read_only_index_is_waited_for(self, engine: SearchEngine) -> None:
        engine.read_only.add("i")
        error = send(engine, "elasticsearch_v8", "action: index, id: a", *documents({"n": 1}))
        assert reasons(error) == {0: None}

    def test_a_message_that_is_too_large_is_rejected_alone(self) -> None:
        with search_engine(limit=1_000) as engine:
            batch = documents(*({"id": n, "text": "x" * (2_000 * (n == 5))} for n in range(20)))
            fields = "action: index, id: '${! this.id }'"
            assert reasons(send(engine, "elasticsearch_v9", fields, *batch)) == {
                5: Reason.TOO_LARGE
            }
            assert len(engine.documents["i"]) == 19

    def test_requests_have_a_size(self, engine: SearchEngine) -> None:
        batch = documents(*({"id": n, "text": "x" * (6 << 20)} for n in range(4)))
        fields = "action: index, id: '${! this.id }'"
        assert send(engine, "opensearch", fields, *batch) is None
        assert engine.requests == [2, 2]

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ("index: '${! this.i }', action: index, id: a", "the name of the index is empty"),
            ("index: i, action: '${! this.i }', id: a", "action '' is not one of index"),
            ("index: i, action: delete, id: '${! this.i }'", "the id is empty"),
            ("index: i, action: index, id: '${! this.x.uppercase() }'", "id interpolation error"),
        ],
    )
    def test_what_a_message_does_not_say(
        self, engine: SearchEngine, fields: str, words: str
    ) -> None:
        output = built(f"elasticsearch_v8: {{urls: ['{engine.url}'], {fields}}}")
        [error] = output.deliver([documents({"i": ""})], Seen().ex).errors
        assert reasons(error) == {0: Reason.INVALID} and words in str(error)


def expected_signature(asked: Asked, secret: str) -> str:
    """Return the signature that a request must have, by AWS's document of its version 4."""
    named = asked.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0]
    path, _, query = asked.path.partition("?")
    lines = [asked.method, path, query]
    lines += [*(f"{name}:{asked.headers[name]}" for name in named.split(";")), "", named]
    lines.append(hashlib.sha256(asked.body).hexdigest())
    when = asked.headers["x-amz-date"]
    scope = f"{when[:8]}/eu-west-1/es/aws4_request"
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    key = f"AWS4{secret}".encode()
    text = f"AWS4-HMAC-SHA256\n{when}\n{scope}\n{digest}"
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    return key.hex()


@pytest.mark.parametrize("name", ("elasticsearch", "opensearch"))
def test_requests_are_signed_for_aws(engine: SearchEngine, name: str) -> None:
    asked: list[Asked] = []

    def answer(one: Asked) -> Reply:
        asked.append(one)
        return engine.answer(one)

    keys = "credentials: {id: AKID, secret: sesame}"
    with http_server(answer) as server:
        config = (
            f"{name}: {{urls: ['{server.url}'], index: i, action: index, id: a, "
            f"aws: {{enabled: true, region: eu-west-1, {keys}}}}}"
        )
        output = built(config)
        assert output.deliver([documents({"n": 1})], Seen().ex).errors == [None]
        assert output.probe() == "the server answers"
    for one in asked:
        assert "Credential=AKID/" in one.headers["authorization"]
        signature = expected_signature(one, "sesame")
        assert one.headers["authorization"].endswith(f"Signature={signature}")


class TestConnections:
    def test_credentials(self) -> None:
        with search_engine(credentials=basic("me", "sesame")) as engine:
            fields = "action: index, id: a, basic_auth: {enabled: true, username: me, password: %s}"
            assert send(engine, "opensearch", fields % "sesame", *documents({})) is None
            error = send(engine, "opensearch", fields % "sesamo", *documents({}))
            assert error is not None and not error.is_rejected
            assert "401" in str(error) and "sesam" not in str(error)
            config = f"opensearch: {{urls: ['{engine.url}'], index: i, {fields}}}"
            assert built(config % "sesame").probe() == "the server answers"
            with pytest.raises(StreamerError, match="401: security_exception: who is it"):
                built(config % "sesamo").probe()

    def test_an_api_key_stands_before_a_password(self) -> None:
        with search_engine(credentials="ApiKey c2VzYW1l") as engine:
            fields = "action: index, id: a, api_key: c2VzYW1l, basic_auth: {enabled: true}"
            assert send(engine, "elasticsearch_v8", fields, *documents({})) is None

    def test_a_server_that_is_away_is_passed_over(self, engine: SearchEngine) -> None:
        urls = f"urls: ['http://127.0.0.1:{free_port()},{engine.url}/']"
        output = built(f"elasticsearch_v8: {{{urls}, index: i, action: index, id: a}}")
        for number in range(4):
            assert output.deliver([documents({"n": number})], Seen().ex).errors == [None]
        assert engine.documents["i"]["a"] == {"n": 3}
        assert output.probe() == "the server answers"

    def test_a_server_that_comes_back(self) -> None:
        port = lasting_port()
        url = f"http://127.0.0.1:{port}"
        output = built(f"opensearch: {{urls: ['{url}'], index: i, action: index, id: a}}")
        with search_engine(port, keeps=False):
            assert output.deliver([documents({})], Seen().ex).errors == [None]
        [error] = output.deliver([documents({})], Seen().ex).errors
        assert error is not None and not error.is_rejected and str(error).startswith(url)
        with search_engine(port) as engine:
            assert output.deliver([documents({"n": 1})], Seen().ex).errors == [None]
            assert engine.documents["i"] == {"a": {"n": 1}}


@pytest.mark.slow
def test_ten_thousand_documents_of_which_some_are_bad(engine: SearchEngine) -> None:
    batch = documents(*({"id": n, "n": "x" if n % 1_000 == 7 else n} for n in range(10_000)))
    fields = "action: index, id: '${! this.id }', batching: {count: 500}, max_in_flight: 4"
    error = send(engine, "elasticsearch_v8", fields, *batch)
    assert sorted(reasons(error)) == list(range(7, 10_000, 1_000))
    assert error is not None and error.is_rejected
    assert sorted(map(int, engine.documents["i"])) == [n for n in range(10_000) if n % 1_000 != 7]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("elasticsearch_v8: {urls: [], index: a, action: index, id: a}", "urls is an empty list"),
        (
            "elasticsearch_v8: {urls: ['localhost:9200'], index: a, action: index, id: a}",
            "no URL of HTTP; expected a URL such as http://localhost:9200",
        ),
        (
            "opensearch: {urls: ['http://a'], index: a, action: create, id: a}",
            "'create'; expected one of index, update, delete",
        ),
        (
            "elasticsearch_v8: {urls: ['http://a'], index: a, action: delete, id: ''}",
            "id is empty; the action delete needs the id of a document",
        ),
        (
            "opensearch: {urls: ['http://a'], index: a, action: index, id: a, "
            "aws: {enabled: true, credentials: {id: x}}}",
            "id and secret need each other",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(fields: str, text: str) -> None:
    from streamer.config import parse_config

    with pytest.raises(ConfigError, match=text):
        parse_config(f"output: {{{fields}}}\n")
