"""`streamer dry-run`: what it prints, and its exit codes."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from streamer.cli.main import invoke
from streamer.spark.jvm.java import NoJavaError

CONFIG = """\
input: { file: { paths: [in.jsonl] } }
output: { file: { path: "${OUT:out.jsonl}" } }
spark: { checkpoint: state }
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(CONFIG)
    Path("in.jsonl").write_text("{}\n")
    monkeypatch.setattr(
        "streamer.tools.dry_run.environment_checks.check_java", lambda env: "Java 17 at home"
    )
    return tmp_path


def test_all_that_is_well_is_listed(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(directory.rglob("*"))
    assert invoke(["dry-run", "-c", "c.yaml"]) == 0
    assert capsys.readouterr() == (
        "ok    config  c.yaml\n"
        "ok    input: file  1 file, 3 bytes\n"
        "ok    output: file  out.jsonl will be made\n"
        "ok    checkpoint  state: new\n"
        "ok    java  Java 17 at home\n"
        "-     spark  not started; --spark starts it\n",
        "",
    )
    assert sorted(directory.rglob("*")) == before


def test_everything_that_fails_is_listed_and_the_exit_code_is_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def java(env: object) -> str:
        raise NoJavaError("Spark needs Java")

    monkeypatch.setattr("streamer.tools.dry_run.environment_checks.check_java", java)
    Path("in.jsonl").unlink()
    assert invoke(["dry-run", "c.yaml", "--format", "json", "-s", "output.file.path=."]) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    failed = {check["name"]: check["detail"] for check in found if check["ok"] is False}
    assert list(failed) == ["input: file", "output: file", "java"]
    assert failed["output: file"] == ". is a directory; expected a file"
    assert [check["ok"] for check in found if check["name"] == "spark"] == [None]


def test_an_address_that_is_asked_for_must_be_free(capsys: pytest.CaptureFixture[str]) -> None:
    def said(address: str, more: str = "") -> list[str]:
        Path("h.yaml").write_text(f"http: {{ address: '{address}' {more}}}\n{CONFIG}")
        invoke(["dry-run", "h.yaml"])
        lines = capsys.readouterr().out.splitlines()
        return [line for line in lines if line[6:10] == "http"]

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        [line] = said(f"127.0.0.1:{port}")
        assert line.startswith("FAIL  http  ")
        assert f"127.0.0.1:{port}" in line
        assert said(f"127.0.0.1:{port}", ", enabled: false") == []
    assert said("127.0.0.1:0") == ["ok    http  127.0.0.1:0 is free"]
    [line] = said("127.0.0.1:0", ", cert_file: no.pem, key_file: no.key")
    assert line.startswith("FAIL  http  http.cert_file no.pem with http.key_file no.key: no such")


def test_what_a_variable_holds_is_not_shown(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("verysecret").mkdir()
    monkeypatch.setenv("OUT", "verysecret")
    assert invoke(["dry-run", "c.yaml"]) == 1
    out = capsys.readouterr().out
    assert "verysecret" not in out
    assert "FAIL  output: file  ${OUT} is a directory; expected a file\n" in out


def test_spark_that_does_not_start_is_a_failed_check(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert invoke(["dry-run", "--spark", "-s", "spark.master=yarn"]) == 1
    out = capsys.readouterr().out
    assert "FAIL  spark  spark.master is yarn, which takes Hadoop's configuration" in out
