"""States of earlier micro-batches by API: micro-batches, windows, differences, and refusals."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamer.service.run import earlier_states
from streamer.spark.checkpoint.checkpoint import CheckpointError
from tests.service.api.asking import Asking, asking
from tests.service.console.showing import stage

CONFIG = """
input: { label: here, generate: { interval: 1s, mapping: 'root = {"at": now()}' } }
buffer:
  tumbling_window: { timestamp_mapping: root = this.at, key_mapping: root = this.k, size: 10s }
output:
  http_client: { url: 'http://ada:url-password@localhost:1/' }
"""
PATH = "/streams/visits/states"
TIMES = [(3, 1_700_000_000_000_000_000), (4, 1_700_000_001_000_000_000)]


def window(key: str, messages: int) -> dict[str, Any]:
    names = ("end", "bytes", "closes", "closes_by", "closes_idle", "messages_missing", "side")
    start = "2026-11-21T10:00:00Z"
    return {
        "buffer": "",
        "key": key,
        "start": start,
        "messages": messages,
        **dict.fromkeys(names),
    }


STATES = {
    3: [window("a", 1), window("b", 1), window("url-password", 1)],
    4: [window("a", 2), window("c", 1), window("url-password", 1)],
}


def list_pretended(plan: Any, stores: int, key: str | None, limit: int) -> list[dict[str, Any]]:
    return [one for one in STATES[stores] if key in (None, one["key"])][:limit]


class OpenState:
    """Stands for Spark's reader of states."""

    def __init__(self, session: Any, checkpoint: Any, plan: Any, batch: int) -> None:
        self.batch = batch
        self.reads.append(batch)

    reads: list[int] = []  # noqa: RUF012

    def __enter__(self) -> int:
        return self.batch

    def __exit__(self, *_: object) -> None: ...


def find_pretended(checkpoint: Any, batch: int) -> int:
    if batch not in STATES:
        raise CheckpointError(f"micro-batch {batch} is not in the checkpoint {checkpoint}")
    return batch


class PretendedCheckpoint(SimpleNamespace):
    def __str__(self) -> str:
        return "/secret/place"


@contextmanager
def pretended_states(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    """Serve a stream that has two states."""
    from streamer.spark.checkpoint import state_history

    monkeypatch.setattr(OpenState, "reads", [])
    monkeypatch.setattr(earlier_states, "list_state_windows", list_pretended)
    monkeypatch.setattr(state_history, "list_batch_times", lambda checkpoint: TIMES)
    monkeypatch.setattr(state_history, "find_batch", find_pretended)
    monkeypatch.setattr(state_history, "open_state", OpenState)
    with asking(directory, stage=stage()) as found:
        assert found.ask("POST", "/streams/visits", CONFIG).status_code == 200
        found.service.wait_for("visits", "running")
        plan = SimpleNamespace(window=object(), fingerprint={"window": "w"})
        run: Any = found.service.manager.registry.get("visits").run
        run.host = SimpleNamespace(
            session=object(),
            checkpoint=PretendedCheckpoint(identity="i"),
            current_stream=object(),
            stream=SimpleNamespace(plan=plan),
        )
        yield found


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    with pretended_states(tmp_path, monkeypatch) as found:
        yield found


def test_micro_batches_windows_and_differences_are_listed(server: Asking) -> None:
    batches = server.ask("GET", PATH).json()["micro_batches"]
    assert batches == [
        {"micro_batch": 3, "at": "2023-11-14T22:13:20Z"},
        {"micro_batch": 4, "at": "2023-11-14T22:13:21Z"},
    ]
    found = server.ask("GET", f"{PATH}/3?limit=1&offset=1").json()
    assert [one["key"] for one in found["windows"]] == ["b"]
    assert found["total"] == 3 and found["complete"] and found["micro_batch"] == 3
    [alone] = server.ask("GET", f"{PATH}/4?key=c").json()["windows"]
    assert alone["messages"] == 1
    changes = server.ask("GET", f"{PATH}/3/diff").json()
    assert (changes["from"], changes["to"], changes["total"]) == (3, 4, 3)
    assert [(one["key"], one["change"]) for one in changes["changes"]] == [
        *(("a", "changed"), ("b", "closed"), ("c", "opened"))
    ]
    assert changes["changes"][0]["fields"] == {"messages": [1, 2]}
    page = server.ask("GET", f"{PATH}/4/diff?to=3&limit=1&offset=1").json()
    assert [one["change"] for one in page["changes"]] == ["opened"]
    # A page of what was read already reads nothing.
    assert OpenState.reads == [3, 4, 4]


def test_secrets_are_no_keys(server: Asking) -> None:
    for path in (f"{PATH}/3", f"{PATH}/3/diff"):
        assert "url-password" not in server.ask("GET", path).text


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/streams/none/states", 404, "not found"),
        (f"{PATH}/9", 409, "micro-batch 9 is not in the checkpoint visits"),
        (f"{PATH}/3/diff?to=9", 409, "micro-batch 9 is not in the checkpoint visits"),
        (f"{PATH}/x", 400, "the micro-batch is 'x'; expected a number"),
        (f"{PATH}/3?limit=x", 400, "limit is 'x'"),
        (f"{PATH}/3?offset=-1", 400, "offset is '-1'"),
        (f"{PATH}/3/diff?to=x", 400, "to is 'x'"),
        (f"{PATH}/3?key={'k' * 1001}", 400, "more than 1,000 characters"),
    ],
)
def test_a_wrong_request_is_refused_with_the_reason(
    server: Asking, path: str, status: int, text: str
) -> None:
    answer = server.ask("GET", path)
    assert answer.status_code == status and text in answer.text
    assert "/secret/place" not in answer.text


def test_a_stream_that_stands_still_names_the_command(server: Asking) -> None:
    assert server.ask("POST", "/streams/visits/pause").status_code == 200
    answer = server.ask("GET", PATH)
    assert answer.status_code == 409 and "use `streamer state`" in answer.text


def test_a_page_and_a_comparison_are_bounded(
    server: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(earlier_states, "MAX_LISTED_WINDOWS", 2)
    found = server.ask("GET", f"{PATH}/3?limit=9999999").json()
    assert len(found["windows"]) == found["total"] == 2 and not found["complete"]
    answer = server.ask("GET", f"{PATH}/3/diff")
    assert answer.status_code == 409 and "more than 2 open windows: name a key" in answer.text
    assert server.ask("GET", f"{PATH}/3/diff?key=a").json()["total"] == 1
    monkeypatch.setattr(earlier_states, "MAX_STATE_BYTES", -1)
    answer = server.ask("GET", f"{PATH}/3")
    assert answer.status_code == 409 and "on a copy of the checkpoint" in answer.text


def test_one_state_is_read_at_a_time(server: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(earlier_states, "_MAX_WAIT_S", 0.05)
    reading, done = threading.Event(), threading.Event()

    def wait(*given: Any) -> list[dict[str, Any]]:
        reading.set()
        assert done.wait(20)
        return list_pretended(*given)

    monkeypatch.setattr(earlier_states, "list_state_windows", wait)
    first = threading.Thread(target=server.ask, args=("GET", f"{PATH}/3"))
    first.start()
    assert reading.wait(20)
    answer = server.ask("GET", f"{PATH}/4")
    assert answer.status_code == 409 and "another state is being read" in answer.text
    assert server.ask("GET", PATH).status_code == 200
    done.set()
    first.join(20)
    assert server.ask("GET", f"{PATH}/4").status_code == 200
