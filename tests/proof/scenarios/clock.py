"""The machine's clock is set while a stream runs."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

from tests.proof.generator import SECOND
from tests.proof.runner import Run, under_load
from tests.proof.verdict import ProofError
from tests.servers import installed

_SOURCE = Path(__file__).parents[1] / "clock.c"
_HOUR = 3600


def moved(run: Run) -> str:
    """Set the clock an hour ahead, an hour back, and to what it was."""
    compiler = installed("gcc libc6-dev", "gcc")
    library, clock = run.directory / "clock.so", run.directory / "clock"
    command = [compiler, "-shared", "-fPIC", "-O2", "-Wall", "-o", library, _SOURCE, "-ldl"]
    subprocess.run(command, check=True)
    clock.write_bytes(struct.pack("=q", 0))
    run.env |= {"LD_PRELOAD": str(library), "PROOF_CLOCK": str(clock)}

    def fault(run: Run) -> None:
        for _ in range(run.times):
            for shift in (_HOUR, -_HOUR, 0):
                run.pause(0, 2)
                _set(clock, shift)
                run.wait_for_output()
                run.wait_for_output()
        run.injected.append(f"set {3 * run.times} times")

    figures = under_load(run, fault)
    times = [one.recorded for one in run.chronicle.micro_batches()]
    spread = (max(times) - min(times)) // SECOND
    if spread < 1.9 * _HOUR:
        raise ProofError(f"micro-batches are {spread} s apart at most: the clock did not move")
    return figures


def _set(clock: Path, shift: int) -> None:
    """Write in place, at once: it is mapped."""
    with clock.open("r+b") as out:
        os.pwrite(out.fileno(), struct.pack("=q", shift), 0)
