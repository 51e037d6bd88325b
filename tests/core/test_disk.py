"""What is synced is asked of the system in the way that it has."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.core import disk

ROOT = Path(__file__).parents[2]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    handle = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield handle
    os.close(handle)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the system is asked, in order."""
    asked: list[str] = []
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda file, name=name: asked.append(name))
    return asked


def test_files_and_directories_are_synced(file: int, tmp_path: Path) -> None:
    disk.sync_data(file)
    directory = os.open(tmp_path, os.O_RDONLY)
    disk.sync_directory(directory)
    os.close(directory)
    with pytest.raises(OSError):
        disk.sync_data(directory)


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_linux_leaves_times_of_a_file_out(file: int, asked: list[str]) -> None:
    disk.sync_data(file)
    disk.sync_directory(file)
    assert asked == ["fdatasync", "fsync"]


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch, asked: list[str]) -> list[str]:
    """A system like macOS: without fdatasync, and with F_FULLFSYNC."""
    import fcntl

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(os, "fdatasync")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda file, what: asked.append(f"fcntl {what}"))
    return asked


def test_macos_empties_the_drive_too(file: int, mac: list[str]) -> None:
    disk.sync_data(file)
    disk.sync_directory(file)
    assert mac == ["fcntl 51", "fcntl 51"]


@pytest.mark.parametrize(("number", "falls_back"), [("ENOTSUP", True), ("EIO", False)])
def test_a_file_system_of_macos_without_it_gets_fsync(
    file: int, mac: list[str], monkeypatch: pytest.MonkeyPatch, number: str, falls_back: bool
) -> None:
    import fcntl

    def refuse(file: int, what: int) -> Any:
        raise OSError(getattr(errno, number), number)

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    if falls_back:
        disk.sync_data(file)
        assert mac == ["fsync"]
    else:
        with pytest.raises(OSError):
            disk.sync_data(file)


def test_any_other_system_has_fsync(
    file: int, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "freebsd14")
    monkeypatch.delattr(os, "fdatasync")
    disk.sync_data(file)
    assert asked == ["fsync"]


def test_a_private_directory_is_closed_to_others_whoever_has_made_it(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        made, there = tmp_path / "a" / "b", tmp_path / "c"
        there.mkdir()
        for directory in (made, there):
            disk.make_private_directory(directory)
            assert directory.stat().st_mode & 0o777 == 0o700
        assert made.parent.stat().st_mode & 0o777 == 0o755
        (tmp_path / "d").touch()
        with pytest.raises(FileExistsError):
            disk.make_private_directory(tmp_path / "d")
    finally:
        os.umask(before)


def test_what_others_may_is_taken_and_the_rest_stays(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    path.chmod(0o754)
    disk.restrict_to_owner(path)
    assert path.stat().st_mode & 0o7777 == 0o700
    disk.restrict_to_owner(tmp_path / "missing")
