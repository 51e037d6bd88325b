"""A plan in the checkpoint has references in the place of secrets, which are read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.config import Config, parse_config
from streamer.plan import Plan, make_plan
from streamer.spark.checkpoint.checkpoint import Checkpoint
from streamer.spark.checkpoint.generations import (
    Drain,
    begin_drain,
    load_running,
    read_drain,
    save_running,
)

CANARIES = ("f1le-canary", "env-canary-1", "url-canary-2", "l1ne-a", "l1ne-b")


def make(directory: Path) -> tuple[Config, Plan]:
    (directory / "secret").write_text("f1le-canary\n")
    (directory / "pem").write_text('l1ne-a\n"l1ne-b"\n')
    text = f"""
pipeline:
  processors:
    - mapping: 'root.pem = "x${{file:{directory}/pem}}"'
output:
  http_client:
    url: http://u:${{URL_PASS}}@h/x?k=${{file:{directory}/secret}}
    headers: {{X: 'Bearer ${{env:CANARY}}', Y: "${{DATA}}", Z: "${{file:{directory}/pem}}"}}
"""
    config = parse_config(text, "a.yaml")
    return config, make_plan(config)


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    monkeypatch.setenv("CANARY", "env-canary-1")
    monkeypatch.setenv("URL_PASS", "url-canary-2")
    monkeypatch.setenv("DATA", "plain-data")
    made = Checkpoint(tmp_path / "c")
    made.bind({"input": "stdin", "window": None, "key": None, "shards": 0}, {})
    return made


def contents(checkpoint: Checkpoint) -> bytes:
    return b"".join(one.read_bytes() for one in checkpoint.directory.rglob("*") if one.is_file())


def test_no_secret_is_in_the_checkpoint_and_a_start_reads_those_of_now(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, plan = make(tmp_path)
    save_running(checkpoint, config, plan)
    begin_drain(checkpoint, Drain(plan, keeps_input=True))
    for canary in CANARIES:
        assert canary.encode() not in contents(checkpoint)
    assert b"plain-data" in contents(checkpoint)
    monkeypatch.setenv("DATA", "another")
    running, drain = load_running(checkpoint), read_drain(checkpoint)
    assert running is not None and drain is not None
    assert running == (config, plan) and drain.plan == plan
    assert dict(running[0].secrets) == dict(config.secrets)
    (tmp_path / "secret").write_text("rotated-9\n")
    monkeypatch.setenv("CANARY", "rotated-8")
    again = load_running(checkpoint)
    assert again is not None
    assert again[1].output.config["url"] == "http://u:url-canary-2@h/x?k=rotated-9"
    assert again[1].output.config["headers"]["X"] == "Bearer rotated-8"
    assert again[1].output.config["headers"]["Y"] == "plain-data"
    checkpoint.close()


def test_a_secret_that_is_gone_is_named(checkpoint: Checkpoint, tmp_path: Path) -> None:
    save_running(checkpoint, *make(tmp_path))
    (tmp_path / "secret").unlink()
    lines: list[object] = []
    assert load_running(checkpoint, lambda *line: lines.append(line)) is None
    assert f"the secret ${{file:{tmp_path}/secret}} is not there any more" in str(lines)
    checkpoint.close()


def test_a_key_of_windows_with_a_secret_is_bound_by_its_reference(tmp_path: Path) -> None:
    (tmp_path / "salt").write_text("s4lt-canary")
    config = parse_config(
        "buffer:\n  tumbling_window:\n    size: 1s\n    key_mapping: |\n"
        f'      root = this.id + "${{file:{tmp_path}/salt}}"\n'
    )
    fingerprint = str(make_plan(config).fingerprint)
    assert "canary" not in fingerprint and f"${{file:{tmp_path}/salt}}" in fingerprint
