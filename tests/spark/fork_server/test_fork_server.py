"""What is forked for Spark, asked for as the JVM does: nothing here starts one."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamer.spark.fork_server import fork_client
from streamer.spark.fork_server.fork_server import ForkServer
from tests.processes import children, parent, runs
from tests.servers import free_port

# Each imports what workers need, which takes a second or two.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CLIENT = [sys.executable, "-E", "-S", fork_client.__file__]
SECRET = "s3cret"


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServer]:
    running = ForkServer(os.environ)
    running.start()
    try:
        yield running
    finally:
        running.close()


def start(forks: ForkServer | None, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
    path = forks.path if forks is not None else "/nobody/here"
    # A socket in a directory needs no secret, and must not have one.
    if "PYTHON_WORKER_FACTORY_SOCK_PATH" not in env:
        env["PYTHON_WORKER_FACTORY_SECRET"] = SECRET
    return subprocess.Popen(
        [*CLIENT, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, fork_client.SOCKET_VARIABLE: path, **env},
    )


def wait_gone(pid: int) -> None:
    until = time.monotonic() + 60
    while runs(pid):
        assert time.monotonic() < until, f"{pid} is still there"
        time.sleep(0.02)


def connected(listener: socket.socket) -> tuple[socket.socket, int]:
    """Take a planner's connection as the JVM does; return it, and the planner's process id."""
    listener.settimeout(120)
    connection, _ = listener.accept()
    connection.settimeout(120)
    size = struct.unpack("!i", connection.recv(4, socket.MSG_WAITALL))[0]
    assert connection.recv(size, socket.MSG_WAITALL).decode() == SECRET
    connection.sendall(struct.pack("!i", 2) + b"ok")
    return connection, struct.unpack("!i", connection.recv(4, socket.MSG_WAITALL))[0]


def test_a_planner_is_forked_and_ends_when_spark_hangs_up(forks: ForkServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        client = start(forks, "-m", fork_client.PLANNERS[0], PYTHON_WORKER_FACTORY_PORT=port)
        connection, pid = connected(listener)
        # The client has nothing more to do.
        assert client.wait(60) == 0
        assert parent(pid) == forks._process.pid
        assert runs(pid)
        connection.close()
        wait_gone(pid)


def test_a_planner_that_nobody_waits_for_any_more_ends_and_says_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    # A stream that is stopped at once takes the socket away before its planner has come.
    ours = ForkServer(os.environ)
    ours.start()
    try:
        for where in ({"SOCK_PATH": "/nobody/here.sock"}, {"PORT": str(free_port())}):
            given = {f"PYTHON_WORKER_FACTORY_{name}": value for name, value in where.items()}
            assert start(ours, "-m", fork_client.PLANNERS[0], **given).wait(60) == 0
            for pid in children(ours._process.pid):
                wait_gone(pid)
    finally:
        ours.close()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("how", ["closed", "ended"])
def test_a_daemon_is_forked_and_ends_as_spark_ends_it(how: str, forks: ForkServer) -> None:
    client = start(forks, "-m", "pyspark.daemon", "pyspark.sql.worker.create_data_source")
    assert client.stdin is not None and client.stdout is not None
    port = struct.unpack("!i", client.stdout.read(4))[0]
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        worker = struct.unpack("!i", connection.recv(4, socket.MSG_WAITALL))[0]
        daemon = parent(worker)
        assert parent(daemon) == forks._process.pid
    if how == "closed":
        client.stdin.close()
    else:
        # Java closes its ends of the pipes, too, when it destroys a process: a signal alone is lost
        # while hooks of a fork run, which swallow what its handler raises.
        client.terminate()
        client.stdin.close()
    client.wait(60)
    wait_gone(daemon)
    wait_gone(worker)


def test_one_that_is_to_end_before_it_knows_its_daemon_ends_it_all_the_same() -> None:
    # The daemon answers by itself: Spark may know of it, and be done with it, before its client.
    with (
        tempfile.TemporaryDirectory() as home,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener,
        subprocess.Popen(["sleep", "60"]) as daemon,
    ):
        listener.bind(os.path.join(home, "socket"))
        listener.listen()
        client = subprocess.Popen(
            [*CLIENT, "-m", "pyspark.daemon"],
            env={**os.environ, fork_client.SOCKET_VARIABLE: os.path.join(home, "socket")},
        )
        try:
            asked, _ = listener.accept()
            _, files = fork_client.receive_request(asked)
            client.terminate()
            time.sleep(0.2)
            asked.sendall(str(daemon.pid).encode())
            assert daemon.wait(60) == -signal.SIGTERM
            for file in files:
                os.close(file)
            asked.close()
            assert client.wait(60) == 0
        finally:
            daemon.kill()
            client.kill()


def test_without_somebody_to_ask_it_is_a_python_like_any_other() -> None:
    client = start(None, "-m", "pyspark.daemon", "pyspark.sql.worker.create_data_source")
    assert client.stdin is not None and client.stdout is not None
    assert struct.unpack("!i", client.stdout.read(4))[0] > 0
    client.stdin.close()
    client.wait(60)
    other = start(None, "-c", "import sys; sys.exit(7)")
    assert other.wait(60) == 7


def test_it_ends_with_the_driver_and_leaves_nothing() -> None:
    ours = ForkServer(os.environ)
    # Who asks before it is started waits for it.
    early = start(ours, "-m", fork_client.PLANNERS[0], PYTHON_WORKER_FACTORY_SOCK_PATH="/none.sock")
    time.sleep(0.2)
    assert early.poll() is None
    ours.start()
    assert early.wait(60) == 0
    home = os.path.dirname(ours.path)
    # A driver that is killed closes its end without a word.
    assert ours._process.stdin is not None
    ours._process.stdin.close()
    assert ours._process.wait(120) == 0
    assert not os.path.exists(home)


def test_what_killed_programs_have_left_is_deleted_and_what_serves_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    serving = ForkServer(os.environ)
    abandoned = tmp_path / "streamer-forks-abandoned"
    abandoned.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(abandoned / "socket"))
    for home in tmp_path.iterdir():
        os.utime(home, (time.time() - 100, time.time() - 100))
    try:
        ForkServer(os.environ).close()
        assert [str(path / "socket") for path in tmp_path.iterdir()] == [serving.path]
    finally:
        serving.close()
