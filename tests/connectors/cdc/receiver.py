"""A program that opens an input and receives until it is killed: `DIRECTORY CONFIG`."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.components.inputs.landing import receiving


def kill_receivers(directory: Path, config: str, times: int, work: Callable[[], None]) -> None:
    """Run the program again and again, and kill it while it receives what `work` makes.

    Args:
        directory: of the input.
        config: of the input.
        times: how often.
        work: makes changes; it is called once for each program that runs.
    """
    random = Random(7)
    command = [sys.executable, "-m", "tests.connectors.cdc.receiver", str(directory), config]
    for _ in range(times):
        program = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert program.stdout is not None
        try:
            assert program.stdout.read(1) == b"+"
            work()
            time.sleep(random.uniform(0, 0.1))  # where it is killed is the dice's, not the test's
        finally:
            program.kill()
            program.wait()
            program.stdout.close()


if __name__ == "__main__":
    with receiving(Path(sys.argv[1]), sys.argv[2]) as taken:
        taken.counted("input_connection_up")
        sys.stdout.write("+")
        sys.stdout.flush()
        while True:
            time.sleep(1)
