"""`streamer submit` without a cluster: what a job holds, and what looks after it where it runs."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from streamer.cli.main import invoke
from streamer.cli.options import Options
from streamer.cli.submit.driver import OUTCOME_FILE
from streamer.cli.submit.driver_bundle import DriverBundle, bundle_config
from streamer.cli.submit.job import JOBS_DIRECTORY, Job, delete_ended_jobs, share_archive, write_job
from streamer.cli.submit.sealed_variables import open_variables
from streamer.config import load_config
from streamer.config.templates.installation import install_templates
from streamer.connectors.secrets.lookup import install_lookup
from tests.processes import runs

CONFIG = """\
input: { generate: { mapping: 'root = env("SUBMIT_B")', count: 1 } }
pipeline:
  processors:
    - mapping: 'import "./lib/it.blobl"'
    - shout: {}
    - resource: quiet
output: { file: { path: "${SUBMIT_A}/${SUBMIT_NONE:x}", codec: lines } }
"""
LIB = "map it { root = this }"
RESOURCES = "processor_resources: [{label: quiet, mapping: root = this}]\n"
TEMPLATE = "name: shout\ntype: processor\nmapping: 'root.mapping = \"root = content()\"'\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("SUBMIT_A", "a-secret"), ("SUBMIT_B", "b"), ("SUBMIT_C", "not asked for")):
        monkeypatch.setenv(name, text)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "it.blobl").write_text(LIB)
    for name, text in (("c.yaml", CONFIG), ("r.yaml", RESOURCES), ("t.yaml", TEMPLATE)):
        (tmp_path / name).write_text(text)
    return tmp_path


def job_of(contents: DriverBundle, archive: str | None = None) -> Job:
    return write_job(contents, Path("checkpoint").absolute(), archive)


def about(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((job.directory / "job.json").read_text())
    assert "variables" not in found
    found["variables"] = open_variables(found["sealed"], job.key)
    return found


def test_a_job_holds_all_that_the_config_is_made_of_and_only_what_it_asks_for(
    folder: Path,
) -> None:
    options = Options(resources=("r.yaml",), sets=("spark.shards=2",), log_level="DEBUG")
    with install_templates(["t.yaml"]):
        config = load_config("c.yaml", resources=options.resources)
        job = job_of(bundle_config(config, options, "cars"), "s3a://ours/env.tar.gz")
    arguments = about(job)["arguments"]
    assert arguments[:6] == ["run", "cars.yaml", "-r", "r0-r.yaml", "-t", "t0-t.yaml"]
    assert {"spark.shards=2", "spark.environment=s3a://ours/env.tar.gz", "DEBUG"} <= set(arguments)
    files = job.directory / "files"
    assert (files / "cars.yaml").read_text() == CONFIG
    assert (files / "r0-r.yaml").read_text() == RESOURCES
    assert (files / "t0-t.yaml").read_text() == TEMPLATE
    assert (files / "lib" / "it.blobl").read_text() == LIB
    variables = about(job)["variables"]
    assert {name: text for name, text in variables.items() if name.startswith("SUBMIT")} == {
        "SUBMIT_A": "a-secret",
        "SUBMIT_B": "b",
    }
    # Nobody but its owner reads what is below.
    assert job.directory.stat().st_mode & 0o077 == 0
    assert job.jar == f"file://{job.directory}/start.jar"


@pytest.mark.parametrize(
    ("urn", "copied"),
    [
        ("vault://h:8200/kv/", {"VAULT_NAMESPACE"}),
        ("vault:///kv/?auth=approle", {"VAULT_NAMESPACE", "VAULT_ADDR", "VAULT_ROLE_ID"}),
        ("env:", set()),
    ],
)
def test_a_driver_gets_the_place_of_a_store_and_no_login(
    urn: str, copied: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ADDR", "NAMESPACE", "ROLE_ID", "SECRET_ID", "TOKEN"):
        monkeypatch.setenv(f"VAULT_{name}", "x")
    with install_lookup([urn]):
        variables = DriverBundle((), {}, {}).collect_variables()
    assert variables == {"STREAMER_SECRETS": urn, **dict.fromkeys(copied, "x")}


def test_jobs_of_drivers_that_have_ended_are_deleted_and_so_are_archives_of_none(
    folder: Path,
) -> None:
    checkpoint = folder / "checkpoint"
    packed = folder / "environment-1.tar.gz"
    packed.write_bytes(b"1")
    archive = share_archive(packed, checkpoint)
    assert (
        share_archive(packed, checkpoint)
        == archive
        == str(checkpoint / JOBS_DIRECTORY / packed.name)
    )
    (checkpoint / JOBS_DIRECTORY / "environment-0.tar.gz").write_bytes(b"0")
    ended, runs = job_of(DriverBundle((), {}, {})), job_of(DriverBundle((), {}, {}), archive)
    # Executors read it where it lies.
    assert about(runs)["arguments"] == ["-s", f"spark.environment=local:{archive}"]
    assert (runs.directory / "environment_cache.py").is_file()
    unknown = job_of(DriverBundle((), {}, {}))
    ended.record_driver_id("driver-1")
    runs.record_driver_id("driver-2")
    delete_ended_jobs(checkpoint, lambda id: id == "driver-1")
    left = {path.name for path in (checkpoint / JOBS_DIRECTORY).iterdir()}
    assert left == {runs.directory.name, unknown.directory.name, packed.name}


def test_a_checkpoint_that_cannot_be_written_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "good.yaml").write_text(
        "input: {generate: {mapping: root = 1, count: 1}}\noutput: {drop: {}}\n"
    )
    for checkpoint, said in (("s3a://ours/c", "submit takes a directory"), ("", "needs a ")):
        more = ["--checkpoint", checkpoint] if checkpoint else []
        assert invoke(["submit", "good.yaml", "--master", "spark://127.0.0.1:9", *more]) == 1
        assert said in capsys.readouterr().err


class Started:
    """A job's program, started as Spark's PythonRunner does it: its input is a pipe."""

    def __init__(self, job: Job, directory: Path) -> None:
        directory.mkdir()
        self.process = subprocess.Popen(
            [sys.executable, "-u", job.program],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={
                **os.environ,
                "PYSPARK_GATEWAY_PORT": "1",
                "PYTHONPATH": "/nowhere",
                "STREAMER_JOB_KEY": job.key,
            },
        )

    def end(self) -> tuple[int, str]:
        assert self.process.stdout is not None
        out = self.process.stdout.read().decode()
        return self.process.wait(30), out


def outcome(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((job.directory / OUTCOME_FILE).read_text())
    return found


def test_the_program_runs_with_its_files_and_leaves_its_last_words(folder: Path) -> None:
    good = job_of(DriverBundle(("lint", "a.yaml"), {"a.yaml": "output: {drop: {}}\n"}, {}))
    assert Started(good, folder / "work-1").end() == (0, "")
    assert outcome(good)["code"] == 0
    bad = job_of(DriverBundle(("lint", "a.yaml"), {"a.yaml": "inptu: {}\n"}, {}))
    code, _ = Started(bad, folder / "work-2").end()
    assert code == outcome(bad)["code"] == 1


def environment(folder: Path, script: str) -> str:
    """Return an archive whose Python is a script."""
    path = folder / "environment.tar.gz"
    with tarfile.open(path, "w:gz") as out:
        entry = tarfile.TarInfo("bin/python3")
        entry.size, entry.mode = len(script), 0o755
        out.addfile(entry, io.BytesIO(script.encode()))
    return str(path)


def child(folder: Path) -> int:
    """Return the process id that the script has written."""
    file = folder / "pid"
    until = time.monotonic() + 30
    while not (file.exists() and file.read_text()):
        assert time.monotonic() < until, "it does not start"
        time.sleep(0.05)
    return int(file.read_text())


def gone(pid: int) -> bool:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if not runs(pid):
            return True
        time.sleep(0.05)
    return False


WAITS = "#!/bin/sh\necho $$ >'{folder}/pid'\necho ready >&2\nexec sleep 60\n"


def test_it_is_stopped_when_sparks_process_has_gone(folder: Path) -> None:
    job = job_of(DriverBundle((), {}, {}), environment(folder, WAITS.format(folder=folder)))
    (job.directory / "files").mkdir()
    started = Started(job, folder / "work")
    pid = child(folder)
    assert started.process.stdin is not None
    started.process.stdin.close()
    code, _ = started.end()
    assert (code, outcome(job)["code"]) == (128 + signal.SIGTERM, 128 + signal.SIGTERM)
    assert outcome(job)["last"] == ["ready"]
    assert gone(pid)
    assert (folder / "work" / "environment" / "bin" / "python3").exists()


def test_it_does_not_outlive_the_one_that_looks_after_it(folder: Path) -> None:
    job = job_of(DriverBundle((), {}, {}), environment(folder, WAITS.format(folder=folder)))
    (job.directory / "files").mkdir()
    started = Started(job, folder / "work")
    pid = child(folder)
    started.process.kill()
    assert gone(pid)


def test_an_archive_that_cannot_be_unpacked_is_named(folder: Path) -> None:
    job = job_of(DriverBundle((), {}, {}), str(folder / "nowhere.tar.gz"))
    code, out = Started(job, folder / "work").end()
    assert code == 1
    assert "cannot unpack" in out and "No such file" in outcome(job)["last"][-1]
