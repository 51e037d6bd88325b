"""A checkpoint in S3: kill -9, and a start with an empty disk goes on, every event exactly once."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.servers import free_port
from tests.servers.kafka import Kafka
from tests.servers.s3 import BUCKET, S3, SECRET, s3_server
from tests.servers.spark_cluster import spark_cluster
from tests.slowness import wall_slowness

from .program import Program
from .test_kill import CONFIG, check, read_whole_lines

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

# By hand: STREAMER_ELSEWHERE=all STREAMER_KILLS=20 pytest tests/faults/test_elsewhere.py
BY_HAND = os.environ.get("STREAMER_ELSEWHERE") == "all"
KILLS = int(os.environ.get("STREAMER_KILLS", "1"))
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
TAKEOVER = 30.0
"""Seconds after which another machine has the checkpoint of a program that was killed."""
WAITS = "The checkpoint was not released; waiting until it is sure that nobody uses it"


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[S3]:
    with s3_server(tmp_path) as found:
        yield found


def written(tmp_path: Path, s3: S3, out: Path, **conf: str) -> Path:
    """Write the config of a stream whose settings are those of the server."""
    config = tmp_path / "kill.yaml"
    target = f"file: {{path: '{out}', codec: lines}}"
    text = CONFIG.format(first=1, size=10, slide="", all="", output=target)
    lines = (f"    {name}: '{value}'\n" for name, value in {**s3.conf(), **conf}.items())
    config.write_text(text + "  conf:\n" + "".join(lines))
    return config


@contextmanager
def machine(
    name: Path, config: Path, *more: str, path: str = f"s3a://{BUCKET}/ours/a"
) -> Iterator[Program]:
    """Run the stream as if on a machine that has nothing but its config."""
    name.mkdir(exist_ok=True)
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(name / "state")
    try:
        running = Program(config, name / "none", "--checkpoint", path, *more, cwd=name)
    finally:
        if before is None:
            del os.environ["XDG_STATE_HOME"]
        else:
            os.environ["XDG_STATE_HOME"] = before
    try:
        yield running
    finally:
        running.close()
        assert SECRET not in running.log_path.read_text(), "a log has the key"


def grown(run: Program, out: Path) -> None:
    size = out.stat().st_size if out.exists() else 0
    run.wait_for(lambda: out.exists() and out.stat().st_size > size, 240, "for windows")


def killed_again_and_again(tmp_path: Path, s3: S3, *more: str) -> None:
    print(f"STREAMER_SEED={SEED}")
    rng = random.Random(SEED)
    out = tmp_path / "out.jsonl"
    config = written(tmp_path, s3, out)
    for kill in range(KILLS):
        with machine(tmp_path / f"machine-{kill}", config, *more) as run:
            run.wait_running()
            grown(run, out)
            time.sleep(rng.uniform(0, 3))
            run.kill()
    assert any("/spark/commits/" in name for name in s3.names("ours/a/"))
    began = time.monotonic()
    with machine(tmp_path / "last", config, *more) as run:
        run.wait_for(lambda: WAITS in run.messages(), 120, "for the lease")
        at = time.monotonic()
        run.wait_for(lambda: "Starting" in run.messages(), 120, "for the lease")
        print("seconds to the lease:", time.monotonic() - at, "in all:", time.monotonic() - began)
        # A cluster then gives it executors, or waits for those of the former one to go.
        assert more or time.monotonic() - at < TAKEOVER * wall_slowness()
        run.wait_running()
        grown(run, out)
        with machine(tmp_path / "second", config, *more) as second:
            assert second.finish(240) == 1
            refused = second.messages()[-1]
        assert f"another streamer uses the checkpoint s3a://{BUCKET}/ours/a (" in refused
        grown(run, out)
        assert run.stop() == 0
    # What was given back is free at once, for any machine.
    with machine(tmp_path / "after", config, "-s", "input.generate.count=1", *more) as run:
        assert run.finish(240) == 0
        assert WAITS not in run.messages()
    # The journal of the file stayed on the machines that were killed: what they wrote comes again.
    lines = [line for line in read_whole_lines(out) if line]
    assert check(lines, slides=1, repeats=True) > 1000


SHORT = """
input:
  generate:
    interval: 10ms
    mapping: |
      root.id = count("id") - 1
      root.at = now()
buffer:
  tumbling_window: {{ timestamp_mapping: root = this.at, size: 1s }}
pipeline:
  processors:
    - mutation: root.version = table("versions").get("newest").number
output: {{ file: {{ path: '{out}', codec: lines }} }}
table_resources:
  - label: versions
    json_lines: {{ path: '{table}', key: name, refresh_interval: 200ms }}
spark:
  master: local[2]
  shards: 1
  conf:
"""


def test_a_machine_that_has_nothing_goes_on_where_another_was_killed(
    tmp_path: Path, s3: S3
) -> None:
    out, config = tmp_path / "out.jsonl", write_short(tmp_path, s3.conf())
    with changing_table(tmp_path), machine(tmp_path / "one", config) as run:
        grown(run, out)
        grown(run, out)
        run.kill()
    assert any("/spark/commits/" in name for name in s3.names("ours/a/"))
    with changing_table(tmp_path), machine(tmp_path / "other", config) as run:
        run.wait_for(lambda: WAITS in run.messages(), 120, "for the lease")
        began = time.monotonic()
        run.wait_for(lambda: "Starting" in run.messages(), 120, "for the lease")
        print("seconds to the lease:", took := time.monotonic() - began)
        assert took < TAKEOVER * wall_slowness()
        with machine(tmp_path / "second", config) as second:
            assert second.finish(240) == 1
            assert f"uses the checkpoint s3a://{BUCKET}/ours/a (" in second.messages()[-1]
        grown(run, out)
        assert run.stop() == 0
    check_short(out)
    assert 1 <= sum(".table" in name for name in s3.names("ours/a/tables/versions/")) <= 3


def check_short(out: Path) -> None:
    """Check that each event came, those of one micro-batch perhaps again, with the same table."""
    # The journal of the file stayed on the machine that was killed: its last windows come again.
    messages = [json.loads(line) for line in read_whole(out)]
    found = Counter(one["id"] for one in messages)
    assert set(found) == set(range(len(found))), "events are missing"
    assert sum(times > 1 for times in found.values()) <= 2000, "more than a micro-batch came again"
    # And they come with the version of the table that they had: it is in the checkpoint.
    versions = {(one["id"], one["version"]) for one in messages}
    assert len(versions) == len(found) and len({version for _, version in versions}) > 1


def write_short(tmp_path: Path, conf: Mapping[str, str]) -> Path:
    """Write the config of a stream whose windows last a second, and its table."""
    config, table = tmp_path / "short.yaml", tmp_path / "table.jsonl"
    write_table(table, 0)
    settings = "".join(f"    {name}: '{value}'\n" for name, value in conf.items())
    config.write_text(SHORT.format(out=tmp_path / "out.jsonl", table=table) + settings)
    return config


def write_table(table: Path, number: int) -> None:
    written = table.with_suffix(".new")
    written.write_text(json.dumps({"name": "newest", "number": number}) + "\n")
    written.replace(table)


@contextmanager
def changing_table(tmp_path: Path) -> Iterator[None]:
    """Change the table three times a second."""
    over = threading.Event()

    def change() -> None:
        while not over.wait(0.3):
            write_table(tmp_path / "table.jsonl", time.time_ns())

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def read_whole(out: Path) -> Iterator[bytes]:
    """Give the lines; that of a program which was killed while it wrote may be cut off."""
    for line in out.read_bytes().split(b"\n")[:-1]:
        yield line[line.rfind(b"{") :]


by_hand = pytest.mark.skipif(not BY_HAND, reason="by hand: STREAMER_ELSEWHERE=all")


@by_hand
def test_every_event_is_in_exactly_its_windows_whichever_machine_runs(
    tmp_path: Path, s3: S3
) -> None:
    killed_again_and_again(tmp_path, s3)


@by_hand
def test_one_that_hangs_is_followed_and_ends_when_it_wakes_up(tmp_path: Path, s3: S3) -> None:
    out = tmp_path / "out.jsonl"
    config = written(tmp_path, s3, out)
    with machine(tmp_path / "one", config) as hung:
        grown(hung, out)
        hung.process.send_signal(signal.SIGSTOP)
        with machine(tmp_path / "other", config) as run:
            run.wait_running()
            grown(run, out)
            hung.process.send_signal(signal.SIGCONT)
            assert hung.finish(60) == 1
            over = f"another streamer has taken the checkpoint s3a://{BUCKET}/ours/a over ("
            assert hung.messages()[-1].startswith(over)
            grown(run, out)
            assert run.stop() == 0
        with machine(tmp_path / "after", config, "-s", "input.generate.count=1") as run:
            assert run.finish(240) == 0
    lines = [line for line in read_whole_lines(out) if line]
    assert check(lines, slides=1, repeats=True) > 1000


@by_hand
def test_a_stream_goes_on_when_s3_answers_again(tmp_path: Path, s3: S3) -> None:
    out = tmp_path / "out.jsonl"
    config = written(tmp_path, s3, out)
    with machine(tmp_path / "one", config) as run:
        grown(run, out)
        os.kill(s3.pid, signal.SIGSTOP)
        time.sleep(45)
        os.kill(s3.pid, signal.SIGCONT)
        for _ in range(3):
            grown(run, out)
        run.kill()
    # The same machine knows that the program and its JVM are gone.
    with machine(tmp_path / "one", config, "-s", "input.generate.count=1") as run:
        assert run.finish(240) == 0
        assert WAITS not in run.messages()
    assert check(out.read_bytes().splitlines(), slides=1, repeats=False) > 1000


@by_hand
def test_windows_that_begin_anew_do_so_beside_the_former_ones(tmp_path: Path, s3: S3) -> None:
    out, config = tmp_path / "out.jsonl", write_short(tmp_path, s3.conf())
    with machine(tmp_path / "one", config, "-w", "--on-reset", "drain") as run:
        grown(run, out)
        config.write_text(config.read_text().replace("size: 1s", "size: 2s"))
        run.wait_for(lambda: s3.names("ours/a/spark-1/commits/") != [], 120, "for the deploy")
        run.wait_for(lambda: s3.names("ours/a/spark/") == [], 60, "for the former one to go")
        grown(run, out)
        run.kill()
    with machine(tmp_path / "one", config, "-s", "input.generate.count=1") as run:
        assert run.finish(240) == 0
    messages = [json.loads(line) for line in read_whole(out)]
    found = Counter(one["id"] for one in messages)
    assert set(found) == set(range(len(found))) and set(found.values()) == {1}


@by_hand
def test_on_a_cluster_no_disk_is_shared_by_the_drivers(tmp_path: Path, s3: S3) -> None:
    with spark_cluster(tmp_path / "spark", 2) as cluster:
        killed_again_and_again(tmp_path, s3, "--master", cluster.url)


ASKED = """
import json, os, sys, time
from streamer.core.errors import StreamerError
from streamer.spark.checkpoint.remote_checkpoint import file_manager_settings, start_and_acquire
from streamer.spark.jars.s3_jars import s3_settings
from streamer.spark.session.session_start import start_session

conf = json.loads(sys.argv[1])
said = lambda *line: None
conf |= s3_settings(conf, os.environ, said) | file_manager_settings("s3a://x/y")
session = start_session("asked", "local[1]", conf, said, "OFF")
hadoop = session.sparkContext._jsc.hadoopConfiguration()
for line in sys.stdin:
    url, endpoint = line.split()
    hadoop.set("fs.s3a.endpoint", endpoint)
    began = time.monotonic()
    try:
        environ = {"XDG_STATE_HOME": sys.argv[2]}
        held, _ = start_and_acquire(url, environ, lambda lock: session, said)
        held.root.files.create(url + "/once", b"first")
        try:
            held.root.files.create(url + "/once", b"second")
        except FileExistsError:
            text = "taken; " + (held.root / "once").read_text()
    except StreamerError as e:
        text = str(e)
    print(json.dumps([text, time.monotonic() - began]), flush=True)
"""


def test_what_cannot_be_reached_is_said_in_a_sentence_and_in_time(tmp_path: Path, s3: S3) -> None:
    command = [sys.executable, "-c", ASKED, json.dumps(s3.conf()), str(tmp_path / "state")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as asked:

        def ask(url: str, endpoint: str) -> str:
            assert asked.stdin and asked.stdout
            print(url, endpoint, file=asked.stdin, flush=True)
            text, seconds = json.loads(asked.stdout.readline())
            print(round(seconds, 1), text)
            assert seconds < 60 and "\n" not in text and SECRET not in text
            return str(text)

        assert ask(f"s3a://{BUCKET}/a", s3.url) == "taken; first"
        gone = ask("s3a://nowhere/a", s3.url)
        assert gone.startswith(
            "the checkpoint s3a://nowhere/a cannot be used: The specified bucket does not exist ("
        )
        dead = ask(f"s3a://{BUCKET}/b", f"http://127.0.0.1:{free_port()}")
        assert "cannot be used: " in dead and "Connection refused" in dead
        if BY_HAND:
            with socket.create_server(("127.0.0.1", 0)) as silent:
                port = silent.getsockname()[1]
                assert "cannot be used: " in ask(f"s3a://{BUCKET}/d", f"http://127.0.0.1:{port}")
        # From here on the server looks at keys, of which it knows none.
        httpx2.post(f"{s3.url}/moto-api/reset-auth", content=b"0").raise_for_status()
        refused = ask(f"s3a://{BUCKET}/c", s3.url)
        assert "does not exist in our records (status 403); see that it is" in refused
        asked.communicate(timeout=60)


@by_hand
def test_positions_of_kafka_are_shown_and_moved_there(tmp_path: Path, s3: S3, kafka: Kafka) -> None:
    topic, out = kafka.create("moved-in-s3"), tmp_path / "out.txt"
    kafka.produce(topic, *map(str, range(5)))
    conf = "".join(f"    {name}: '{value}'\n" for name, value in s3.conf().items())
    config = tmp_path / "kafka.yaml"
    config.write_text(
        f"input: {{redpanda: {{seed_brokers: ['{kafka.bootstrap}'], topics: [{topic}]}}}}\n"
        f"output: {{file: {{path: '{out}', codec: lines}}}}\n"
        f"spark:\n  master: local[1]\n  conf:\n{conf}"
    )
    place = f"s3a://{BUCKET}/ours/a"

    def read(count: int) -> list[str]:
        with machine(tmp_path / "one", config) as run:
            run.wait_for(
                lambda: out.exists() and len(out.read_text().split()) >= count, 240, "for messages"
            )
            assert run.stop() == 0
        return out.read_text().split()

    def call(*arguments: str, on: str = "one", code: int = 0) -> str:
        command = [sys.executable, "-m", "streamer.cli.main", "kafka-offsets", str(config)]
        environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / on / "state")}
        ran = subprocess.run(
            [*command, "--checkpoint", place, *arguments],
            capture_output=True, text=True, timeout=240, env=environment,
        )  # fmt: skip
        assert ran.returncode == code, ran.stderr
        assert SECRET not in ran.stdout + ran.stderr
        return ran.stdout + ran.stderr if code else ran.stdout

    assert read(5) == list("01234")
    assert "do this there" in call("--json", on="other", code=1)
    shown = json.loads(call("--json"))
    assert (shown["position"], shown["lag"]) == (5, 0)
    call("--to-offset", "3")
    assert json.loads(call("--json"))["position"] == 5, "nothing is changed without --apply"
    call("--to-offset", "3", "--apply")
    assert json.loads(call("--json"))["position"] == 3
    assert read(7) == [*"01234", *"34"]
