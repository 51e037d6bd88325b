"""Files of the checkpoint that were cut while the program was down."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.proof.runner import PATIENCE, Run
from tests.proof.verdict import ProofError


def offset_log(run: Run) -> str:
    """Cut the newest plan of a micro-batch."""
    return _cut(run, lambda: [_newest(run.checkpoint / "spark" / "offsets")], 0.5)


def _newest(log: Path) -> Path:
    return max((p for p in log.glob("*") if p.name.isdecimal()), key=lambda p: int(p.name))


def _cut(run: Run, files: Callable[[], list[Path]], share: float) -> str:
    """Stop the stream, cut files to a share, start it: it says no, or nothing is lost."""
    with run.whole():
        run.start().wait_running()
        with run.source.flowing():
            run.wait_for_output()
            run.wait_for_output()
            assert run.stop() == 0
            chosen = files()
            assert chosen, "there is nothing to cut"
            for path in chosen:
                os.truncate(path, int(path.stat().st_size * share))
                crc = path.with_name(f".{path.name}.crc")
                crc.unlink(missing_ok=True)  # a disk that loses a file's end loses this too
            run.injected.append(f"{len(chosen)} cut")
            before = run.out.read_bytes()
            program = run.start()
            taken = run.chronicle.taken()
            try:
                run.wait_for(
                    lambda: (
                        program.process.poll() is not None
                        or run.chronicle.taken() != taken
                        and run.size() > len(before)
                    ),
                    "to go on or refuse",
                )
            except AssertionError as e:
                raise ProofError(
                    f"neither repaired nor refused within {PATIENCE:.0f} s: {e}"
                ) from e
        if program.process.poll() is None:
            return "repaired; " + run.settle()
        return _refused(run, chosen, before)


def _refused(run: Run, chosen: list[Path], before: bytes) -> str:
    said = [line for line in run.program.lines() if line.get("level") in ("error", "fatal")]
    text = str(said[-1]["msg"]) if said else ""
    if run.program.process.poll() == 0 or not said:
        raise ProofError("it ended without saying why")
    if str(run.checkpoint) not in text:
        raise ProofError(f"it refused, but did not name the checkpoint: {text[:300]}")
    if run.out.read_bytes() != before:
        raise ProofError("it refused, but had changed the output before")
    return f"refused by name: {text[:160]}"
