"""Files made to exhaust the loader: each ends with findings, in a second and within 200 MB.

They are linted in a process of its own, whose memory is limited.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from streamer.config.file import MAX_CONFIG_BYTES
from tests.config.bombs import bombs, mutilated
from tests.slowness import slowness

ROOT = Path(__file__).parents[2]
SECONDS: Final = 1.0
"""Of CPU, on a machine that is not slower than usual."""
MEGABYTES: Final = 200

_CHILD: Final = """
import json, resource, sys, time
from streamer.components import catalog
from streamer.config import LintOptions, lint_config
from streamer.bloblang import compile_mapping

list(catalog.all_specs())
compile_mapping("root = this")
limit = int(sys.argv[1]) << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
options = LintOptions(deprecated=True, labels=True, thorough=True)
for path in sys.argv[2:]:
    began = time.process_time()
    try:
        lints = lint_config(path, env={"X": "x" * 100}, options=options)
        found = [lint.code for lint in lints]
        said = max(len(str(lint)) for lint in lints) if lints else 0
    except BaseException as error:
        found, said = f"{type(error).__name__}: {error}"[:200], 0
    print(json.dumps([path, time.process_time() - began, found, said]), flush=True)
"""


def linted(paths: list[Path]) -> list[list[Any]]:
    """Lint files one after another; returns path, CPU seconds, codes, and the longest text.

    Seconds are those of a machine that is not slower than usual, the fewest of several attempts:
    a busy one may be slow now and then.
    """
    results = _linted(paths)
    for _ in range(4):
        slow = [Path(path) for path, seconds, *_ in results if seconds > SECONDS]
        if not slow:
            break
        before = slowness()
        again = {path: seconds for path, seconds, *_ in _linted(slow)}
        here = max(before, slowness())
        again = {path: seconds / here for path, seconds in again.items()}
        results = [[path, min(took, again.get(path, took)), *rest] for path, took, *rest in results]
    return results


def _linted(paths: list[Path]) -> list[list[Any]]:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(MEGABYTES), *map(str, paths)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(results: list[list[Any]]) -> None:
    wrong = [
        (Path(path).name, round(seconds, 2), codes)
        for path, seconds, codes, longest in results
        if not isinstance(codes, list) or not codes or seconds > SECONDS or longest > 2_000
    ]
    assert wrong == []


@pytest.mark.slow
def test_a_bomb_ends_with_findings_in_a_second_and_200_mb(tmp_path: Path) -> None:
    paths = []
    for name, made in bombs().items():
        paths.append(tmp_path / name)
        paths[-1].write_bytes(made)
    results = linted(paths)
    assert len(results) == len(paths) > 50
    check(results)


def test_a_file_of_100_mb_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    (result,) = linted([path])
    assert result[2] == ["unreadable"]
    check([result])


@pytest.mark.slow
def test_what_is_no_config_ends_with_findings(tmp_path: Path) -> None:
    """Bytes at random, and the examples with bytes of them changed at random."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    examples = [path.read_bytes() for path in sorted((ROOT / "configs").glob("*.yaml"))]
    paths = []
    for number in range(120):
        text = mutilated(examples, chance)
        paths.append(tmp_path / f"{seed}-{number}.yaml")
        whole = number % 4 == 0
        paths[-1].write_bytes(
            chance.randbytes(chance.randrange(1, MAX_CONFIG_BYTES)) if whole else text
        )
    for path, seconds, codes, _ in linted(paths):
        # A change may have hit a comment, so that there is nothing to find.
        assert isinstance(codes, list), (path, codes)
        assert seconds < SECONDS, path
