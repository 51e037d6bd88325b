"""Spark's Python processes, forked from one that has imported all that they need.

Spark starts a whole Python for each stream, which plans its micro-batches for as long as it runs,
and four more that fork workers. Each takes a CPU second of imports, and 25 MB of its own; a fork
takes a fraction of either. So a program keeps one process from which a small client
(`streamer.spark.fork_server.fork_client`), that Spark takes for its Python, has all others forked.
It imports while Spark starts: a start waits for none of it, and is a second shorter.

Nothing here starts a thread before a fork, which would not survive it.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from streamer.spark.compat import FALLBACKS
from streamer.spark.fork_server.fork_client import (
    DAEMONS,
    NOTES_FILE,
    PLANNERS,
    SOCKET_VARIABLE,
    receive_request,
)
from streamer.spark.fork_server.parent_watch import end_children_with_this_process
from streamer.spark.fork_server.worker_daemon import WORKER_MODULES, import_modules

_PRELOADED_MODULES: Final = (*WORKER_MODULES, "streamer.spark.query.source", *PLANNERS)
_LISTEN_BACKLOG: Final = 128
_DIRECTORY_PREFIX: Final = "streamer-forks-"
_MIN_ABANDONED_AGE_S: Final = 60.0


class ForkServer:
    """The process that planners and workers are forked from, as the driver has it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Listen for those who ask; they wait until the process is started, and has imported all.

        Args:
            environment: of the driver.
        """
        _remove_abandoned_directories()
        # Sockets have short paths, and nobody else is to reach this one.
        self._directory = tempfile.mkdtemp(prefix=_DIRECTORY_PREFIX)
        self.path = os.path.join(self._directory, "socket")
        self._notes = Path(self._directory, NOTES_FILE)
        FALLBACKS.watch_notes(self._notes)
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        # Who asks before it serves is to find it, and wait.
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listener.bind(self.path)
            self._listener.listen(_LISTEN_BACKLOG)
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """Start the process, if it is not started yet."""
        if self._process is not None:
            return
        root = str(Path(__file__).resolve().parents[3])
        environment = self._environment
        paths = [root, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
        descriptor = self._listener.fileno()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "streamer.spark.fork_server.fork_server",
                str(descriptor),
                self._directory,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={
                **environment,
                "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
                "OPENBLAS_NUM_THREADS": "1",
                # As Spark gives it to all that it starts.
                "PYTHONHASHSEED": environment.get("PYTHONHASHSEED", "0"),
            },
            pass_fds=(descriptor,),
            # Ctrl-C is for the program alone.
            start_new_session=True,
        )
        # Who asks when the process has ended is refused, and starts a Python of its own.
        self._listener.close()

    def close(self) -> None:
        """Stop the server; processes that it forked end with their stream."""
        self._listener.close()
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        FALLBACKS.forget_notes(self._notes)
        shutil.rmtree(self._directory, ignore_errors=True)


def _remove_abandoned_directories() -> None:
    """Delete what earlier programs of this user have left, which were killed with all they had."""
    for directory in Path(tempfile.gettempdir()).glob(f"{_DIRECTORY_PREFIX}*"):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            directory_stat = directory.lstat()
            # One that has just been made may not listen yet.
            if (
                directory_stat.st_uid != os.getuid()
                or time.time() - directory_stat.st_mtime < _MIN_ABANDONED_AGE_S
            ):
                continue
            try:
                # Who listens forks for nobody that hangs up.
                connection.connect(str(directory / "socket"))
            except (ConnectionRefusedError, FileNotFoundError):
                shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def publish_fork_socket(server: ForkServer | None) -> Iterator[None]:
    """Set the fork server's socket in this process's environment, while the JVM is started.

    The JVM hands on to what it starts the environment that it finds when it starts.

    Args:
        server: the process to fork from; None for none.
    """
    if server is None:
        yield
        return
    os.environ[SOCKET_VARIABLE] = server.path
    try:
        yield
    finally:
        os.environ.pop(SOCKET_VARIABLE, None)


def main(listener: socket.socket, directory: str) -> None:
    """Fork for all who ask, until the standard input ends: the driver has gone.

    Args:
        listener: where they ask.
        directory: a directory to delete at the end.
    """
    import_modules(_PRELOADED_MODULES)
    gc.collect()
    # A collection that wrote marks into what is shared would make it every fork's own.
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    poller = select.poll()
    poller.register(0, select.POLLIN)
    poller.register(listener, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poller.poll()}
        if 0 in ready:
            shutil.rmtree(directory, ignore_errors=True)
            return
        _serve_one(listener)


def _serve_one(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    files: list[int] = []
    try:
        connection.settimeout(10)
        request, files = receive_request(connection)
        pid = os.fork()
        if pid == 0:
            listener.close()
            _run_fork(request, files, connection)
        connection.sendall(str(pid).encode())
    except (OSError, ValueError):
        # The client starts a Python of its own then.
        pass
    finally:
        connection.close()
        for file in files:
            os.close(file)


def _run_fork(request: Mapping[str, Any], files: list[int], connection: socket.socket) -> None:
    """In the forked child: run the requested pyspark module, then exit with its status."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.chdir(request["directory"])
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.argv = [request["module"], *request["arguments"]]
        if request["module"] in DAEMONS:
            # The client waits until the last who has this connection has gone.
            _run_daemon(files)
        else:
            connection.close()
            for file in files:
                os.close(file)
            _run_planner(request["module"])
        code = 0
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 1
    except (BrokenPipeError, ConnectionResetError):
        # Spark has hung up, and there is nobody to answer.
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code & 0xFF)


def _run_daemon(files: list[int]) -> None:
    from pyspark.daemon import manager

    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    end_children_with_this_process()
    manager()


def _run_planner(module: str) -> None:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.serializers import write_int
    from pyspark.util import local_connect_and_auth

    null_device = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null_device, 0)
    os.close(null_device)
    environment = os.environ
    port = int(environment.get("PYTHON_WORKER_FACTORY_PORT", -1))
    address = environment.get("PYTHON_WORKER_FACTORY_SOCK_PATH", port)
    try:
        spark, connection = local_connect_and_auth(
            address, environment.get("PYTHON_WORKER_FACTORY_SECRET")
        )
    except PySparkRuntimeError as e:
        if e.getCondition() == "CANNOT_OPEN_SOCKET":
            return  # The stream was stopped before this had begun. Else Spark says who is missing.
        raise
    connection.settimeout(None)
    write_int(os.getpid(), spark)
    spark.flush()
    # Spark ends a planner by a signal to the process that it has started, which was the client.
    # Its other sign is that it hangs up.
    _HangupWatch(connection.fileno()).start()
    importlib.import_module(module).main(spark, spark)


class _HangupWatch(threading.Thread):
    """Ends this process when Spark has hung up, whatever it waits for."""

    def __init__(self, connection: int) -> None:
        super().__init__(daemon=True, name="hung-up")
        self._connection = os.dup(connection)

    def run(self) -> None:
        poller = select.poll()
        # Elsewhere there is no POLLRDHUP, and the end of a connection is a POLLHUP.
        hung_up = select.POLLHUP
        if sys.platform == "linux":
            hung_up = select.POLLRDHUP
        poller.register(self._connection, hung_up)
        poller.poll()
        os._exit(0)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
