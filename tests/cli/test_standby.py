"""A service that stands by: what it answers, when it takes over, and who is refused."""

from __future__ import annotations

import base64
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from streamer.cli.standby import Standby, open_lock, resolve_public_url, take_lock
from streamer.config import parse_config
from streamer.core.errors import StreamerError
from streamer.service.fleet.deployment_store import DeploymentStore, RevisionDraft
from streamer.service.fleet.errors import RefusedError

ROOT = "http: { address: '127.0.0.1:0' }\n"


class Waiting:
    """A service that stands by, in a thread."""

    def __init__(self, directory: Path, root: str = ROOT) -> None:
        self.lock = open_lock(directory)
        self.lines: list[tuple[str, dict[str, Any]]] = []
        self.asked = threading.Event()
        self.has: list[bool] = []
        self.standby = Standby(parse_config(root, "root.yaml"), self.lock, self._take)
        self.thread = threading.Thread(
            target=lambda: self.has.append(self.standby.wait(self.asked)), daemon=True
        )
        self.thread.start()

    def _take(self, level: str, text: str, fields: Any) -> None:
        self.lines.append((text, dict(fields)))

    def said(self, text: str) -> dict[str, Any] | None:
        return next((fields for line, fields in list(self.lines) if line == text), None)

    def until(self, what: Callable[[], Any]) -> None:
        for _ in range(500):
            if what():
                return
            self.thread.join(0.02)
        raise AssertionError(self.lines)

    def client(self) -> httpx2.Client:
        self.until(lambda: self.said("Standing by"))
        listening = self.said("Listening for HTTP requests")
        assert listening is not None
        return httpx2.Client(base_url=listening["url"], timeout=10)


@contextmanager
def waiting(directory: Path, root: str = ROOT) -> Iterator[Waiting]:
    found = Waiting(directory, root)
    try:
        yield found
    finally:
        found.asked.set()
        found.thread.join(5)
        found.standby.close()
        found.lock.close()


def test_it_answers_who_is_active_and_takes_over_when_that_one_ends(tmp_path: Path) -> None:
    active = open_lock(tmp_path)
    take_lock(active, str(tmp_path))
    active.sign("http://there:4195")
    with waiting(tmp_path) as second, second.client() as client:
        assert client.get("/ping").text == "pong"
        assert client.get("/version").status_code == 200
        assert client.get("/metrics").status_code == 200
        for method, path in (("GET", "/ready"), ("GET", "/benthos/ready"), ("POST", "/streams/a")):
            refused = client.request(method, path)
            assert refused.status_code == 503
            assert refused.text == f"standby; active is {active.holder()}\n"
            assert refused.text.endswith(" at http://there:4195\n")
            assert int(refused.headers["Retry-After"]) > 0
        active.close()
        second.until(lambda: second.has)
        assert second.has == [True]
        # Until the service listens itself.
        assert client.get("/ready").text == (
            "standby; active is nobody yet: this one is taking over\n"
        )
        second.standby.close()
        with pytest.raises(httpx2.TransportError):
            client.get("/ping")


def test_one_after_the_other_takes_over(tmp_path: Path) -> None:
    first = open_lock(tmp_path)
    take_lock(first, str(tmp_path))
    with waiting(tmp_path) as one, waiting(tmp_path) as two:
        for each in (one, two):
            each.until(partial(each.said, "Standing by"))
        first.close()
        one.until(lambda: one.has or two.has)
        assert len(one.has + two.has) == 1
        active, other = (one, two) if one.has else (two, one)
        active.lock.close()
        other.until(lambda: other.has)
        active.lock = open_lock(tmp_path)


def test_alone_it_is_active_at_once(tmp_path: Path) -> None:
    with waiting(tmp_path) as alone:
        alone.until(lambda: alone.has)
        assert alone.has == [True] and alone.lines == []


def test_it_can_be_told_to_stop_while_it_waits(tmp_path: Path) -> None:
    with closing(open_lock(tmp_path)) as active:
        take_lock(active, str(tmp_path))
        with waiting(tmp_path) as second:
            second.until(lambda: second.said("Standing by"))
            second.asked.set()
            second.until(lambda: second.has)
            assert second.has == [False]


def test_it_asks_who_one_is(tmp_path: Path) -> None:
    digest = base64.b64encode(hashlib.sha256(b"secret").digest()).decode()
    tokens = f"bearer_auth: {{ enabled: true, tokens: [ {{ name: ci, token_hash: {digest} }} ] }}"
    root = f"http: {{ address: '127.0.0.1:0', {tokens} }}\n"
    with closing(open_lock(tmp_path)) as active:
        take_lock(active, str(tmp_path))
        with waiting(tmp_path, root) as second, second.client() as client:
            assert client.get("/ping").status_code == 401
            known = {"Authorization": "Bearer secret"}
            assert client.get("/ping", headers=known).status_code == 200


def test_a_second_one_that_does_not_stand_by_is_told_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamer.cli.standby._LOCK_TIMEOUT_S", 0.0)
    with closing(open_lock(tmp_path)) as active, closing(open_lock(tmp_path)) as second:
        take_lock(active, str(tmp_path))
        active.sign("http://there:4195")
        with pytest.raises(StreamerError) as caught:
            take_lock(second, str(tmp_path))
    text = str(caught.value)
    assert f":{os.getpid()} at http://there:4195" in text and "\n" not in text
    assert "--standby" in text and "--checkpoints" in text


def test_an_address_that_stands_for_all_is_told_with_the_name_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "web-1")
    assert resolve_public_url("http://0.0.0.0:4195") == "http://web-1:4195"
    assert resolve_public_url("https://[::]:1") == "https://web-1:1"
    assert resolve_public_url("http://10.0.0.7:4195") == "http://10.0.0.7:4195"


@pytest.mark.parametrize("shared", [True, False])
def test_whoever_was_taken_over_from_changes_nothing_any_more(shared: bool, tmp_path: Path) -> None:
    draft = RevisionDraft("input: {}", "me", "api", 1)
    former = DeploymentStore(tmp_path / "store.db", shared)
    former.deploy("a", draft)
    assert not former.is_superseded()
    successor = DeploymentStore(tmp_path / "store.db", shared)
    assert former.is_superseded() and not successor.is_superseded()
    for change in (
        lambda: former.deploy("a", draft),
        lambda: former.set_desired_state("a", "paused"),
        lambda: former.remove("a"),
    ):
        with pytest.raises(RefusedError, match="another service has taken over"):
            change()
    assert successor.deploy("a", draft).number == 2
    assert [one.number for one in former.revisions("a")] == [2, 1]
    former.close()
    successor.close()


def test_a_store_of_a_service_that_stood_alone_is_taken_over(tmp_path: Path) -> None:
    alone = DeploymentStore(tmp_path / "store.db")
    alone.deploy("a", RevisionDraft("input: {}", "me", "api", 1))
    alone.close()
    shared = DeploymentStore(tmp_path / "store.db", shared=True)
    assert list(shared.streams()) == ["a"]
    shared.close()
