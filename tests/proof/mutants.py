"""Deliberate bugs: a proof that finds none of them is worthless.

Each is a patch in `mutations`, whose first line says which row must find it. It is applied to a
copy of the program, and the row is run on that.
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


def prove_mutants(seed: int, names: Sequence[str] = ()) -> int:
    """Run each bug's row and print whether it was found; return 1 if one was not."""
    missed = 0
    for mutant in mutants():
        if names and mutant.name not in names:
            continue
        began = time.monotonic()
        verdict = _verdict(mutant, seed)
        found = " BROKEN " in verdict and "waited in vain" not in verdict
        missed += not found
        took = time.monotonic() - began
        word = "found" if found else "MISSED"
        print(f"{mutant.name:22} {word:7} {took:5.0f} s  {verdict}", flush=True)
    return 1 if missed else 0


def _verdict(mutant: Mutant, seed: int) -> str:
    with tempfile.TemporaryDirectory(prefix=f"mutant-{mutant.name}-") as name:
        copy = Path(name)
        for part in ("streamer", "tests"):
            left = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / part, copy / part, ignore=left)
        apply(mutant, copy)
        said, troubles = _run(mutant, seed, copy)
    lines = said.splitlines()
    at = next((n for n, line in enumerate(lines) if line.startswith(mutant.row)), None)
    told = " ".join(lines[at:])[:300] if at is not None else f"no verdict: {troubles[-300:]}"
    return f"({mutant.row}) {told}"


def _run(mutant: Mutant, seed: int, copy: Path) -> tuple[str, str]:
    """Run the row on the copy; it ends the parts that it has started, however it is ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.proof", mutant.row, "--seed", str(seed)],
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
