"""What was sent over HTTP and answered with 200 is not lost, whatever happens to the program."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest

from tests.faults.program import program
from tests.servers import free_port

pytestmark = pytest.mark.slow

INPUT = """
http: {{ address: "127.0.0.1:{port}" }}
input:
  http_server: {{ path: "/{{kind}}/post", timeout: 120s }}
"""
FILE = """
output:
  file: { path: OUT }
  processors:
    - mapping: root = @kind + ":" + content().string()
"""
ANSWERED = """
pipeline:
  processors:
    - mapping: root = @kind + ":" + content().string()
output:
  broker:
    outputs:
      - file: { path: OUT }
      - sync_response: {}
        processors:
          - mapping: root = content().uppercase()
"""
LATER = "spark: { trigger_interval: 1h }\n"


def post(port: int, path: str, body: bytes) -> tuple[int, bytes]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, method="POST")
    with urllib.request.urlopen(request, timeout=150) as answer:
        return answer.status, answer.read()


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines() if path.exists() else []


@pytest.mark.smoke
def test_what_was_taken_survives_a_kill_and_a_request_hears_what_the_pipeline_answers(tmp_path):
    port, out = free_port(), tmp_path / "out"
    config = tmp_path / "http.yaml"
    config.write_text(INPUT.format(port=port) + FILE.replace("OUT", str(out)) + LATER)
    sent = [b"%d" % number for number in range(50)]
    with program(config, tmp_path / "c") as running:
        running.wait_running()
        # No micro-batch comes within the hour: what is answered is on disk and nowhere else.
        for body in sent:
            assert post(port, "/a/post", body) == (200, b"")
        running.kill()
    assert lines_of(out) == []
    config.write_text(INPUT.format(port=port) + ANSWERED.replace("OUT", str(out)))
    with program(config, tmp_path / "c") as running:
        expected = [b"a:" + body for body in sent]
        running.wait_for(lambda: lines_of(out) == expected, 240, "what was sent before")
        assert post(port, "/b/post", b"hello") == (200, b"B:HELLO")
        assert lines_of(out) == [*expected, b"b:hello"]
        assert running.stop() == 0
