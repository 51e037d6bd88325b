"""A service whose checkpoints are in S3: kill -9, a second start, a deletion; every event once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.servers.s3 import BUCKET, S3, SECRET, s3_server

from .service import Service, service

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

STREAM = """
input:
  generate:
    interval: 10ms
    mapping: |
      root.id = count("id") - 1
      root.at = now()
buffer:
  tumbling_window: {{ timestamp_mapping: root = this.at, size: 1s }}
output: {{ file: {{ path: '{out}', codec: lines }} }}
"""
AT = f"s3a://{BUCKET}/ours"


def test_streams_go_on_from_s3_and_are_deleted_there(tmp_path: Path) -> None:
    outs = {name: tmp_path / f"{name}.jsonl" for name in ("cars", "lights")}

    def grow(run: Service) -> None:
        before = [size(out) for out in outs.values()]
        run.wait_for(
            lambda: all(size(out) > b for out, b in zip(outs.values(), before, strict=True)),
            120,
            "for windows",
        )

    with s3_server(tmp_path) as s3:
        machine = tmp_path / "one"
        with service(machine, "--checkpoints", AT, conf=s3.conf()) as run:
            run.wait_running()
            for name, out in outs.items():
                done = run.ask("POST", f"/streams/{name}", STREAM.format(out=out))
                assert done.status_code == 200, done.text
            grow(run)
            run.kill()
        for name in outs:
            assert f"ours/{name}/spark/commits/0" in names(s3)
        with service(machine, "--checkpoints", AT, conf=s3.conf()) as run:
            run.wait_running()
            grow(run)
            # A pause gives the lease back, and what goes on has it again.
            assert run.ask("POST", "/streams/cars/pause").status_code == 200
            changed = STREAM.format(out=outs["cars"]).replace("size: 1s", "size: 2s")
            done = run.ask("PUT", "/streams/cars?on_reset=discard", changed)
            assert done.status_code == 200, done.text
            assert not [name for name in names(s3) if name.startswith("ours/cars/spark/")]
            assert run.ask("DELETE", "/streams/lights").status_code == 200
            assert not [name for name in names(s3) if name.startswith("ours/lights")]
            assert run.ask("POST", "/streams/cars/resume").status_code == 200
            run.wait_for(lambda: "ours/cars/spark-1/commits/0" in names(s3), 60, "to go on")
            assert run.stop() == 0
        logs = "".join(path.read_text() for path in machine.glob("log-*"))
    assert SECRET not in logs and "waiting until it is sure" not in logs
    ids = Counter(json.loads(line)["id"] for line in outs["lights"].read_text().splitlines())
    assert len(ids) > 100 and set(ids) == set(range(len(ids))) and set(ids.values()) == {1}


def names(s3: S3) -> list[str]:
    return s3.names("ours/")


def size(out: Path) -> int:
    return out.stat().st_size if out.exists() else 0
