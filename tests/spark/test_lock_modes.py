"""A checkpoint is closed to others, whoever has made and named its directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamer.connectors.spool.byte_spool import ByteSpoolWriter
from streamer.connectors.spool.store import SpoolStore
from streamer.spark.checkpoint.directory_lock import DirectoryLock


@pytest.fixture(autouse=True)
def _usual_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(root: Path) -> dict[str, str]:
    """Return what others may reach below a directory, with its mode."""
    found = {}
    for directory, names, files in os.walk(root):
        if os.stat(directory).st_mode & 0o077 == 0:
            names.clear()
            continue
        for name in files:
            path = Path(directory, name)
            if path.stat().st_mode & 0o077:
                found[str(path.relative_to(root))] = oct(path.stat().st_mode & 0o777)
    return found


def fill(directory: Path) -> None:
    (directory / "spark" / "state").mkdir(parents=True)
    (directory / "spark" / "state" / "1.zip").write_text("messages")
    (directory / "streamer.json").write_text("{}")
    store = SpoolStore(directory / "spool" / "0")
    store.append([])
    store.close()
    ByteSpoolWriter(directory / "spool-2" / "0")


@pytest.mark.parametrize("made", [False, True], ids=["new", "made before"])
def test_a_checkpoint_is_closed_to_others(made: bool, tmp_path: Path) -> None:
    directory = tmp_path / "above" / "checkpoint"
    if made:
        directory.mkdir(parents=True)
    lock = DirectoryLock(directory)
    fill(directory)
    lock.close()
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (directory / "lock").stat().st_mode & 0o777 == 0o600
    assert directory.parent.stat().st_mode & 0o777 == 0o755
    for path in (directory / "spool" / "0").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    assert not open_to_others(directory)


def test_a_checkpoint_of_before_is_closed_when_it_is_taken(tmp_path: Path) -> None:
    directory = tmp_path / "checkpoint"
    directory.mkdir()
    fill(directory)
    (directory / "lock").write_text("")
    assert open_to_others(directory)
    DirectoryLock(directory).close()
    assert not open_to_others(directory)


def test_a_directory_that_holds_more_keeps_its_mode_and_what_is_others(tmp_path: Path) -> None:
    directory = tmp_path / "home"
    directory.mkdir()
    fill(directory)
    (directory / "letters").mkdir()
    (directory / "notes.txt").write_text("")
    (directory / "elsewhere").write_text("")
    (directory / "results").symlink_to(directory / "letters")
    DirectoryLock(directory).close()
    assert directory.stat().st_mode & 0o777 == 0o755
    assert (directory / "letters").stat().st_mode & 0o777 == 0o755
    assert set(open_to_others(directory)) == {"notes.txt", "elsewhere"}
