"""Deliberate bugs: a proof that finds none of them is worthless.

Each is a patch in `mutations`, whose first line says which row must find it. It is applied to a
copy of the program, and the row is run on that: with all its parts, or without processes where it
is a row of `tests.proof.kernel` only, or the bug is in the windows' own code and one is in a hurry.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.proof.rows import BY_NAME

ROOT = Path(__file__).resolve().parents[2]
_LONGEST = 400.0


@dataclass(frozen=True)
class Mutant:
    """One bug.

    Attributes:
        path: of the patch.
        row: which must find it.
        bug: what is wrong.
    """

    path: Path
    row: str
    bug: str

    @property
    def name(self) -> str:
        """As it is called on the command line."""
        return self.path.stem

    @property
    def in_windows(self) -> bool:
        """Whether it is in the windows' own code, which runs without processes, too."""
        return "+++ b/streamer/window/" in self.path.read_text()


def mutants() -> list[Mutant]:
    """Return all of them."""
    found = []
    for path in sorted((Path(__file__).parent / "mutations").glob("*.patch")):
        row, _, bug = path.read_text().partition("\n")[0].removeprefix("# ").partition(": ")
        found.append(Mutant(path, row, bug))
    return found


def apply(mutant: Mutant, root: Path, *more: str) -> None:
    """Apply a bug to a copy.

    Raises:
        subprocess.CalledProcessError: it does not fit any more.
    """
    command = ["git", "apply", *more, str(mutant.path)]
    # Below a repository it would skip what is not of that, and say nothing.
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(root.parent)}
    subprocess.run(command, cwd=root, env=env, check=True, capture_output=True)


def prove_mutants(seed: int, names: Sequence[str] = (), kernel: bool = False) -> int:
    """Run each bug's row and print whether it was found; return 1 if one was not.

    Args:
        seed: of the rows.
        names: of the bugs; all when it is empty.
        kernel: only bugs in the windows' own code, and without processes.
    """
    missed = 0
    for mutant in mutants():
        if names and mutant.name not in names or kernel and not mutant.in_windows:
            continue
        began = time.monotonic()
        verdict = verdict_on(mutant, seed, kernel)
        found = is_found(verdict)
        missed += not found
        took = time.monotonic() - began
        word = "found" if found else "MISSED"
        print(f"{mutant.name:22} {word:7} {took:5.0f} s  {verdict}", flush=True)
    return 1 if missed else 0


def is_found(verdict: str) -> bool:
    """Tell whether a verdict is that a promise was broken, not that nothing happened."""
    return " BROKEN " in verdict and "waited in vain" not in verdict


def verdict_on(mutant: Mutant, seed: int, kernel: bool = False) -> str:
    """Run a bug's row on a copy of the program that has it; return what the row says."""
    with tempfile.TemporaryDirectory(prefix=f"mutant-{mutant.name}-") as name:
        copy = Path(name)
        for part in ("streamer", "tests"):
            # What was compiled goes with its source, of which it knows size and time.
            shutil.copytree(ROOT / part, copy / part)
        apply(mutant, copy)
        module = "tests.proof.kernel" if kernel or mutant.row not in BY_NAME else "tests.proof"
        said, troubles = _run(module, mutant.row, seed, copy)
    lines = said.splitlines()
    at = next((n for n, line in enumerate(lines) if line.startswith(mutant.row)), None)
    told = " ".join(lines[at:])[:300] if at is not None else f"no verdict: {troubles[-300:]}"
    return f"({mutant.row}) {told}"


def _run(module: str, row: str, seed: int, copy: Path) -> tuple[str, str]:
    """Run the row on the copy; it ends the parts that it has started, however it is ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, row, "--seed", str(seed)],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        return process.communicate(timeout=_LONGEST)
    except subprocess.TimeoutExpired:
        process.terminate()
        return process.communicate()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
