"""A service whose checkpoints are in S3: killed, rescaled, streams deleted; every event once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.servers.s3 import BUCKET, S3, SECRET, s3_server

from .service import service

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


def test_streams_go_on_from_s3_are_rescaled_and_deleted_there(tmp_path: Path) -> None:
    outs = {name: tmp_path / f"{name}.jsonl" for name in ("cars", "lights")}

    with s3_server(tmp_path) as s3:
        machine = tmp_path / "one"
        with service(machine, "--checkpoints", AT, conf=s3.conf()) as run:
            run.wait_running()
            texts = {name: yaml.safe_load(STREAM.format(out=out)) for name, out in outs.items()}
            done = run.ask("POST", "/streams", texts)
            assert done.status_code == 200, done.text
            run.wait_for(lambda: all(map(size, outs.values())), 120, "for windows")
            commits = [f"ours/{name}/spark/commits/0" for name in outs]
            run.wait_for(lambda: all(below(s3, one) for one in commits), 60, "for commits")
            run.kill()
        with service(machine, "--checkpoints", AT, conf=s3.conf()) as run:
            run.wait_running()
            # A pause gives the lease back: others may have the checkpoint meanwhile.
            for name in outs:
                assert run.ask("POST", f"/streams/{name}/pause").status_code == 200
            changed = STREAM.format(out=outs["lights"]).replace("size: 1s", "size: 2s")
            done = run.ask("PUT", "/streams/lights?on_reset=discard", changed)
            assert done.status_code == 200, done.text
            assert below(s3, "ours/lights") and not below(s3, "ours/lights/spark/")
            assert run.ask("DELETE", "/streams/lights").status_code == 200
            assert not below(s3, "ours/lights")
            said = rescaled(machine, STREAM.format(out=outs["cars"]), s3)
            assert f"{AT}/cars: 2 shards are now 3; " in said and "in them: 0;" not in said
            assert len(below(s3, "ours/cars/seed-1-")) >= 3
            before = size(outs["cars"])
            assert run.ask("POST", "/streams/cars/resume").status_code == 200
            run.wait_for(lambda: size(outs["cars"]) > before, 120, "to go on")
            assert run.stop() == 0
        assert below(s3, "ours/cars/spark-1/commits/0")
        logs = "".join(path.read_text() for path in machine.glob("log-*"))
    assert SECRET not in logs and "waiting until it is sure" not in logs
    ids = Counter(json.loads(line)["id"] for line in outs["cars"].read_text().splitlines())
    assert len(ids) > 100 and set(ids) == set(range(len(ids))) and set(ids.values()) == {1}


def below(s3: S3, prefix: str) -> list[str]:
    return [name for name in s3.names("ours/") if name.startswith(prefix)]


def rescaled(machine: Path, config: str, s3: S3) -> str:
    """Give the stream `cars` three shards on the machine of a service; return what is said."""
    path = machine / "cars.yaml"
    path.write_text(config + yaml.safe_dump({"spark": {"conf": s3.conf()}}))
    command = [sys.executable, "-m", "streamer.cli.main", "rescale", str(path), "--shards", "3"]
    done = subprocess.run(
        [*command, "--checkpoint", f"{AT}/cars"],
        env={**os.environ, "XDG_STATE_HOME": str(machine / "state")},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0 and SECRET not in done.stderr, done.stderr
    return done.stdout


def size(out: Path) -> int:
    return out.stat().st_size if out.exists() else 0
