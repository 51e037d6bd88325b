"""`streamer echo`: the config as it is understood, which means the same, without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from streamer.cli.main import invoke
from streamer.config import load_config, parse_config

CONFIGS = sorted(
    path
    for path in (Path(__file__).parents[2] / "configs").glob("*.yaml")
    if "_test" not in path.name
)
SECRETS = """\
input:
  file: { paths: ["${DIR}/a.jsonl", "http://user:hunter2@host/x", "x${DIR:y}"] }
buffer: { system_window: { size: 90m } }
http:
  address: 127.0.0.1:${PORT:4195}
  basic_auth: { password_hash: aHVudGVyMg==, salt: "${SALT}" }
output:
  http_client:
    url: http://host/
    headers: { Authorization: Bearer hunter2, X-Api-Key: "${SALT}", X-Author: joe }
spark: { shards: ${SHARDS}, conf: { spark.x: hunter2 } }
"""
ENV = {"DIR": "/srv/hidden", "SALT": "pepper", "SHARDS": "3791"}


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in ENV.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "c.yaml"
    path.write_text(SECRETS)
    return path


def echoed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert invoke(["echo", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_what_is_echoed_is_echoed_the_same(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    once = echoed(capsys, str(path))
    again = tmp_path / "again.yaml"
    again.write_text(once)
    assert echoed(capsys, "-c", str(again)) == once
    assert load_config(again).buffer.config == load_config(path).buffer.config


def test_secrets_and_values_of_variables_are_not_shown(
    secrets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = echoed(capsys, str(secrets))
    for secret in ("hunter2", "aHVudGVyMg==", *ENV.values()):
        assert secret not in text
    found = yaml.safe_load(text)
    scrubbed = "!!!SECRET_SCRUBBED!!!"
    assert found["http"]["basic_auth"]["password_hash"] == scrubbed
    assert found["http"]["basic_auth"]["salt"] == "${SALT}"
    assert found["http"]["address"] == "127.0.0.1:4195"
    assert found["spark"] == {
        "master": "local[*]",
        "environment": "packed",
        "shards": "${SHARDS}",
        "spool_limit": 1 << 30,
        "conf": {"spark.x": scrubbed},
    }
    headers = {"Authorization": f"Bearer {scrubbed}", "X-Api-Key": "${SALT}", "X-Author": "joe"}
    assert found["output"]["http_client"]["headers"] == headers
    paths = ["${DIR}/a.jsonl", f"http://user:{scrubbed}@host/x", "x${DIR}"]
    assert found["input"]["file"]["paths"] == paths


def test_what_is_echoed_means_the_same_with_the_same_variables(
    secrets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    echo = parse_config(echoed(capsys, str(secrets)), env=ENV)
    assert echo.spark["shards"] == 3791
    assert echo.input.config["paths"][0] == "/srv/hidden/a.jsonl"
    assert echo.buffer.config["size"] == 90 * 60 * 10**9


def test_values_of_variables_are_shown_when_asked_for_and_secrets_never(
    secrets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = echoed(capsys, "--show-env", str(secrets))
    assert "/srv/hidden/a.jsonl" in text
    assert "pepper" not in text
    assert "hunter2" not in text


def test_sets_labels_and_resources_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "input: { label: in, stdin: {}, processors: [ noop: {} ] }\n"
        "processor_resources: [ { label: clean, mapping: root = this } ]\n"
    )
    found = yaml.safe_load(echoed(capsys, str(path), "-s", "logger.level=WARN"))
    assert found["input"]["label"] == "in"
    assert found["input"]["processors"] == [{"noop": {}}]
    assert found["processor_resources"] == [{"label": "clean", "mapping": "root = this"}]
    assert found["logger"]["level"] == "WARN"


def test_a_config_with_findings_is_not_echoed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("inptu: {}\n")
    assert invoke(["echo", str(path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"{path}(1,1) field inptu not recognised; did you mean input?\n"
