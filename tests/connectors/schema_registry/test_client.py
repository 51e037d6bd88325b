"""Questions to a registry: who asks, how often, and what becomes of a registry that is away."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.connectors.schema_registry.client import (
    RegistryClient,
    RegistryError,
    UnknownSchemaError,
)
from tests.servers import free_port
from tests.servers.http import Asked, Reply, http_server


def client(url: str, fields: str = "", **more: Any) -> RegistryClient:
    text = "pipeline: {processors: [{schema_registry_decode: {url: '%s'%s}}]}"
    (component,) = parse_config(text % (url, f", {fields}" * bool(fields))).processors
    return RegistryClient(component.config, **more)


def answer(document: Any, status: int = 200) -> Reply:
    return Reply(status, json.dumps(document).encode())


def test_it_says_who_it_is() -> None:
    def answers(asked: Asked) -> Reply:
        if asked.path == "/token":
            return answer({"access_token": "tok", "token_type": "bearer"})
        return answer({"schema": '"string"'})

    with http_server(answers) as server:
        client(server.url, "basic_auth: {enabled: true, username: u, password: p}").schema_by_id(1)
        oauth2 = f"oauth2: {{enabled: true, client_key: k, token_url: '{server.url}/token'}}"
        client(server.url, oauth2).schema_by_id(2)
    asked = {one.path: one.headers.get("authorization", "") for one in server.asked}
    assert asked["/schemas/ids/1"] == f"Basic {base64.b64encode(b'u:p').decode()}"
    assert asked["/schemas/ids/2"] == "Bearer tok"


def test_names_of_subjects_are_encoded_and_references_followed_once() -> None:
    schemas: dict[str, Any] = {
        "/subjects/a%2Fb%20c/versions/latest": {
            "id": 3,
            "schema": '"x"',
            "references": [
                {"name": "m", "subject": "m", "version": 1},
                {"name": "l", "subject": "l", "version": 2},
            ],
        },
        "/subjects/m/versions/1": {
            "id": 2,
            "schema": '"m"',
            "references": [{"name": "l", "subject": "l", "version": 2}],
        },
        "/subjects/l/versions/2": {"id": 1, "schema": '"l"', "schemaType": "JSON"},
    }
    with http_server(lambda asked: answer(schemas[asked.path])) as server:
        asking = client(f"{server.url}/")
        schema = asking.latest_schema("a/b c")
        assert (schema.id, schema.kind, schema.text) == (3, "AVRO", '"x"')
        others = [(name, other.id) for name, other in asking.referenced_schemas(schema)]
        assert others == [("l", 1), ("m", 2)]
        schemas["/subjects/m/versions/1"]["references"][0]["version"] = 3
        schemas["/subjects/l/versions/3"] = schemas["/subjects/l/versions/2"]
        with pytest.raises(RegistryError, match="'l' version mismatch of 3 and 2"):
            list(asking.referenced_schemas(schema))


def test_what_is_not_there_is_told_at_once_and_in_the_registrys_words() -> None:
    missing = answer({"error_code": 40403, "message": "Schema not found"}, 404)
    with http_server(lambda asked: missing) as server:
        text = "schema 9 not found by registry: Schema not found"
        with pytest.raises(UnknownSchemaError, match=text):
            client(server.url).schema_by_id(9)
        assert len(server.asked) == 1
    page = http_server(lambda asked: Reply(200, b"<html>"))
    with page as server, pytest.raises(RegistryError, match="no JSON; expected the URL of a sch"):
        client(server.url).probe()
    with http_server(lambda asked: answer([])) as server:
        with pytest.raises(RegistryError, match="answers with no schema"):
            client(server.url).schema_by_id(1)
        assert client(server.url).probe() == "the registry answers"


def test_a_registry_that_is_away_is_asked_three_times_and_then_left_alone_for_a_while() -> None:
    now = 0.0
    pauses: list[float] = []
    status = 503

    def sleep(seconds: float) -> None:
        nonlocal now
        pauses.append(seconds)
        now += seconds

    with http_server(lambda asked: answer({"schema": '"string"'}, status)) as server:
        asking = client(server.url, now=lambda: now, sleep=sleep)
        for _ in range(5):
            with pytest.raises(RegistryError, match="schema 1 not found by registry: status 503"):
                asking.schema_by_id(1)
        assert (len(server.asked), pauses) == (3, [0.1, 0.4])
        status = 200
        now += 2
        assert asking.schema_by_id(1).text == '"string"'
    nowhere = client(f"http://user:secret@127.0.0.1:{free_port()}", sleep=pauses.append)
    with pytest.raises(RegistryError, match="the registry does not answer: ") as caught:
        nowhere.probe()
    assert "secret" not in str(caught.value)
