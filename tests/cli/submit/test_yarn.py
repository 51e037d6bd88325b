"""`streamer submit` to YARN without one: what is sent, what is refused, and what starts there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from streamer.cli.main import invoke
from streamer.cli.submit import driver
from streamer.spark.cluster.standalone_master import DriverStatus

CONFIG = """\
input: { generate: { mapping: 'root = env("SUBMIT_A")', count: 1 } }
pipeline:
  processors:
    - mapping: 'import "./lib/it.blobl"'
output: { drop: {} }
spark:
  environment: s3a://ours/environment.tar.gz
  conf: { spark.hadoop.fs.s3a.secret.key: "${SUBMIT_A}" }
"""
ID = "application_1767225600000_0001"


class Yarn:
    """Stands for YARN, which knows one application."""

    state = "RUNNING"

    def __init__(self, conf: Mapping[str, str]) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def status(self, id: str) -> DriverStatus | None:
        return DriverStatus(self.state, "node-1") if id == ID else None


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SUBMIT_A", "a-secret")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "it.blobl").write_text("map it { root = this }")
    (tmp_path / "cars.yaml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def sent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what is given to Spark's client, which only notes it."""
    found: dict[str, Any] = {}

    def client(
        master: str, name: str, conf: Mapping[str, str], program: list[str], settings: Path
    ) -> str:
        files = conf["spark.yarn.dist.files"]
        archive = conf["spark.yarn.dist.archives"].partition("#")[0]
        with tarfile.open(archive) as packed:
            texts = {one.name: packed.extractfile(one) for one in packed.getmembers()}
            found["files"] = {name: one.read().decode() for name, one in texts.items() if one}
        found.update(conf=conf, name=name, job=json.loads(Path(files).read_text()))
        found["modes"] = Path(files).parents[1].stat().st_mode
        return f"INFO Client: Submitting application {ID} to ResourceManager\n"

    monkeypatch.setattr("streamer.cli.submit.yarn.spark_submit", client)
    monkeypatch.setattr("streamer.spark.cluster.yarn.YarnApplications", Yarn)
    return found


def test_all_that_the_driver_needs_travels_to_the_application_master(
    folder: Path, sent: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["submit", "cars.yaml", "--master", "yarn", "--checkpoint", "ck"]
    assert invoke(arguments) == 0
    said = capsys.readouterr()
    assert said.out == f"{ID}\n"
    assert f"yarn logs -applicationId {ID}" in said.err and "a-secret" not in said.err
    assert sent["files"] == {"cars.yaml": CONFIG, "lib/it.blobl": "map it { root = this }"}
    job, conf = sent["job"], sent["conf"]
    assert job["arguments"][:2] == ["run", "cars.yaml"]
    assert {"spark.environment=installed", str(folder / "ck")} <= set(job["arguments"])
    assert job["variables"] == {"SUBMIT_A": "a-secret"}
    assert sent["modes"] & 0o077 == 0
    assert conf["spark.yarn.dist.archives"].endswith(",s3a://ours/environment.tar.gz#environment")
    assert conf["spark.pyspark.python"] == "./environment/bin/python3"
    assert conf["spark.yarn.maxAppAttempts"] == "1"
    # Where it leaves its last words, and what the next submit takes away when it has ended.
    place = Path(job["outcome"])
    assert json.loads((place / "submission.json").read_text()) == {"id": ID}
    assert place.is_relative_to(folder / "ck") and place.stat().st_mode & 0o077 == 0


def test_a_checkpoint_may_be_elsewhere_and_a_driver_supervised(
    sent: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "hdfs://ours/checkpoints/cars"
    assert invoke(["submit", "cars.yaml", "--master", "yarn", "--supervise"]) == 1
    arguments = ["submit", "cars.yaml", "--master", "yarn", "--supervise", "--checkpoint", url]
    assert invoke(arguments) == 0
    assert url in sent["job"]["arguments"] and sent["job"]["outcome"] is None
    assert "spark.yarn.maxAppAttempts" not in sent["conf"]
    assert "STREAMER_JARS" not in sent["job"]["beside"] and "spark.jars" not in sent["conf"]


@pytest.mark.parametrize(
    ("state", "code", "said"),
    [
        ("FINISHED", 0, "FINISHED on node-1"),
        ("KILLED", 1, "the driver was killed"),
        ("FAILED", 1, "the driver failed: YARN does not say why; its log: yarn logs -app"),
    ],
)
def test_its_end_is_waited_for(
    state: str,
    code: int,
    said: str,
    sent: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Yarn, "state", state)
    arguments = ["submit", "cars.yaml", "--master", "yarn", "--wait", "--checkpoint", "ck"]
    assert invoke(arguments) == code
    assert said in capsys.readouterr().err
    assert invoke(["submit", "--master", "yarn", "--status", ID]) == code
    assert capsys.readouterr().out == f"{state} on node-1\n"


@pytest.mark.parametrize(
    "arguments", ["submit cars.yaml --checkpoint c", "submit --status a", "submit --kill a"]
)
def test_without_hadoops_configuration_nothing_is_begun(
    arguments: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = [*arguments.split(), "--master", "yarn"]
    assert invoke(words) == 1
    assert "neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set: let" in capsys.readouterr().err
    monkeypatch.setenv("YARN_CONF_DIR", str(folder))
    assert invoke(words) == 1
    assert f"YARN_CONF_DIR is {folder}, without yarn-site.xml" in capsys.readouterr().err
    assert not (folder / "c").exists()


def test_a_driver_in_the_application_master_uses_its_jvm(folder: Path) -> None:
    own = folder / "python3"
    own.write_text(
        "#!/bin/sh\nenv >'%s/env'; pwd >>'%s/env'; echo last >&2; exit 3\n" % ((folder,) * 2)
    )
    own.chmod(0o755)
    container = folder / "container"
    (container / "files").mkdir(parents=True)
    (container / "environment" / "bin").mkdir(parents=True)
    own.rename(container / "environment" / "bin" / "python3")
    job = {
        "archive": "s3a://ours/environment.tar.gz",
        "arguments": [],
        "variables": {"SUBMIT_A": "a"},
        "joins": True,
        "beside": {"STREAMER_JARS": "."},
        "outcome": str(folder),
    }
    (container / "job.json").write_text(json.dumps(job))
    # As YARN does it: a link to where it keeps the file.
    (container / "start.py").symlink_to(driver.__file__)
    with subprocess.Popen(
        [sys.executable, "start.py"],
        cwd=container,
        # Spark holds the other end for as long as it runs.
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={
            **os.environ,
            "PYSPARK_GATEWAY_PORT": "1",
            "PYSPARK_GATEWAY_SECRET": "s",
            "LOG_DIRS": f"{folder},/elsewhere",
        },
    ) as started:
        assert started.wait(30) == 3
    assert (folder / "streamer.log").read_text() == "last\n"
    lines = (folder / "env").read_text().splitlines()
    assert {"PYSPARK_GATEWAY_PORT=1", "SUBMIT_A=a", f"STREAMER_JARS={container}"} <= set(lines)
    assert lines[-1] == str(container / "files")
    assert json.loads((folder / "outcome.json").read_text())["last"] == ["last"]
