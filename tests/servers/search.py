"""A stand-in for a search engine: the bulk API of Elasticsearch over dictionaries.

It judges each action by itself, as Elasticsearch does: versions, conflicts, documents that are not
there, fields that do not fit the mapping.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.servers.http import Asked, Reply, http_server


@dataclass
class SearchEngine:
    """What it holds, and how it behaves.

    Attributes:
        url: where it listens.
        documents: by index and id.
        heads: the actions that it was asked for, in order.
        requests: the number of actions of each bulk request.
        full: so many actions are refused with 429 next.
        answers: answers to give before any work: status and body.
        credentials: what the header Authorization must be.
        limit: the largest body.
        read_only: indices that refuse everything.
        keeps: whether connections are kept.
    """

    url: str = ""
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    heads: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    full: int = 0
    answers: list[Reply] = field(default_factory=list)
    credentials: str = ""
    limit: int = 100 << 20
    read_only: set[str] = field(default_factory=set)
    keeps: bool = True

    def answer(self, asked: Asked) -> Reply:
        reply = self._answer(asked)
        return reply if self.keeps else replace(reply, headers={"Connection": "close"})

    def _answer(self, asked: Asked) -> Reply:
        if self.answers:
            return self.answers.pop(0)
        if self.credentials and asked.headers.get("authorization") != self.credentials:
            return _reply(401, {"error": {"type": "security_exception", "reason": "who is it?"}})
        if asked.path == "/":
            return _reply(200, {"version": {"number": "8.0.0"}})
        assert asked.path.startswith("/_bulk?filter_path=")
        body = asked.body
        if len(body) > self.limit:
            return Reply(413, b"Request Entity Too Large")
        if asked.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        return self._run(body)

    def _run(self, body: bytes) -> Reply:
        assert body.endswith(b"\n")
        lines = iter(body[:-1].split(b"\n"))
        actions = []
        for line in lines:
            [(action, head)] = json.loads(line).items()
            text = None if action == "delete" else next(lines)
            if action == "update" and not set(json.loads(text or b"")) & {"doc", "script"}:
                return _reply(400, {"error": {"type": "x_content_parse_exception"}})
            actions.append((action, head, text))
        self.requests.append(len(actions))
        items = [{action: self._act(action, head, text)} for action, head, text in actions]
        errors = any("error" in next(iter(item.values())) for item in items)
        return _reply(200, {"errors": errors, "items": items})

    def _act(self, action: str, head: dict[str, Any], text: bytes | None) -> dict[str, Any]:
        self.heads.append((action, head))
        index = self.documents.setdefault(head["_index"], {})
        key = head.get("_id") or f"made-{len(self.heads)}"
        if self.full:
            self.full -= 1
            return _failure(429, "es_rejected_execution_exception", "the queue is full")
        if head["_index"] in self.read_only:
            return _failure(403, "cluster_block_exception", "index read-only")
        if action == "delete":
            return {"status": 200 if index.pop(key, None) is not None else 404}
        try:
            document = json.loads(text or b"")
        except ValueError:
            return _failure(400, "mapper_parsing_exception", "failed to parse")
        if action == "update":
            return self._update(index, key, document)
        if action == "create" and key in index:
            return _failure(409, "version_conflict_engine_exception", "document already exists")
        if not isinstance(document.get("n", 0), int):
            cause = {"type": "number_format_exception", "reason": 'For input string: "x"'}
            return _failure(400, "mapper_parsing_exception", "failed to parse field [n]", cause)
        status = 200 if key in index else 201
        index[key] = document
        return {"status": status}

    def _update(self, index: dict[str, Any], key: str, update: Any) -> dict[str, Any]:
        if key not in index:
            made = update.get("upsert") or (update.get("doc_as_upsert") and update["doc"])
            if not made:
                return _failure(404, "document_missing_exception", f"[{key}]: document missing")
            index[key] = made
            return {"status": 201}
        index[key] = index[key] | update["doc"]
        return {"status": 200}


def _failure(status: int, kind: str, reason: str, cause: Any = None) -> dict[str, Any]:
    error = {"type": kind, "reason": reason}
    return {"status": status, "error": error | ({"caused_by": cause} if cause else {})}


def _reply(status: int, document: Any) -> Reply:
    return Reply(status, json.dumps(document).encode(), {"Content-Type": "application/json"})


def basic(user: str, password: str) -> str:
    """Return the header of a password."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


@contextmanager
def search_engine(port: int = 0, **settings: Any) -> Iterator[SearchEngine]:
    """Run one."""
    engine = SearchEngine(**settings)
    with http_server(engine.answer, port=port) as server:
        engine.url = server.url
        yield engine
