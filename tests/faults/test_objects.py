"""kill -9 of a stream that reads objects: every message of every object once."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from tests.connectors.aws.test_s3 import make_bucket
from tests.faults.program import program
from tests.servers.aws import aws_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("STREAMER_KILLS", "1"))
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
CONFIG = """
input:
  aws_s3:
    {fields}
    scanner: {{ lines: {{}} }}
    delete_objects: {deletes}
buffer:
  memory: {{ limit: 50000 }}
pipeline:
  processors:
    - mapping: 'root = @s3_key + " " + content().string()'
output:
  file: {{ path: out.txt, codec: lines }}
spark:
  master: local[2]
"""


def test_each_message_of_each_object_comes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"STREAMER_SEED={SEED}")
    chance = random.Random(SEED)
    monkeypatch.chdir(tmp_path)
    config, checkpoint, out = tmp_path / "s3.yaml", tmp_path / "checkpoint", tmp_path / "out.txt"
    deletes = bool(SEED % 2)
    counts = {f"small/{number:03}": 40 for number in range(60)}
    counts |= {"large": 20_000, "small/030": 4_000, "empty": 0}
    with aws_server() as aws:
        fields = make_bucket(aws, "killed").replace(", ", "\n    ", 3)
        config.write_text(CONFIG.format(fields=fields, deletes=str(deletes).lower()))
        client = aws.client("s3")

        def put(key: str, count: int) -> None:
            body = b"".join(b"line %d\n" % line for line in range(count))
            client.put_object(Bucket="killed", Key=key, Body=body)

        for key, count in counts.items():
            put(key, count)
        for number in range(KILLS):
            before = out.stat().st_size if out.exists() else 0
            with program(config, checkpoint) as running:
                running.wait_running()
                running.wait_for(
                    lambda size=before: out.exists() and out.stat().st_size > size,  # type: ignore[misc]
                    240,
                    "for output",
                )
                time.sleep(chance.uniform(0, 1))
                running.kill()
            # An object behind the position is read; one before it is not, and is not deleted.
            put("a", 1)
            put(f"small/1{number:02}", 7)
            counts[f"small/1{number:02}"] = 7
        with program(config, checkpoint) as running:
            assert running.finish(240) == 0
        left = [one["Key"] for one in client.list_objects_v2(Bucket="killed")["Contents"]]
    expected = sorted(
        f"{key} line {line}" for key, count in counts.items() for line in range(count)
    )
    assert sorted(out.read_text().splitlines()) == expected
    assert left == (["a"] if deletes else sorted([*counts, "a"]))
