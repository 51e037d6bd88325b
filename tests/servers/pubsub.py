"""A stand-in for Google Cloud Pub/Sub: its JSON API over lists."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.servers.http import Asked, Reply, Server, http_server

_PREFIX = "/v1/projects/p/"


@dataclass
class Pubsub:
    """What it holds, and how it behaves.

    Attributes:
        topics: the messages of each, in order.
        subscriptions: the topic of each.
        waiting: for each subscription the messages that are not acknowledged, by their number.
        leased: for each subscription the numbers that are delivered and not acknowledged.
        token: what the header Authorization must be; empty for no check.
        requests: the number of messages of each request to publish.
        answers: answers that are given before any work.
    """

    topics: dict[str, list[Any]] = field(default_factory=dict)
    subscriptions: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, dict[str, Any]] = field(default_factory=dict)
    leased: dict[str, set[str]] = field(default_factory=dict)
    token: str = ""
    requests: list[int] = field(default_factory=list)
    answers: list[Reply] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    server: Server | None = None

    @property
    def url(self) -> str:
        assert self.server is not None
        return self.server.url

    def subscribe(self, name: str, topic: str) -> None:
        self.topics.setdefault(topic, [])
        self.subscriptions[name] = topic
        self.waiting[name], self.leased[name] = {}, set()

    def answer(self, asked: Asked) -> Reply:
        with self.lock:
            if self.answers:
                return self.answers.pop(0)
            if self.token and asked.headers.get("authorization") != f"Bearer {self.token}":
                return _error(401, "UNAUTHENTICATED", "who is it?")
            kind, _, rest = asked.path.removeprefix(_PREFIX).partition("/")
            name, _, verb = rest.partition(":")
            document = json.loads(asked.body or b"{}")
            if kind == "topics":
                return self._topic(name, verb, document)
            if asked.method == "PUT":
                if name in self.subscriptions:
                    return _error(409, "ALREADY_EXISTS", name)
                self.subscribe(name, document["topic"].rpartition("/")[2])
            if name not in self.subscriptions:
                return _error(404, "NOT_FOUND", f"no subscription {name}")
            return getattr(self, f"_{verb or 'get'}")(name, document)  # type: ignore[no-any-return]

    def _topic(self, name: str, verb: str, document: Any) -> Reply:
        if name not in self.topics:
            return _error(404, "NOT_FOUND", f"no topic {name}")
        if verb == "publish":
            messages = document["messages"]
            self.requests.append(len(messages))
            if any(not one["data"] and not one["attributes"] for one in messages):
                return _error(400, "INVALID_ARGUMENT", "a message is empty")
            for one in messages:
                assert base64.b64decode(one["data"], validate=True) is not None
                number = str(len(self.topics[name]))
                one |= {"messageId": number, "publishTime": "2026-01-02T03:04:05.678Z"}
                self.topics[name].append(one)
                for subscription, topic in self.subscriptions.items():
                    if topic == name:
                        self.waiting[subscription][number] = one
            return _reply({"messageIds": [one["messageId"] for one in messages]})
        return _reply({"name": name})

    def _get(self, name: str, document: Any) -> Reply:
        return _reply({"name": name})

    def _pull(self, name: str, document: Any) -> Reply:
        free = [key for key in self.waiting[name] if key not in self.leased[name]]
        taken = free[: document["maxMessages"]]
        self.leased[name].update(taken)
        messages = [{"ackId": key, "message": self.waiting[name][key]} for key in taken]
        return _reply({"receivedMessages": messages} if messages else {})

    def _acknowledge(self, name: str, document: Any) -> Reply:
        for key in document["ackIds"]:
            self.waiting[name].pop(key, None)
            self.leased[name].discard(key)
        return _reply({})


def _reply(document: Any) -> Reply:
    return Reply(200, json.dumps(document).encode(), {"Connection": "close"})


def _error(status: int, code: str, message: str) -> Reply:
    return Reply(status, json.dumps({"error": {"status": code, "message": message}}).encode())


@contextmanager
def pubsub_server(pubsub: Pubsub | None = None, port: int = 0) -> Iterator[Pubsub]:
    """Run one, with what it held before."""
    pubsub = pubsub or Pubsub()
    with http_server(pubsub.answer, port=port) as server:
        pubsub.server = server
        yield pubsub
