"""`streamer blobl` as a process: pipes, processes, signals, terminals."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.blobl.terminal import ROOT, Terminal
from tests.processes import children, runs

COMMAND = (sys.executable, "-m", "streamer.cli.main", "blobl")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
# Some fail, some are deleted, and their work differs: what is done first is not what comes first.
MAPPING = """
root = match {
  this.n % 7 == 3 => throw("no %v".format(this.n))
  this.n % 11 == 5 => deleted()
  this.n % 2 == 0 => {"n": this.n, "sum": range(0, 50).fold(0, i -> i.tally + i.value)}
  _ => this
}
"""
Piped = subprocess.Popen[bytes]


@contextmanager
def running(*arguments: str) -> Iterator[Piped]:
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Whoever runs the suite in the background has it ignored, and so would this process.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def send(process: Piped, text: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.flush()


def receive(process: Piped, seconds: float = 20) -> bytes:
    assert process.stdout is not None
    waiting = select.poll()  # unlike `select`, it takes any descriptor
    waiting.register(process.stdout, select.POLLIN)
    ready = waiting.poll(seconds * 1e3)
    return os.read(process.stdout.fileno(), 65536) if ready else b""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_result_comes_before_the_next_line_is_there(threads: str) -> None:
    with running("-t", threads, "root = this.a") as process:
        for number in range(3):
            send(process, b'{"a":%d}\n{"a"' % number)
            assert receive(process) == b"%d\n" % number
            send(process, b":null}\n")
            assert receive(process) == b"null\n"


def test_several_processes_print_what_one_does_in_the_same_order() -> None:
    lines = b"".join(b'{"n":%d}\n' % n for n in range(6_000))
    results = [
        subprocess.run(
            [*COMMAND, "-t", threads, MAPPING], env=ENVIRONMENT, input=lines, capture_output=True
        )
        for threads in ("1", "3")
    ]
    assert results[0].returncode == 0
    assert results[0].stdout.count(b"\n") + results[0].stderr.count(b"\n") == 6_000
    assert results[0].stderr.startswith(
        b"failed to execute map: failed assignment (line 2): no 3\n"
    )
    for stream in ("stdout", "stderr"):
        assert getattr(results[0], stream) == getattr(results[1], stream)


def test_what_counts_across_documents_is_left_to_one_process() -> None:
    run = subprocess.run(
        [*COMMAND, "-t", "3", 'root = count("x")'],
        env=ENVIRONMENT,
        input=b"{}\n" * 3000,
        capture_output=True,
    )
    assert run.stdout.split() == [b"%d" % n for n in range(1, 3001)]
    assert run.stderr == b"the mapping counts across documents, so one process applies it\n"


@pytest.mark.slow
def test_failures_stand_between_results_where_both_go_to_one_place() -> None:
    run = subprocess.run(
        [*COMMAND, "root = this.uppercase()"],
        env=ENVIRONMENT,
        input=b'"a"\n1\n"b"\n2\n',
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    lines = run.stdout.decode().split("\n")
    assert [line[:22] for line in lines] == [
        "A",
        "failed to execute map:",
        "B",
        "failed to execute map:",
        "",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_reader_that_leaves_ends_it_quietly(threads: str) -> None:
    with running("-t", threads, "root = this") as process:
        assert process.stdin is not None and process.stdout is not None
        send(process, b"1\n")
        assert receive(process) == b"1\n"
        process.stdout.close()
        try:
            while process.poll() is None:
                send(process, b"1\n" * 10_000)
        except BrokenPipeError:
            pass
        assert process.wait(60) == 1
        assert process.stderr is not None and process.stderr.read() == b""


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2"])
def test_ctrl_c_ends_all_of_it(threads: str) -> None:
    with running("-t", threads, "root = this") as process:
        send(process, b"1\n")
        assert receive(process) == b"1\n"
        at_work = children(process.pid)
        assert len(at_work) == (0 if threads == "1" else 2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said.strip()) == (1, b"interrupted")
        assert not any(map(runs, at_work))


@pytest.mark.slow
def test_processes_end_when_the_one_that_reads_is_killed() -> None:
    with running("-t", "2", "root = this") as process:
        send(process, b"1\n")
        assert receive(process) == b"1\n"
        at_work = children(process.pid)
        process.kill()
        # They hold its output open while they live.
        while receive(process):
            pass
        assert process.wait(60) == -signal.SIGKILL
        until = time.monotonic() + 60
        while any(map(runs, at_work)):
            assert time.monotonic() < until
            time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("noticed", [False, True], ids=["in its task", "before the next task"])
def test_a_process_that_dies_is_an_error(noticed: bool) -> None:
    with running("-t", "2", "root = this") as process:
        send(process, b"1\n")
        assert receive(process) == b"1\n"
        at_work = children(process.pid)
        os.kill(at_work[0], signal.SIGKILL)
        while noticed and any(map(runs, at_work)):
            # The pool has noticed once it has ended the other process, too.
            time.sleep(0.02)
        _, said = process.communicate(b"2\n" * 5000, timeout=60)
        assert process.returncode == 1
        assert b"error: a process that applied the mapping died" in said


@pytest.mark.slow
def test_failures_are_red_on_a_terminal_and_plain_on_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("1\n")
    with Terminal(["blobl", "-i", "in", "root = this.uppercase()"], tmp_path) as terminal:
        terminal.wait("failed to execute map")
        assert terminal.wait_for_end() == 0
        assert terminal.screen.buffer[0][0].fg == "red"
    with running("root = this.uppercase()") as process:
        _, said = process.communicate(b"1\n")
        assert said.startswith(b"failed to execute map: ")


def test_a_mapping_file_finds_what_it_imports_beside_it(tmp_path: Path) -> None:
    (tmp_path / "maps.blobl").write_text("map up { root = this.uppercase() }\n")
    (tmp_path / "m.blobl").write_text('import "./maps.blobl"\nroot = this.apply("up")\n')
    with running("-f", str(tmp_path / "m.blobl")) as process:
        assert process.communicate(b'"a"\n') == (b"A\n", b"")
    with running("-f", str(tmp_path / "m.blobl"), "--no-impure") as process:
        _, said = process.communicate(b'"a"\n')
        assert process.returncode == 1
        assert b"--no-impure" in said
