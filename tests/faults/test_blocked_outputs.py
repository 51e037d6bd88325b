"""Streams whose outputs nobody takes hold no core: others go on, however many there are."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.faults.service import Service, service
from tests.servers import free_port
from tests.servers.http import Asked, Reply, http_server

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

HEALTHY = """\
input: { generate: { mapping: 'root.id = counter()', interval: 100ms } }
output: { file: { path: %s } }
"""
BLOCKED = """\
input: { generate: { mapping: 'root.id = counter()', interval: 200ms } }
output: { %s }
"""
MEASURED_S = 12.0
STREAMS, A_SECOND = 5, 10


@contextmanager
def silent_server() -> Iterator[str]:
    """A server that accepts connections and never answers; yields its URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    taken: list[socket.socket] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                taken.append(listener.accept()[0])

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
        for one in taken:
            one.close()


def lines(directory: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in directory.glob("*.jsonl"))


def measured(directory: Path, seconds: float = MEASURED_S) -> float:
    """Return how many messages a second come out of the streams that are well."""
    before, began = lines(directory), time.monotonic()
    time.sleep(seconds)
    return (lines(directory) - before) / (time.monotonic() - began)


def reasons(running: Service) -> dict[str, str]:
    return {name: str(one.get("reason", "")) for name, one in running.streams().items()}


def test_streams_with_blocked_outputs_leave_the_cores_to_the_others(tmp_path: Path) -> None:
    state = {"down": True}
    taken: list[int] = []

    def answers(asked: Asked) -> Reply:
        if state["down"]:
            return Reply(503)
        taken.append(json.loads(asked.body)["id"])
        return Reply(200)

    out = tmp_path / "out"
    out.mkdir()
    with ExitStack() as stack:
        server = stack.enter_context(http_server(answers))
        silent = stack.enter_context(silent_server())
        refusing = f"127.0.0.1:{free_port()}"
        blocked = {
            "unavailable": f"http_client: {{ url: '{server.url}', max_in_flight: 1 }}",
            "refusing": f"http_client: {{ url: 'http://{refusing}' }}",
            "silent": f"http_client: {{ url: '{silent}' }}",
            "unconnected": f"websocket: {{ url: 'ws://{refusing}' }}",
            "one-of-two": (
                "broker: { outputs: [ { drop: {} }, "
                f"{{ http_client: {{ url: 'http://{refusing}' }} }} ] }}"
            ),
        }
        running = stack.enter_context(service(tmp_path / "s"))
        running.wait_running()
        for number in range(STREAMS):
            config = HEALTHY % (out / f"{number}.jsonl")
            answer = running.ask("POST", f"/streams/good{number}", config)
            assert answer.status_code == 200, answer.text
        running.wait_for(lambda: len([*out.glob("*.jsonl")]) == STREAMS, 180, "for all to run")
        # What they have made while they started is out.
        running.wait_for(lambda: measured(out, 5.0) < 1.2 * STREAMS * A_SECOND, 180, "to keep up")
        alone = measured(out)
        for name, output in blocked.items():
            answer = running.ask("POST", f"/streams/{name}", BLOCKED % output)
            assert answer.status_code == 200, answer.text
        running.wait_for(
            lambda: all(
                text.startswith("Output blocked: ")
                for name, text in reasons(running).items()
                if name in blocked
            ),
            240,
            "for all to say what they wait for",
        )
        beside = measured(out)
        print(f"{alone:.1f} messages a second alone, {beside:.1f} beside blocked streams")
        assert beside > 0.8 * alone, (beside, alone)
        state["down"] = False
        running.wait_for(lambda: len(taken) > 20, 60, "for what has waited")
        newest = max(taken)
        # Nothing is lost, none comes twice, and they keep their order.
        assert taken[: newest // 2] == list(range(1, newest // 2 + 1))
