"""`pinecone`, with a server in this process that checks requests as Pinecone does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import Reason, Rejection
from tests.servers import free_port
from tests.servers.http import Asked, Reply, Server, http_server

from .scripted import Seen, built

KEY = "the-key"


@dataclass
class Index:
    """An index, by namespace and id."""

    server: Server
    stored: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    replies: list[Reply] = field(default_factory=list)


@pytest.fixture
def index() -> Iterator[Index]:
    kept: Index

    def answers(asked: Asked) -> Reply:
        if kept.replies:
            return kept.replies.pop(0)
        if asked.headers.get("api-key") != KEY or "x-pinecone-api-version" not in asked.headers:
            return Reply(401, b"Invalid API Key")
        if asked.method == "GET":
            return Reply(405)
        document = json.loads(asked.body)
        space = document.pop("namespace", "")
        if asked.path == "/vectors/delete":
            for one in document["ids"]:
                kept.stored.pop((space, one), None)
        elif asked.path == "/vectors/update":
            vector = kept.stored[space, document["id"]]
            vector["values"] = document["values"]
            vector["metadata"].update(document.get("setMetadata", {}))
        else:
            assert asked.path == "/vectors/upsert"
            vectors = document["vectors"]
            ids = [vector["id"] for vector in vectors]
            if len(set(ids)) < len(ids) or len(ids) > 1000:
                return Reply(400, b'{"message": "duplicate ids"}')
            for vector in vectors:
                if len(vector["values"]) != 2:
                    text = f"Vector dimension {len(vector['values'])} does not match 2"
                    return Reply(400, json.dumps({"code": 3, "message": text}).encode())
            kept.stored |= {(space, vector["id"]): vector for vector in vectors}
        return Reply(200, b"{}")

    with http_server(answers) as server:
        kept = Index(server)
        yield kept


def output(url: str, **fields: Any) -> str:
    given = {
        **{"host": url, "api_key": KEY, "id": "${! this.id }"},
        **{"vector_mapping": "root = this.v", **fields},
    }
    return json.dumps({"pinecone": given})


def send(url: str, *documents: Any, **fields: Any) -> SendError | None:
    batch = [Message.from_value(document) for document in documents]
    [error] = built(output(url, **fields)).deliver([batch], Seen().ex).errors
    return error


def test_vectors_are_written_changed_and_deleted(index: Index) -> None:
    url = index.server.url
    fields = {"metadata_mapping": "root.t = this.t", "namespace": "${! this.n }"}
    documents = [
        {"id": "a", "v": [1, 2.5], "t": "x", "n": "s"},
        {"id": "b", "v": ["3", 4], "n": ""},
    ]
    assert send(url, *documents, **fields) is None
    assert index.stored == {
        ("s", "a"): {"id": "a", "values": [1, 2.5], "metadata": {"t": "x"}},
        ("", "b"): {"id": "b", "values": [3, 4], "metadata": {"t": None}},
    }
    change = {"id": "a", "v": [0, 0], "t": "y", "n": "s"}
    assert send(url, change, operation="update-vector", **fields) is None
    assert index.stored["s", "a"] == {"id": "a", "values": [0, 0], "metadata": {"t": "y"}}
    gone = send(url, {"id": "a", "n": "s"}, operation="delete-vectors", namespace="s")
    assert gone is None and list(index.stored) == [("", "b")]


def test_many_messages_are_few_requests(index: Index) -> None:
    documents = [{"id": f"{n}", "v": [n, n]} for n in range(10_000)]
    assert send(index.server.url, *documents) is None
    assert len(index.stored) == 10_000 and len(index.server.asked) == 100


def test_the_last_message_of_an_id_counts(index: Index) -> None:
    assert send(index.server.url, {"id": "a", "v": [1, 1]}, {"id": "a", "v": [2, 2]}) is None
    assert index.stored["", "a"]["values"] == [2, 2]


def test_what_is_refused_fails_alone(index: Index) -> None:
    documents: list[dict[str, Any]] = [{"id": f"{n}", "v": [n, n]} for n in range(50)]
    documents[7]["v"] = [1, 2, 3]
    documents[30]["v"] = "none"
    documents[31]["v"] = [True, 1]
    documents[32] = {"v": [1, 1]}
    error = send(index.server.url, *documents)
    assert error is not None and sorted(error.errors) == [7, 30, 31]
    refused, no_list, no_number = (error.errors[place] for place in (7, 30, 31))
    assert isinstance(refused, Rejection) and refused.reason == Reason.REFUSED
    assert refused.endswith("/vectors/upsert: status 400: Vector dimension 3 does not match 2")
    assert isinstance(no_list, Rejection) and no_list.reason == Reason.INVALID
    assert isinstance(no_number, Rejection) and "gives no number at index 0" in no_number
    assert len(index.stored) == 47


def test_a_server_that_is_away_keeps_the_batch(index: Index) -> None:
    error = send(f"http://127.0.0.1:{free_port()}", {"id": "a", "v": [1, 1]})
    assert error is not None and not error.is_rejected
    index.replies = [Reply(503)]
    documents = [{"id": f"{n}", "v": [n, n]} for n in range(150)]
    error = send(index.server.url, *documents)
    assert error is not None and len(error.errors) == 150 and not error.is_rejected
    assert len(index.server.asked) == 1
    assert send(index.server.url, *documents) is None


def test_a_pause_that_the_server_asks_for_is_made(index: Index) -> None:
    index.replies = [Reply(429, b"slow down", {"Retry-After": "3"})]
    seen, now = Seen(), 0
    sleeps: list[int] = []

    def sleep(ns: int) -> None:
        nonlocal now
        sleeps.append(ns)
        now += ns

    seen.ex.elapsed, seen.ex.sleep = (lambda: now), sleep
    to = built(output(index.server.url))
    batch = [Message.from_value({"id": "a", "v": [1, 1]})]
    [error] = to.deliver([batch], seen.ex).errors
    assert error is not None and "status 429: slow down" in error.text
    assert to.deliver([batch], seen.ex).errors == [None]
    assert sleeps == [3 * 10**9]


def test_a_wrong_key_is_no_rejection_and_not_shown(index: Index) -> None:
    error = send(index.server.url, {"id": "a", "v": [1, 1]}, api_key="secret")
    assert error is not None and not error.is_rejected
    assert "status 401: Invalid API Key" in error.text and "secret" not in error.text


def test_a_message_without_a_vector_is_not_sent(index: Index) -> None:
    assert send(index.server.url, {"id": "a"}, vector_mapping="root = deleted()") is None
    assert index.server.asked == []


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"host": "https://x.pinecone.io"}, "leave out https://"),
        ({"vector_mapping": None}, "is needed by the operation upsert-vectors"),
    ],
)
def test_what_is_wrong_is_found_beforehand(fields: dict[str, Any], problem: str) -> None:
    given = {"host": "h", "api_key": KEY, "id": "x", "vector_mapping": "root = this", **fields}
    kept = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(ConfigError, match=problem):
        built(json.dumps({"pinecone": kept}))
