"""Drivers on a standalone cluster of real processes: `streamer submit`, its looks and its ends."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import httpx2
import pytest

from streamer.spark.cluster.worker_setup import cache_directory
from streamer.spark.worker_archive import find_or_pack
from tests.processes import descendants
from tests.servers import free_port
from tests.servers.spark_cluster import Cluster, spark_cluster
from tests.slowness import slowness

from .test_kill import CONFIG, check

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

# More are for a run by hand: STREAMER_KILLS=10 pytest tests/faults/test_submit.py
KILLS = int(os.environ.get("STREAMER_KILLS", "1"))
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
SECRET = "t0p-s3cret-of-the-test"

COUNTED = """
input:
  file: { paths: ['%s'] }
buffer:
  tumbling_window:
    timestamp_mapping: root = this.at
    key_mapping: root = this.light
    size: 10s
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {
          {
            "light": this.light,
            "end": meta("window_end_timestamp"),
            "cars": batch_size(),
            "signed": "${TOKEN}".hash("sha256").encode("hex"),
          }
        } else { deleted() }
output: { stdout: {} }
spark: { conf: { spark.hadoop.fs.s3a.secret.key: "${TOKEN}" } }
"""


def grown(out: Path) -> float:
    """Wait until a file has more in it; return the seconds."""
    before = out.stat().st_size if out.exists() else 0
    return wait_for(lambda: out.exists() and out.stat().st_size > before, "for windows")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    # One worker has the driver, the other one the executor.
    with spark_cluster(tmp_path_factory.mktemp("spark"), 2) as found:
        yield found


def streamer(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "streamer.cli.main", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def wait_for(what: Callable[[], bool], why: str, seconds: float = 240) -> float:
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < seconds, f"waited in vain {why}"
        time.sleep(0.2)
    return time.monotonic() - began


def written(cluster: Cluster, driver: str, stream: str) -> str:
    """Return what the worker keeps of a driver's `stdout` or `stderr`."""
    [file] = cluster.home.glob(f"worker-*/*/{driver}/{stream}")
    return file.read_text()


def processes(part: str) -> dict[int, str]:
    """Return the command lines of processes that have a text in theirs, by process id."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if part in line:
            found[int(path.parent.name)] = line
    return found


def program(job: Path) -> int:
    """Return the process id of a driver's program, whose parent is the one that looks after it."""
    [pid] = [
        pid
        for pid, line in processes(str(job)).items()
        if "PythonRunner" not in line and b"STREAMER_SUBMITTED=1" in environ(pid)
    ]
    return pid


def environ(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def test_a_job_that_is_submitted_counts_every_car_and_shows_no_secret(
    tmp_path: Path, cluster: Cluster
) -> None:
    cars = tmp_path / "cars.jsonl"
    rows = [
        {"light": f"light-{n % 7}", "at": f"2026-01-01T10:00:{n // 100:02}Z"} for n in range(5000)
    ]
    cars.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = tmp_path / "counted.yaml"
    config.write_text(COUNTED % cars)
    cars_of = Counter((row["light"], int(row["at"][-3:-1]) // 10 * 10 + 10) for row in rows)
    seen: dict[int, str] = {}
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "streamer.cli.main", "submit", config, "--wait"),
            *("--master", cluster.url, "--checkpoint", tmp_path / "there"),
        ],
        env={**os.environ, "TOKEN": SECRET},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as submit:
        while submit.poll() is None:
            seen |= processes(SECRET)
            time.sleep(0.5)
        out, err = submit.communicate()
    assert submit.returncode == 0, err
    driver = out.strip()
    assert "RUNNING on 127.0.0.1:" in err and "FINISHED on 127.0.0.1:" in err
    found = [json.loads(line) for line in written(cluster, driver, "stdout").splitlines()]
    assert {one.pop("signed") for one in found} == {sha256(SECRET.encode()).hexdigest()}
    assert {
        (one["light"], int(one["end"].removeprefix("2026-01-01T10:00:")[:2])): one["cars"]
        for one in found
    } == cars_of
    assert len(found) == len(cars_of) == 35
    # Nobody who looks at processes or logs sees what the environment holds.
    assert seen == {}
    log = written(cluster, driver, "stderr")
    assert "The input has ended" in log and SECRET not in log + err
    [job] = (tmp_path / "there" / "submitted").glob("*/job.json")
    assert SECRET not in job.read_text() and job.parent.stat().st_mode & 0o077 == 0
    # By what stays when the master gives it another id, too.
    for wanted in (driver, "counted", str(tmp_path / "there")):
        status = streamer("submit", "--master", cluster.url, "--status", wanted)
        assert (status.returncode, status.stdout.split()[0]) == (0, "FINISHED"), status.stderr


def wrapper(job: Path) -> int:
    """Return the process id of Spark's own process for a driver; 0 while there is none."""
    lines = processes(str(job)).items()
    return next((pid for pid, line in lines if "org.apache.spark.deploy.PythonRunner" in line), 0)


def pings(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/ping", timeout=2).text == "pong"
    except httpx2.TransportError:
        return False


def answers_after_launch(job: Path, port: int, before: int = 0) -> float:
    """Wait for `/ping` of a driver; return the seconds since its process was there.

    Args:
        job: the driver's directory.
        port: where it listens.
        before: Spark's process of the start before, which is going to end.
    """
    wait_for(lambda: wrapper(job) not in (0, before), "for the driver's launch")
    return wait_for(lambda: pings(port), "for /ping")


def stretch() -> float:
    """Return by what to multiply seconds of a clock: others have a part of the cores too."""
    return slowness() * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def kill_program(cluster: Cluster, job: Path) -> None:
    os.kill(program(job), signal.SIGKILL)


def lose_worker(cluster: Cluster, job: Path) -> None:
    """End the worker that has the driver with all that runs on it, as a machine that is gone."""
    [name] = [
        name for name in cluster.names("worker-*") if program(job) in descendants(cluster.pid(name))
    ]
    for pid in descendants(cluster.pid(name)):
        os.kill(pid, signal.SIGKILL)
    # The master gives the driver to another one; with as many cores as before, it has its own.
    cluster.begin(name)


FAULTS = {kill_program: 60.0, lose_worker: 90.0}
"""What happens to a driver, and the seconds within which it has windows again."""


def test_a_driver_comes_back_whether_it_or_its_worker_is_killed_and_its_windows_go_on(
    tmp_path: Path, cluster: Cluster
) -> None:
    out, checkpoint, port = tmp_path / "out.jsonl", tmp_path / "checkpoint", free_port()
    config = tmp_path / "kill.yaml"
    output = f"file: {{path: '{out}', codec: lines}}"
    text = CONFIG.format(first=1, size=10, slide="", all="", output=output)
    config.write_text(f"{text}\nhttp: {{address: '127.0.0.1:{port}'}}\n")
    # The environment is known.
    find_or_pack(cache_directory(os.environ))
    slow = stretch()
    began = time.monotonic()
    sent = streamer(
        *("submit", config, "--supervise", "--master", cluster.url, "--checkpoint", checkpoint)
    )
    assert sent.returncode == 0, sent.stderr
    took = time.monotonic() - began
    try:
        print(f"stretch {slow:.1f}; submit took {took:.1f} s")
        assert took < 20 * slow
        [job] = (checkpoint / "submitted").glob("2*")
        grown(out)
        faults = random.Random(SEED).sample(list(FAULTS), len(FAULTS))
        for n in range(KILLS):
            fault = faults[n % len(faults)]
            before = wrapper(job)
            slow = stretch()
            began = time.monotonic()
            fault(cluster, job)
            pinged = answers_after_launch(job, port, before)
            grown(out)
            took = time.monotonic() - began
            print(
                f"stretch {slow:.1f}; {fault.__name__}: /ping after {pinged:.1f} s, "
                f"windows again after {took:.1f} s"
            )
            assert pinged < 5 * slow and took < FAULTS[fault] * slow
        # Whatever has started where, one environment was unpacked, and none beside it.
        assert len(cluster.environments) == 1
        assert not list(cluster.home.glob("worker-*/*/*/environment"))
        assert not list(cluster.home.glob("worker-*/*/*/*/environment"))
    finally:
        # A driver whose worker has gone has another id on the next one.
        driver = max(path.name for path in cluster.home.glob("worker-*/*/driver-*"))
        stopped = streamer("submit", "--master", cluster.url, "--kill", driver)
    assert stopped.returncode == 0, stopped.stderr
    wait_for(lambda: processes(str(job)) == {}, "for the end of all processes")
    assert check(out.read_bytes().splitlines(), slides=1, repeats=False) > 1000


@pytest.mark.skipif(KILLS < 2, reason="by hand: STREAMER_KILLS=2 pytest tests/faults")
def test_a_service_comes_back_as_well(tmp_path: Path, cluster: Cluster) -> None:
    out, streams, checkpoints = tmp_path / "out.jsonl", tmp_path / "streams", tmp_path / "c"
    streams.mkdir()
    output = f"file: {{path: '{out}', codec: lines}}"
    text = CONFIG.format(first=1, size=10, slide="", all="", output=output)
    # Spark is the service's.
    (streams / "cars.yaml").write_text(text.partition("\nspark:")[0])
    port = free_port()
    (tmp_path / "service.yaml").write_text(f"http: {{address: '127.0.0.1:{port}'}}\n")
    sent = streamer(
        *("submit", "--supervise", "--master", cluster.url),
        *("streams", "-o", tmp_path / "service.yaml", "--checkpoints", checkpoints, streams),
    )
    assert sent.returncode == 0, sent.stderr
    driver = sent.stdout.strip()

    try:
        grown(out)
        assert "cars" in httpx2.get(f"http://127.0.0.1:{port}/streams").json()
        [job] = (checkpoints / "submitted").glob("2*")
        for _ in range(KILLS):
            os.kill(program(job), signal.SIGKILL)
            print("windows again after", round(grown(out), 1), "s")
    finally:
        streamer("submit", "--master", cluster.url, "--kill", driver)
    wait_for(lambda: processes(str(job)) == {}, "for the end of all processes")
    assert check(out.read_bytes().splitlines(), slides=1, repeats=False) > 1000


def test_a_worker_that_lacks_the_program_is_named(tmp_path: Path, cluster: Cluster) -> None:
    bare = tmp_path / "python3"
    bare.write_text('#!/bin/sh\nPYTHONPATH= exec /usr/bin/python3 -S "$@"\n')
    bare.chmod(0o755)
    config = tmp_path / "one.yaml"
    config.write_text(
        "input: {generate: {mapping: root = 1, count: 1}}\noutput: {stdout: {}}\n"
        f"spark: {{environment: installed, conf: {{spark.pyspark.python: '{bare}'}}}}\n"
    )
    sent = streamer(
        *("submit", config, "--wait", "--master", cluster.url),
        *("--checkpoint", tmp_path / "checkpoint"),
    )
    assert sent.returncode == 1
    last = sent.stderr.splitlines()[-1]
    assert "lacks the Python package streamer: let spark.environment be `packed`" in last
