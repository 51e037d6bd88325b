"""Files of the checkpoint that were cut while the program was down."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from tests.proof.runner import PATIENCE, Run
from tests.proof.verdict import ProofError


def offset_log(run: Run) -> str:
    """Cut the newest plan of a micro-batch."""
    return _cut(run, lambda: [_newest(run.checkpoint / "spark" / "offsets")])


def commit_log(run: Run) -> str:
    """Cut the newest note that a micro-batch is done."""
    return _cut(run, lambda: [_newest(run.checkpoint / "spark" / "commits")])


def changelog(run: Run) -> str:
    """Cut the newest changes of the state of each shard."""
    return _cut(run, lambda: _state(run, "changelog"))


def snapshot(run: Run) -> str:
    """Cut the newest whole state of each shard, which Spark writes every few micro-batches."""
    store = "spark.sql.streaming.stateStore"
    often = {f"{store}.maintenanceInterval": "1s", f"{store}.minDeltasForSnapshot": "2"}
    run.configure(conf=often)
    return _cut(run, lambda: _state(run, "zip"))


def _newest(log: Path) -> Path:
    return max((p for p in log.glob("*") if p.name.isdecimal()), key=lambda p: int(p.name))


def _state(run: Run, kind: str) -> list[Path]:
    """Return the newest file of a kind in each directory of the state."""
    found: dict[Path, tuple[int, Path]] = {}
    for path in (run.checkpoint / "spark" / "state").rglob(f"*.{kind}"):
        number = re.match(r"\d+", path.name)
        if number is not None:
            found[path.parent] = max(found.get(path.parent, (-1, path)), (int(number[0]), path))
    return [path for _, path in found.values()]


def _cut(run: Run, files: Callable[[], list[Path]]) -> str:
    """Stop the stream, cut files, start it: it says no, or nothing is lost."""
    with run.whole():
        run.start().wait_running()
        with run.source.flowing():
            run.wait_for_output()
            run.wait_for_output()
            run.wait_for(lambda: bool(files()), "for something to cut")
            assert run.stop() == 0
            chosen = files()
            # To nothing, to a first line that a log's version is, or anywhere.
            kind, share = run.rng.randrange(3), run.rng.random()
            for path in chosen:
                size = path.stat().st_size
                os.truncate(path, (0, 3, int(size * share))[kind])
                crc = path.with_name(f".{path.name}.crc")
                crc.unlink(missing_ok=True)  # a disk that loses a file's end loses this too
            run.injected.append(
                f"{len(chosen)} cut to {('nothing', '3 bytes', f'{share:.0%}')[kind]}"
            )
            before = run.sink.windows()
            program = run.start()
            taken = run.chronicle.taken()
            seen = run.size()
            try:
                run.wait_for(
                    lambda: (
                        program.process.poll() is not None
                        or run.chronicle.taken() != taken
                        and run.size() > seen
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


def _refused(run: Run, chosen: list[Path], before: list[bytes]) -> str:
    # What is found before the log is open is printed as it is.
    levels = ("error", "fatal", "raw")
    said = [line for line in run.program.lines() if line.get("level") in levels]
    text = str(said[-1]["msg"]) if said else ""
    if run.program.process.poll() == 0 or not said:
        raise ProofError("it ended without saying why")
    names = [str(path) for path in chosen]
    if not any(name in text for name in names) and str(run.checkpoint) not in text:
        raise ProofError(f"it refused, but named neither {names[0]} nor the checkpoint: {text}")
    if "restore" not in text:
        raise ProofError(f"it refused, but did not say what to do: {text[:400]}")
    if run.sink.windows() != before:
        raise ProofError("it refused, but had changed the output before")
    return f"refused by name, {', '.join(run.injected)}: {text[:300]}"
