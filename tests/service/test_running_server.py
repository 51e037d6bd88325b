"""The HTTP server of a stream that runs: one process, asked from its start to its end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.faults.program import program

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

CONFIG = """\
http: { address: "127.0.0.1:0" }
input: { label: cars, generate: { mapping: root.id = count("n"), interval: 50ms } }
pipeline: { processors: [ { label: same, mapping: root = this } ] }
output: { file: { path: %s } }
spark: { master: "local[1]" }
metrics: { prometheus: { file_output_path: %s } }
shutdown_delay: 5s
"""


def ask(url: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def connected(url: str) -> list[bool]:
    found: dict[str, Any] = json.loads(ask(f"{url}/ready")[1])
    return [status["connected"] for status in found["statuses"]]


def received(metrics: bytes) -> float:
    found = re.search(rb'^input_received\{label="cars",path="root.input"\} (\S+)$', metrics, re.M)
    assert found is not None
    return float(found[1])


@pytest.mark.smoke
def test_it_answers_from_before_spark_starts_until_the_delay_is_over(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(CONFIG % (tmp_path / "out", tmp_path / "m.prom"))
    with program(config, tmp_path / "c") as running:

        def urls() -> list[str]:
            return [line["url"] for line in running.lines() if "url" in line]

        running.wait_for(lambda: bool(urls()), 120, "for the server")
        [url] = urls()
        assert ask(f"{url}/ping") == (200, b"pong")
        assert ask(f"{url}/ready")[0] == 503 and connected(url) == [False, False]
        port_is_taken(config, tmp_path, url)
        running.wait_for(lambda: ask(f"{url}/ready")[0] == 200, 240, "to be ready")
        assert connected(url) == [True, True]
        before = received(ask(f"{url}/metrics")[1])
        until = time.monotonic() + 120
        while received(ask(f"{url}/benthos/stats")[1]) <= before:
            assert time.monotonic() < until, "the figures stand still"
            time.sleep(0.1)
        running.process.terminate()
        delayed = "Shutdown delay is in effect for 5s"
        running.wait_for(lambda: delayed in running.messages(), 60, "for the delay")
        # Whoever sends it messages by that sends them elsewhere, while its server still answers.
        status, body = ask(f"{url}/ready")
        assert (status, json.loads(body)["error"]) == (503, "the stream is stopping")
        # A last look, while the stream waits; a second signal ends the waiting.
        last = received(ask(f"{url}/metrics")[1])
        running.process.terminate()
        assert running.finish(240) == 0
    assert last >= before
    written = (tmp_path / "m.prom").read_bytes()
    assert received(written) >= last
    place = rb'\{label="same",path="root.pipeline.processors.0"\}'
    for name in (b"processor_sent", b"processor_latency_ns_count"):
        found = re.search(rb"^" + name + place + rb" (\S+)$", written, re.M)
        assert found is not None and float(found[1]) == received(written)
    assert b'output_sent{label="",path="root.output"} %.1f' % received(written) in written
    with pytest.raises(urllib.error.URLError):
        ask(f"{url}/ping")


def port_is_taken(config: Path, tmp_path: Path, url: str) -> None:
    """A second program on the same port ends before it starts Spark."""
    address = url.removeprefix("http://")
    command = [sys.executable, "-m", "streamer.cli.main", "-c", str(config)]
    more = ["--checkpoint", str(tmp_path / "second"), "-s", f"http.address={address}"]
    ran = subprocess.run([*command, *more], capture_output=True, timeout=240)
    assert ran.returncode == 1
    assert ran.stderr.decode() == (
        f"error: cannot listen on {address}: address already in use; "
        "set http.address to another one, or http.enabled to false\n"
    )
    assert not (tmp_path / "second").exists()
