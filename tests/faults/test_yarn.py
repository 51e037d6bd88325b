"""A real YARN: the driver here, the driver in the application master, and its ends.

It takes some minutes and 6 GB of memory, and is run by hand:

    STREAMER_YARN=1 pytest tests/faults/test_yarn.py
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import httpx2
import pytest

from tests.servers import free_port
from tests.servers.s3 import BUCKET, s3_server
from tests.servers.yarn import Yarn, yarn

from .test_kill import CONFIG, check
from .test_submit import COUNTED, SECRET, environ, grown, processes, wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not os.environ.get("STREAMER_YARN"),
        reason="by hand: STREAMER_YARN=1 pytest tests/faults/test_yarn.py",
    ),
]

ROWS = [{"light": f"light-{n % 7}", "at": f"2026-01-01T10:00:{n // 100:02}Z"} for n in range(5000)]
SMALL = {"spark.executor.instances": "1", "spark.executor.memory": "512m"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    with yarn(tmp_path_factory.mktemp("yarn")) as found:
        yield found


def section(cluster: Yarn, **more: str) -> str:
    """Return the `spark` section of a config."""
    conf = {**SMALL, **cluster.conf, "spark.hadoop.fs.s3a.secret.key": "${TOKEN:x}", **more}
    return f"\nspark: {json.dumps({'conf': conf})}\n"


def installed(tmp_path: Path) -> dict[str, str]:
    """Return settings by which nodes have this program; without Hadoop's native library a node
    takes a minute and a half to unpack the packed one."""
    own = tmp_path / "python3"
    root = Path(__file__).parents[2]
    own.write_text(f'#!/bin/sh\nPYTHONPATH={root} exec {sys.executable} "$@"\n')
    own.chmod(0o755)
    return {"spark.pyspark.python": str(own)}


def counted(tmp_path: Path, cluster: Yarn, **more: str) -> Path:
    """Write a config that counts cars, and the cars."""
    cars = tmp_path / "cars.jsonl"
    cars.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    config = tmp_path / "counted.yaml"
    config.write_text(COUNTED.partition("\nspark:")[0] % cars + section(cluster, **more))
    return config


def assert_exact(written: str) -> None:
    """See that every car is in its window, once."""
    found = [json.loads(line) for line in written.splitlines()]
    assert {one.pop("signed") for one in found} == {sha256(SECRET.encode()).hexdigest()}
    cars = Counter((row["light"], int(row["at"][-3:-1]) // 10 * 10 + 10) for row in ROWS)
    assert len(found) == len(cars) == 35
    assert {
        (one["light"], int(one["end"].removeprefix("2026-01-01T10:00:")[:2])): one["cars"]
        for one in found
    } == cars


def streamer(
    *arguments: object, env: Mapping[str, str], watched: str = ""
) -> tuple[int, str, str, dict[int, str]]:
    """Run a command; return what became of it, and the processes that showed a text meanwhile."""
    seen: dict[int, str] = {}
    with subprocess.Popen(
        [sys.executable, "-m", "streamer.cli.main", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    ) as process:
        while process.poll() is None:
            if watched:
                seen |= processes(watched)
            time.sleep(0.3)
        out, err = process.communicate()
    return process.returncode, out, err, seen


def test_the_driver_here_counts_every_car(tmp_path: Path, cluster: Yarn) -> None:
    code, out, err, seen = streamer(
        *("-c", counted(tmp_path, cluster), "--master", "yarn"),
        *("--checkpoint", tmp_path / "checkpoint"),
        env={**cluster.environ, "TOKEN": SECRET},
        watched=SECRET,
    )
    assert code == 0, err
    assert_exact(out)
    assert "The cluster's workers can run streamer" in err
    assert (seen, SECRET in err) == ({}, False)

    def final() -> str:
        last = max(cluster.applications(), key=lambda one: str(one["id"]))
        return str(last["finalStatus"])

    wait_for(lambda: final() == "SUCCEEDED", "for the application's end", 60)


def test_the_driver_there_counts_every_car_and_shows_no_secret(
    tmp_path: Path, cluster: Yarn
) -> None:
    code, out, err, seen = streamer(
        *("submit", counted(tmp_path, cluster), "--master", "yarn", "--wait"),
        *("--checkpoint", tmp_path / "checkpoint"),
        env={**cluster.environ, "TOKEN": SECRET},
        watched=SECRET,
    )
    assert code == 0, err
    id = out.strip()
    assert f"yarn logs -applicationId {id}" in err and "FINISHED on " in err
    assert_exact(cluster.written(id, "stdout"))
    log = cluster.written(id, "streamer.log")
    assert "The input has ended" in log
    assert (seen, SECRET in log + err) == ({}, False)
    code, out, err, _ = streamer("submit", "--master", "yarn", "--status", id, env=cluster.environ)
    assert (code, out.split()[0]) == (0, "FINISHED"), err


@pytest.mark.parametrize("what", ["start.py", "ApplicationMaster"])
def test_a_driver_that_is_killed_comes_back_and_its_windows_go_on(
    what: str, tmp_path: Path, cluster: Yarn
) -> None:
    out, checkpoint = tmp_path / "out.jsonl", tmp_path / "checkpoint"
    config = tmp_path / "kill.yaml"
    output = f"file: {{path: '{out}', codec: lines}}"
    text = CONFIG.format(first=1, size=10, slide="", all="", output=output)
    config.write_text(text.partition("\nspark:")[0] + section(cluster, **installed(tmp_path)))
    code, sent, err, _ = streamer(
        *("submit", config, "--master", "yarn", "--supervise", "--checkpoint", checkpoint),
        *("-s", "spark.environment=installed"),
        env=cluster.environ,
    )
    assert code == 0, err
    id = sent.strip()
    try:
        grown(out)
        if what == "start.py":
            [pid] = [pid for pid in cluster.named(what) if b"STREAMER_SUBMITTED=1" in environ(pid)]
        else:
            [pid] = [
                pid for pid in cluster.named(what) if "java" in os.readlink(f"/proc/{pid}/exe")
            ]
        os.kill(pid, signal.SIGKILL)
        print(what, "killed; windows again after", round(grown(out), 1), "s")
    finally:
        code, _, err, _ = streamer("submit", "--master", "yarn", "--kill", id, env=cluster.environ)
    assert code == 0, err
    wait_for(lambda: cluster.containers() == [], "for the end of all containers")
    code, sent, err, _ = streamer("submit", "--master", "yarn", "--status", id, env=cluster.environ)
    assert (code, sent.startswith("KILLED")) == (1, True), err
    assert check(out.read_bytes().splitlines(), slides=1, repeats=False) > 1000


def test_a_service_there_counts_too(tmp_path: Path, cluster: Yarn) -> None:
    out, streams, checkpoints = tmp_path / "out.jsonl", tmp_path / "streams", tmp_path / "c"
    streams.mkdir()
    output = f"file: {{path: '{out}', codec: lines}}"
    text = CONFIG.format(first=1, size=10, slide="", all="", output=output)
    (streams / "cars.yaml").write_text(text.partition("\nspark:")[0])
    port = free_port()
    (tmp_path / "service.yaml").write_text(
        f"http: {{address: '127.0.0.1:{port}'}}" + section(cluster, **installed(tmp_path))
    )
    code, sent, err, _ = streamer(
        *("submit", "--master", "yarn", "-s", "spark.environment=installed"),
        *("streams", "-o", tmp_path / "service.yaml", "--checkpoints", checkpoints, streams),
        env=cluster.environ,
    )
    assert code == 0, err
    try:
        grown(out)
        assert "cars" in httpx2.get(f"http://127.0.0.1:{port}/streams").json()
    finally:
        streamer("submit", "--master", "yarn", "--kill", sent.strip(), env=cluster.environ)
    assert check(out.read_bytes().splitlines(), slides=1, repeats=False) > 1000


def test_a_driver_there_keeps_its_checkpoint_in_s3(tmp_path: Path, cluster: Yarn) -> None:
    with s3_server(tmp_path) as s3:
        config = counted(tmp_path, cluster, **installed(tmp_path), **s3.conf())
        code, out, err, _ = streamer(
            *("submit", config, "--master", "yarn", "--wait", "-s", "spark.environment=installed"),
            *("--checkpoint", f"s3a://{BUCKET}/checkpoints/cars"),
            env={**cluster.environ, "TOKEN": SECRET},
        )
        log = cluster.written(out.strip(), "streamer.log")
        assert code == 0, err + log
        assert_exact(cluster.written(out.strip(), "stdout"))
        assert s3.names("checkpoints/cars/")


@pytest.mark.parametrize("way", ["here", "there"])
def test_a_node_that_lacks_the_program_is_named(way: str, tmp_path: Path, cluster: Yarn) -> None:
    bare = tmp_path / "python3"
    bare.write_text('#!/bin/sh\nPYTHONPATH= exec /usr/bin/python3 -S "$@"\n')
    bare.chmod(0o755)
    config = tmp_path / "one.yaml"
    config.write_text(
        "input: {generate: {mapping: root = 1, count: 1}}\noutput: {stdout: {}}"
        + section(cluster, **{"spark.pyspark.python": str(bare)})
    )
    before = ("-c", config) if way == "here" else ("submit", config, "--wait")
    code, _, err, _ = streamer(
        *(*before, "--master", "yarn", "-s", "spark.environment=installed"),
        *("--checkpoint", tmp_path / "checkpoint"),
        env=cluster.environ,
    )
    assert code == 1
    assert "lacks the Python package streamer: let spark.environment be `packed`" in err


@pytest.mark.parametrize("way", ["here", "there"])
def test_a_cluster_that_lacks_its_manager_is_named(way: str, tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "yarn-site.xml").write_text(
        "<configuration><property><name>yarn.resourcemanager.address</name>"
        f"<value>127.0.0.1:{port}</value></property></configuration>"
    )
    config = tmp_path / "one.yaml"
    config.write_text(
        "input: {generate: {mapping: root = 1, count: 1}}\noutput: {stdout: {}}\n"
        "spark: {environment: installed}\n"
    )
    began = time.monotonic()
    code, _, err, _ = streamer(
        *(("-c", config) if way == "here" else ("submit", config)),
        *("--master", "yarn", "--checkpoint", tmp_path / "checkpoint"),
        env={**os.environ, "HADOOP_CONF_DIR": str(tmp_path)},
    )
    assert code == 1
    assert f"ResourceManager does not answer at 127.0.0.1:{port}: " in err
    assert time.monotonic() - began < 60
    print(err)
