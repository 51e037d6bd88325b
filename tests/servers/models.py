"""A stand-in for servers of models, in this process: OpenAI's API, Cohere's and Ollama's.

It checks the shape of each request as the APIs do, and answers by rules that a test can foresee: a
vector is made of the text's bytes, an answer repeats what was asked.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from streamer.connectors.http_client.multipart import parse_content_type, read_multipart
from tests.servers.http import Asked, Reply, Server, http_server

KEY = "the-key"


@dataclass
class Models:
    """A running server, and what it was asked."""

    server: Server
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    """What is answered before anything else, in order."""
    calls: list[dict[str, Any]] = field(default_factory=list)
    """Tools that a model calls before it answers, one for each request: `name`, `arguments`."""
    missing: set[str] = field(default_factory=set)
    """Models that Ollama has to get first."""

    @property
    def url(self) -> str:
        return self.server.url


def vector_of(text: str) -> list[float]:
    """The embedding of a text."""
    return [len(text) / 2, *(float(byte) for byte in text.encode()[:2])]


@contextmanager
def models_server(port: int = 0) -> Iterator[Models]:
    """Run one, on a port of its own if none is given."""
    models: Models

    def answers(asked: Asked) -> Reply:
        if models.replies:
            return models.replies.pop(0)
        handler = HANDLERS.get((asked.method, asked.path))
        if handler is None:
            return _refusal(404, f"no such path: {asked.method} {asked.path}")
        if not asked.path.startswith("/api/") and asked.headers.get("authorization") != (
            f"Bearer {KEY}"
        ):
            return _refusal(401, "invalid api key")
        if asked.method == "GET":
            return _reply({})
        document = _read_request(asked)
        models.requests.append((asked.path, document))
        try:
            return handler(models, document)
        except (AssertionError, KeyError) as error:
            return _refusal(400, f"bad request: {error!r}")

    with http_server(answers, port=port) as server:
        models = Models(server)
        yield models


def _read_request(asked: Asked) -> dict[str, Any]:
    """Return the document of a request; of a form the fields, and of its file name and size."""
    kind, parameters = parse_content_type(asked.headers["content-type"])
    if kind != "multipart/form-data":
        return json.loads(asked.body)
    document: dict[str, Any] = {}
    for headers, body in read_multipart(asked.body, parameters["boundary"]):
        field = parse_content_type(dict(headers)["Content-Disposition"])[1]
        if "filename" in field:
            document[field["name"]] = {"filename": field["filename"], "bytes": body.hex()}
        else:
            document[field["name"]] = body.decode()
    return document


def _reply(document: Any, status: int = 200) -> Reply:
    return Reply(status, json.dumps(document).encode(), {"Content-Type": "application/json"})


def _refusal(status: int, text: str) -> Reply:
    return _reply({"error": {"message": text}}, status)


def _check_chat(document: dict[str, Any]) -> str:
    """Check what all three want of a chat; return what was asked last."""
    assert isinstance(document["model"], str) and document["messages"]
    for message in document["messages"]:
        assert message["role"] in ("system", "user", "assistant", "tool"), message
    for tool in document.get("tools", []):
        assert tool["type"] == "function"
        assert tool["function"]["parameters"]["type"] == "object"
        assert set(tool["function"]) == {"name", "description", "parameters"}
    last = document["messages"][-1]
    content = last["content"]
    return content if isinstance(content, str) else content[0].get("text", content[0]["type"])


def _openai_chat(models: Models, document: dict[str, Any]) -> Reply:
    assert set(document) <= {
        *("model", "messages", "max_tokens", "temperature", "top_p", "frequency_penalty", "stop"),
        *("presence_penalty", "seed", "user", "tools", "parallel_tool_calls", "response_format"),
    }, set(document)
    said = _check_chat(document)
    if document.get("response_format", {}).get("type") == "json_schema":
        schema = document["response_format"]["json_schema"]
        assert schema["strict"] is True and schema["name"] and schema["schema"]["type"]
    message: dict[str, Any] = {"role": "assistant", "content": f"re: {said}"}
    if models.calls:
        call = models.calls.pop(0)
        function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
        message = {"role": "assistant", "content": None}
        message["tool_calls"] = [{"id": "call-1", "type": "function", "function": function}]
    for before, result in zip(document["messages"], document["messages"][1:], strict=False):
        if result["role"] == "tool":
            assert result["tool_call_id"] == before["tool_calls"][0]["id"]
    return _reply({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


def _openai_embeddings(models: Models, document: dict[str, Any]) -> Reply:
    assert set(document) <= {"model", "input", "dimensions"}
    assert 0 < len(document["input"]) <= 2048
    assert all(document["input"]), "empty text"
    data = [
        {"index": number, "embedding": vector_of(text)}
        for number, text in enumerate(document["input"])
    ]
    return _reply({"object": "list", "data": data[::-1]})


PNG = b"\x89PNG\r\n\x1a\n"
"""How the images begin that are made of a prompt."""


def _openai_image(models: Models, document: dict[str, Any]) -> Reply:
    assert set(document) <= {"model", "prompt", "quality", "size", "style", "response_format"}
    # The newest models refuse a field that the others need.
    is_new = document["model"].startswith("gpt-image")
    assert ("response_format" in document) is not is_new, document
    assert 0 < len(document["prompt"]) <= 4_000, "prompt"
    image = base64.b64encode(PNG + document["prompt"].encode()).decode()
    return _reply({"created": 1, "data": [{"b64_json": image}]})


def _openai_speech(models: Models, document: dict[str, Any]) -> Reply:
    assert set(document) <= {"model", "input", "voice", "response_format"}
    assert document["voice"] and 0 < len(document["input"]) <= 4_096, "input"
    return Reply(200, b"ID3" + document["input"].encode(), {"Content-Type": "audio/mpeg"})


def _openai_transcript(models: Models, document: dict[str, Any]) -> Reply:
    assert set(document) <= {"model", "file", "language", "prompt"} and document["model"]
    recording = bytes.fromhex(document["file"]["bytes"])
    return _reply({"text": f"heard {document['file']['filename']} of {len(recording)} bytes"})


def _openai_translation(models: Models, document: dict[str, Any]) -> Reply:
    assert "language" not in document
    return _openai_transcript(models, document)


def _cohere_chat(models: Models, document: dict[str, Any]) -> Reply:
    assert set(document) <= {
        *("model", "messages", "max_tokens", "temperature", "p", "frequency_penalty", "stream"),
        *("presence_penalty", "seed", "stop_sequences", "tools", "response_format"),
    }, set(document)
    said = _check_chat(document)
    assert document["response_format"]["type"] in ("text", "json_object")
    message: dict[str, Any] = {"role": "assistant"}
    if models.calls and "tools" in document:
        call = models.calls.pop(0)
        arguments = call["arguments"] and json.dumps(call["arguments"])
        function = {"name": call["name"], "arguments": arguments}
        message |= {"tool_plan": "I will look."}
        message["tool_calls"] = [{"id": "call-1", "type": "function", "function": function}]
    else:
        parts = [{"type": "text", "text": "re: "}, {"type": "text", "text": said}]
        message["content"] = [{"type": "thinking", "thinking": "hm"}, *parts]
    return _reply({"id": "1", "message": message})


def _cohere_embed(models: Models, document: dict[str, Any]) -> Reply:
    assert set(document) <= {"model", "texts", "input_type", "embedding_types", "output_dimension"}
    assert document["embedding_types"] == ["float"] and 0 < len(document["texts"]) <= 96
    assert all(document["texts"]), "empty text"
    return _reply({"embeddings": {"float": [vector_of(text) for text in document["texts"]]}})


def _cohere_rerank(models: Models, document: dict[str, Any]) -> Reply:
    assert set(document) <= {"model", "query", "documents", "top_n", "max_tokens_per_doc"}
    lengths = [len(text) for text in document["documents"]]
    best = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    results = [{"index": place, "relevance_score": lengths[place] / 100} for place in best]
    return _reply({"results": results[: document.get("top_n")]})


def _ollama_chat(models: Models, document: dict[str, Any]) -> Reply:
    assert set(document) <= {"model", "messages", "stream", "format", "options", "tools"}
    assert document["stream"] is False
    if document["model"] in models.missing:
        return _reply({"error": f"model {document['model']!r} not found, try pulling it"}, 404)
    message: dict[str, Any] = {"role": "assistant", "content": f"re: {_check_chat(document)}"}
    if models.calls:
        message = {"role": "assistant", "content": ""}
        message["tool_calls"] = [{"function": models.calls.pop(0)}]
    return _reply({"model": document["model"], "message": message, "done": True})


def _ollama_embeddings(models: Models, document: dict[str, Any]) -> Reply:
    assert set(document) <= {"model", "prompt", "options"}
    return _reply({"embedding": vector_of(document["prompt"]) if document["prompt"] else []})


def _ollama_pull(models: Models, document: dict[str, Any]) -> Reply:
    assert document["stream"] is False
    models.missing.discard(document["model"])
    return _reply({"status": "success"})


Handler = Callable[[Models, dict[str, Any]], Reply]

HANDLERS: dict[tuple[str, str], Handler] = {
    ("GET", "/v1/models"): lambda models, document: _reply({"data": []}),
    ("GET", "/api/tags"): lambda models, document: _reply({"models": []}),
    ("POST", "/v1/chat/completions"): _openai_chat,
    ("POST", "/v1/embeddings"): _openai_embeddings,
    ("POST", "/v1/images/generations"): _openai_image,
    ("POST", "/v1/audio/speech"): _openai_speech,
    ("POST", "/v1/audio/transcriptions"): _openai_transcript,
    ("POST", "/v1/audio/translations"): _openai_translation,
    ("POST", "/v2/chat"): _cohere_chat,
    ("POST", "/v2/embed"): _cohere_embed,
    ("POST", "/v2/rerank"): _cohere_rerank,
    ("POST", "/api/chat"): _ollama_chat,
    ("POST", "/api/embeddings"): _ollama_embeddings,
    ("POST", "/api/pull"): _ollama_pull,
}
