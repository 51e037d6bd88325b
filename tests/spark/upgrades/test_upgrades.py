"""This version goes on with checkpoints of earlier ones: windows, positions and counters are kept.

What came out before the upgrade and what comes out afterwards are together what a stream puts out
that runs this version from its beginning: nothing is lost, nothing comes twice, and nothing has
been counted otherwise.
"""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from streamer.spark.checkpoint.relocation import update_moved_paths
from tests.spark.conftest import Ran, Runner
from tests.spark.upgrades.streams import DUE, ENDLESS, LEAST, MORE, config_of, position, streams_of

ARCHIVES = Path(__file__).parents[2] / "data" / "checkpoints"
VERSIONS = sorted(path.name for path in ARCHIVES.iterdir())

_COUNTED_BEFORE = {("0.1", "count_every"): {"incomplete": 15}}
"""What a version did not count as dropped: the first three messages of each of the five keys."""


def cases() -> Iterator[Any]:
    """Yield each stream of each version; a run without names takes two of each version."""
    for version in VERSIONS:
        for number, (name, text) in enumerate(streams_of(version).items()):
            mark = pytest.mark.sample(f"{version} {number % 2}")
            yield pytest.param(version, name, text, id=f"{version}-{name}", marks=mark)


def test_there_are_checkpoints_of_all_versions_and_streams() -> None:
    assert VERSIONS == ["0.1", "0.2"]
    for version in VERSIONS:
        archives = sorted((ARCHIVES / version).iterdir())
        assert [path.name for path in archives] == [
            f"{name}.tar.gz" for name in sorted(streams_of(version))
        ]
        # Every clone has them. 530 kB hold one buffer each; three more have thirteen.
        assert sum(path.stat().st_size for path in archives) < 650_000


@pytest.mark.spark
@pytest.mark.parametrize(("version", "name", "text"), list(cases()))
def test_a_stream_goes_on_where_another_version_has_stopped(
    run_stream: Runner, tmp_path: Path, version: str, name: str, text: str
) -> None:
    with tarfile.open(ARCHIVES / version / f"{name}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    update_moved_paths(tmp_path / "checkpoint" / "spark")
    before = position(tmp_path / "checkpoint")
    assert before >= LEAST
    on, new = (str(tmp_path / out) for out in ("on", "new"))
    config = config_of(text, on, before + MORE)
    upgraded = run_stream(config)
    fresh = run_stream(config.replace(on, new), checkpoint="fresh")
    found = lines(tmp_path / "out") + lines(tmp_path / "on")
    compare(name, found, lines(tmp_path / "new"), before + MORE)
    counted(name, upgraded, fresh, before, _COUNTED_BEFORE.get((version, name), {}))


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def numbers(some: list[str]) -> list[int]:
    return sorted(number for line in some for number in json.loads(line)["n"])


def compare(name: str, found: list[str], expected: list[str], messages: int) -> None:
    """Compare what came out in two runs with what came out in one."""
    assert expected
    if name == DUE:  # In which windows messages are depends on when they were made.
        assert numbers(found) == numbers(expected) == list(range(1, messages + 1))
    else:
        assert Counter(found) == Counter(expected)


def counted(
    name: str, upgraded: Ran, fresh: Ran, before: int, uncounted: Mapping[str, int]
) -> None:
    """Compare the counters of a checkpoint that was gone on with with those of a new one."""
    last, expected = upgraded.last, fresh.last
    assert last.messages == expected.messages - (before if name == "none" else 0)
    assert Counter(last.dropped) + Counter(uncounted) == Counter(expected.dropped)
    assert last.closed == expected.closed
    assert (last.open_windows, last.held) == (expected.open_windows, expected.held)
    assert bool(last.open_windows) == (name == ENDLESS)
