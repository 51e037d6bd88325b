"""A disk that is full: who sends is told so, nothing that was taken is lost, and it goes on."""

from __future__ import annotations

import base64
import os
import time
import urllib.error
from pathlib import Path

import pytest

from tests.faults.program import program
from tests.faults.test_http_input import lines_of, post
from tests.servers import free_port
from tests.servers.disks import small_disk

pytestmark = pytest.mark.slow

CONFIG = """
http: {{ address: "127.0.0.1:{port}" }}
input:
  http_server: {{ path: /post, timeout: 120s }}
output:
  file: {{ path: {out} }}
spark: {{ trigger_interval: 2s }}
"""
DISK = 3 << 20


def sent(port: int, body: bytes) -> int:
    """Send a body; return the status of the answer."""
    try:
        return post(port, "/post", body)[0]
    except urllib.error.HTTPError as e:
        return e.code


def test_a_full_disk_refuses_requests_and_takes_more_when_what_it_held_is_written(tmp_path: Path):
    port, out = free_port(), tmp_path / "out"
    config = tmp_path / "full.yaml"
    config.write_text(CONFIG.format(port=port, out=out))
    taken: list[bytes] = []
    with (
        small_disk(tmp_path / "c" / "spool", DISK),
        program(config, tmp_path / "c") as running,
    ):
        running.wait_running()
        for times in range(3):
            statuses = []
            until = time.monotonic() + 120
            while 503 not in statuses:
                assert time.monotonic() < until, statuses
                body = base64.b64encode(os.urandom(150_000))
                statuses.append(sent(port, body))
                if statuses[-1] == 200:
                    taken.append(body)
            assert set(statuses) == {200, 503}, (times, statuses)
            # Nobody else frees the disk: it is what was read that makes room.
            body = base64.b64encode(os.urandom(150_000))
            while (status := sent(port, body)) != 200:
                assert status == 503 and time.monotonic() < until
                time.sleep(0.1)
            taken.append(body)
        running.wait_for(lambda: len(lines_of(out)) >= len(taken), 120, "what was taken")
        assert lines_of(out) == taken
        assert running.stop() == 0
    assert any("Cannot write to the spool" in text for text in running.messages())
