"""The output and the processor `qdrant`, with the messages of Qdrant's own client."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.connectors.qdrant.messages import _FIELDS, message_class
from streamer.core.errors import ConfigError, StreamerError
from streamer.core.message import Message
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import Reason, Rejection
from streamer.sdk.processing import InstrumentedProcessor
from streamer.sdk.spec.checks import SupportsProbe
from tests.certificates import certificate
from tests.components.outputs.scripted import Seen, built
from tests.servers import free_port
from tests.servers.qdrant import KEY, Qdrant, qdrant_server


@pytest.fixture(scope="module")
def running() -> Iterator[Qdrant]:
    with qdrant_server() as server:
        yield server


@pytest.fixture
def server(running: Qdrant) -> Qdrant:
    running.collections = {"texts": {}}
    running.upserts, running.queries, running.failures = [], [], []
    return running


def output(address: str, **fields: Any) -> str:
    given = {
        **{"grpc_host": address, "api_token": KEY, "collection_name": "texts"},
        **{"id": "root = this.id", "vector_mapping": "root = this.v", **fields},
    }
    return json.dumps({"qdrant": given})


def send(address: str, *documents: Any, **fields: Any) -> SendError | None:
    batch = [Message.from_value(document) for document in documents]
    [error] = built(output(address, **fields)).deliver([batch], Seen().ex).errors
    return error


def find(address: str, *documents: Any, **fields: Any) -> list[Message]:
    given = {
        **{"grpc_host": address, "api_token": KEY, "collection_name": "texts"},
        **{"vector_mapping": "root = this.v", **fields},
    }
    text = json.dumps({"pipeline": {"processors": [{"qdrant": given}]}})
    config = parse_config(text, env={})
    processor: InstrumentedProcessor = build_context(config.resources).build(config.processors[0])
    [made] = processor.process([Message.from_value(one) for one in documents], Seen().ex)
    return made


def test_messages_are_those_of_qdrants_own_client() -> None:
    from qdrant_client.grpc import points_pb2

    pool = points_pb2.DESCRIPTOR.pool
    for name in _FIELDS:
        theirs = pool.FindMessageTypeByName(f"qdrant.{name}").fields_by_number
        for one in message_class(name).DESCRIPTOR.fields:
            other = theirs[one.number]
            assert (one.name, one.type, one.is_repeated) == (
                other.name,
                other.type,
                other.is_repeated,
            )


class TestOutput:
    def test_points_are_written(self, server: Qdrant) -> None:
        payload = {"s": "x", "n": None, "i": 3, "f": 0.5, "b": True, "l": [1, {}], "o": {"a": []}}
        documents = [
            {"id": 7, "v": [1, "2.5"], "p": payload},
            {"id": "dc88c126-679f-49f5-ab85-04b77e8c2791", "v": {"d": [3, 4]}, "p": {}},
        ]
        assert send(server.address, *documents, payload_mapping="root = this.p") is None
        from google.protobuf.json_format import MessageToDict

        first, second = map(MessageToDict, server.collections["texts"].values())
        assert first["id"] == {"num": "7"}
        assert first["vectors"]["vectors"]["vectors"] == {"": {"dense": {"data": [1.0, 2.5]}}}
        assert first["payload"] == {
            "s": {"stringValue": "x"},
            "n": {"nullValue": "NULL_VALUE"},
            "i": {"integerValue": "3"},
            "f": {"doubleValue": 0.5},
            "b": {"boolValue": True},
            "l": {"listValue": {"values": [{"integerValue": "1"}, {"structValue": {}}]}},
            "o": {"structValue": {"fields": {"a": {"listValue": {}}}}},
        }
        assert second["vectors"]["vectors"]["vectors"] == {"d": {"dense": {"data": [3.0, 4.0]}}}
        assert server.upserts[0].wait is True

    def test_vectors_of_all_kinds(self, server: Qdrant) -> None:
        vectors = {"s": {"indices": [3, 7], "values": [0.5, 1]}, "m": [[1, 2], [3, 4]]}
        assert send(server.address, {"id": 1, "v": vectors}) is None
        stored = server.collections["texts"][1].vectors.vectors.vectors
        assert list(stored["s"].sparse.indices) == [3, 7]
        assert [list(row.data) for row in stored["m"].multi_dense.vectors] == [[1, 2], [3, 4]]

    def test_many_messages_are_few_requests(self, server: Qdrant) -> None:
        assert send(server.address, *({"id": n, "v": [n, n]} for n in range(10_000))) is None
        assert len(server.collections["texts"]) == 10_000 and len(server.upserts) == 40

    def test_what_is_refused_fails_alone(self, server: Qdrant) -> None:
        documents: list[dict[str, Any]] = [{"id": n, "v": [n, n]} for n in range(50)]
        documents[7]["v"] = [1, 2, 3]
        documents[8]["v"] = []
        documents[9]["id"] = -1
        error = send(server.address, *documents)
        assert error is not None and sorted(error.errors) == [7, 8, 9]
        refused, empty, no_id = (error.errors[place] for place in (7, 8, 9))
        assert isinstance(refused, Rejection) and refused.reason == Reason.REFUSED
        assert refused == (
            f"{server.address}: INVALID_ARGUMENT: Wrong input: Vector dimension error: 3"
        )
        assert empty == "vector_mapping gives an empty list; expected a list of numbers"
        assert isinstance(no_id, Rejection) and no_id.reason == Reason.INVALID
        assert no_id == "id gives -1; expected a UUID or a number from 0"
        assert len(server.collections["texts"]) == 47

    def test_a_server_that_is_away_keeps_the_batch(self) -> None:
        port = free_port()
        error = send(f"127.0.0.1:{port}", {"id": 1, "v": [1, 1]})
        assert error is not None and not error.is_rejected and "UNAVAILABLE" in error.text
        with qdrant_server(port) as server:
            until = time.monotonic() + 30
            # The channel waits a moment before it connects anew.
            while send(server.address, {"id": 1, "v": [1, 1]}) and time.monotonic() < until:
                time.sleep(0.1)
            assert list(server.collections["texts"]) == [1]

    def test_a_busy_server_keeps_what_is_behind_too(self, server: Qdrant) -> None:
        import grpc

        server.failures = [(grpc.StatusCode.RESOURCE_EXHAUSTED, "Too many requests")]
        error = send(server.address, *({"id": n, "v": [n, n]} for n in range(300)))
        assert error is not None and len(error.errors) == 300 and not error.is_rejected
        assert len(server.upserts) == 1

    def test_a_message_that_is_too_large_is_rejected(self, server: Qdrant) -> None:
        import grpc

        text = "Error, decoded message length too large: found 9 bytes, the limit is 4; larger than"
        server.failures = [(grpc.StatusCode.OUT_OF_RANGE, text)]
        error = send(server.address, {"id": 1, "v": [1, 1]})
        assert error is not None and isinstance(error.errors[0], Rejection)
        assert error.errors[0].reason == Reason.TOO_LARGE

    def test_a_collection_that_is_not_there(self, server: Qdrant) -> None:
        error = send(server.address, {"id": 1, "v": [1, 1]}, collection_name="none")
        assert error is not None and not error.is_rejected and "NOT_FOUND" in error.text
        documents = [{"id": 1, "v": [1, 1], "c": "none"}, {"id": 2, "v": [1, 1], "c": "texts"}]
        error = send(server.address, *documents, collection_name="${! this.c }")
        assert error is not None and error.is_rejected and list(error.errors) == [0]
        assert list(server.collections["texts"]) == [2]

    def test_a_wrong_key_is_no_rejection_and_not_shown(self, server: Qdrant) -> None:
        error = send(server.address, {"id": 1, "v": [1, 1]}, api_token="secret")
        assert error is not None and not error.is_rejected
        assert "UNAUTHENTICATED: Invalid API key" in error.text and "secret" not in error.text

    def test_a_probe_finds_the_server(self, server: Qdrant) -> None:
        config = parse_config(f"output: {output(server.address)}", env={})
        made = build_context(config.resources).build(config.output)
        assert isinstance(made, SupportsProbe) and made.probe() == "Qdrant 1.15.0 answers"
        away = parse_config(f"output: {output(f'127.0.0.1:{free_port()}')}", env={})
        lost = build_context(away.resources).build(away.output)
        with pytest.raises(StreamerError, match="UNAVAILABLE"):
            lost.probe()


class TestProcessor:
    def test_the_nearest_points_are_found(self, server: Qdrant) -> None:
        documents = [{"id": n, "v": [n, 0], "t": f"t{n}", "x": 1} for n in range(4)]
        assert send(server.address, *documents, payload_mapping="root = this") is None
        fields = {"limit": 2, "payload_fields": ["t"]}
        fields["filter"] = 'root.must = [{"field": {"key": "t", "match": {"text": "t"}}}]'
        [made] = find(server.address, {"v": [2, 0]}, **fields)
        assert made.doc == [
            {
                "id": {"num": "3"},
                "payload": {"t": {"stringValue": "t3"}},
                "score": 6.0,
                "version": "3",
            },
            {
                "id": {"num": "2"},
                "payload": {"t": {"stringValue": "t2"}},
                "score": 4.0,
                "version": "3",
            },
        ]
        [request] = server.queries
        assert request.filter.must[0].field.match.text == "t"

    def test_payloads_may_be_left_out_or_whole(self, server: Qdrant) -> None:
        find(server.address, {"v": [1, 0]})
        find(server.address, {"v": [1, 0]}, payload_filter="exclude")
        find(server.address, {"v": [1, 0]}, payload_filter="exclude", payload_fields=["a"])
        first, second, third = (request.with_payload for request in server.queries)
        assert first.HasField("enable") and not first.enable
        assert second.enable and list(third.exclude.fields) == ["a"]

    def test_what_cannot_be_asked_fails_the_message(self, server: Qdrant) -> None:
        made = find(
            server.address,
            {"v": {"a": [1, 0], "b": [1, 0]}},
            {"v": "x"},
            {"v": [1, 0], "f": {"must": [{"no": 1}]}},
            {"v": [1, 0], "f": None},
            filter="root = this.f",
        )
        errors = [one.error for one in made]
        assert errors[0] == "expected only a single vector to search on, got: 2"
        assert errors[1] is not None and errors[1].startswith("executing vector_mapping: ")
        assert errors[2] is not None and errors[2].startswith("invalid filter: ")
        assert errors[3] is None and made[3].doc == []


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"tls": {"enabled": True, "skip_cert_verify": True}}, "is not available over gRPC"),
        ({"grpc_host": "http://x:1"}, "is a URL; expected host and port"),
    ],
)
def test_what_is_wrong_is_found_beforehand(fields: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        built(output("127.0.0.1:1", **fields))


def test_tls_with_an_authority_of_its_own(tmp_path: Path) -> None:
    import grpc

    cert, key = certificate(tmp_path, "127.0.0.1")
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), cert.read_bytes())])
    with qdrant_server(tls=credentials) as server:
        tls = {"enabled": True, "root_cas_file": str(cert)}
        assert send(server.address, {"id": 1, "v": [1, 1]}, tls=tls) is None
        error = send(server.address, {"id": 1, "v": [1, 1]}, tls={"enabled": True})
        assert error is not None and "CERTIFICATE_VERIFY_FAILED" in error.text
