"""A program that opens an input and receives until it is killed: `DIRECTORY CONFIG`."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from tests.components.inputs.landing import receiving


def kill_receivers(
    directory: Path, config: str, times: int, work: Callable[[], None] | None = None
) -> None:
    """Run the program again and again, and kill it while it receives what `work` makes.

    Args:
        directory: of the input.
        config: of the input.
        times: how often.
        work: makes changes; it is called once for each program that runs. Without it, a program is
            killed behind its first message.
    """
    random = Random(7)
    command = [sys.executable, "-m", "tests.connectors.cdc.receiver", str(directory), config]
    for _ in range(times):
        program = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert program.stdout is not None
        try:
            assert program.stdout.read(1) == b"+"
            if work is not None:
                work()
            else:
                assert program.stdout.read(1) == b"1"
            time.sleep(random.uniform(0, 0.1))  # where it is killed is the dice's, not the test's
        finally:
            program.kill()
            program.wait()
            program.stdout.close()


@contextmanager
def garbage_server(greeting: bytes) -> Iterator[int]:
    """Run a server that sends the same to everybody, and ends the connection; give its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    with listener.accept()[0] as one:
                        one.sendall(greeting)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


if __name__ == "__main__":
    with receiving(Path(sys.argv[1]), sys.argv[2]) as taken:
        taken.counted("input_connection_up")
        print("+", end="", flush=True)
        taken.until(bool)
        print("1", end="", flush=True)
        while True:
            time.sleep(1)
