"""Checkpoints of a service at a URL: whose they are, and what a deletion may delete."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from streamer.plan.checkpoint_dir import local_directory
from streamer.service.fleet.remote_checkpoints import RemoteCheckpoints
from streamer.spark.checkpoint.checkpoint import CheckpointError, RemoteCheckpoint
from streamer.spark.checkpoint.hadoop_files import FilesError, HadoopPath
from streamer.spark.checkpoint.remote_checkpoint import OtherMachineError

URL = "s3a://lights/streams"


class Files:
    """What `HadoopFiles` does, in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.refuses = False

    def _path(self, url: str) -> Path:
        if self.refuses:
            raise FilesError("no answer")
        return self.directory / url.removeprefix("s3a://")

    def read(self, url: str) -> bytes:
        return self._path(url).read_bytes()

    def put(self, url: str, body: bytes) -> None:
        self._path(url).parent.mkdir(parents=True, exist_ok=True)
        self._path(url).write_bytes(body)

    def create(self, url: str, body: bytes) -> None:
        self._path(url).parent.mkdir(parents=True, exist_ok=True)
        with self._path(url).open("xb") as out:
            out.write(body)

    def list_names(self, url: str) -> list[str]:
        return [path.name for path in self._path(url).iterdir()]

    def delete(self, url: str) -> None:
        path = self._path(url)
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "there")


Machine = Callable[[str], RemoteCheckpoints]


@pytest.fixture
def machine(tmp_path: Path, files: Files) -> Machine:
    """Start a service on a machine of a name; each has a disk of its own."""
    root = HadoopPath(cast("Any", files), URL)
    return lambda name: RemoteCheckpoints(
        URL, {"XDG_STATE_HOME": str(tmp_path / name)}, lambda: root
    )


def silent(*_: object) -> None:
    """Take a log line."""


def over(held: RemoteCheckpoint) -> None:
    held.lease.release()
    held.lock.close()


def ran(checkpoints: RemoteCheckpoints, stream_id: str) -> None:
    """Run a stream from its start to a clean stop."""
    held = checkpoints.acquire(stream_id, silent)
    checkpoints.mark_started(stream_id)
    held.root.files.put(f"{held.root}/spark/offsets/0", b"")  # type: ignore[attr-defined]
    over(held)


def objects(files: Files) -> list[str]:
    return sorted(path.name for path in (files.directory / "lights/streams").glob("*"))


def test_each_stream_has_a_place_there_and_one_on_this_machine(
    tmp_path: Path, files: Files, machine: Machine
) -> None:
    one = machine("one")
    ran(one, "cars")
    assert one.display_path("cars") == f"{URL}/cars"
    env = {"XDG_STATE_HOME": str(tmp_path / "one")}
    assert objects(files) == ["cars"] and one.directory_of("cars") == local_directory(
        f"{URL}/cars", env
    )
    held = one.acquire("cars", silent)
    assert held.has_current_local_state and str(held.root) == f"{URL}/cars"
    over(held)
    one.delete("cars")
    assert objects(files) == [] and not one.directory_of("cars").exists()
    one.delete("cars")


def test_what_was_there_before_is_gone_on_with_and_deleted_once_a_stream_ran_on_it(
    files: Files, machine: Machine
) -> None:
    ran(machine("one"), "cars")
    other = machine("other")
    # As before a stream of this name is made by API.
    other.delete("cars")
    held = other.acquire("cars", silent)
    assert not held.has_current_local_state
    over(held)
    # It did not start.
    other.delete("cars")
    assert objects(files) == ["cars"] and not other.directory_of("cars").exists()
    ran(other, "cars")
    assert not (other.directory_of("cars") / "found").exists()
    other.delete("cars")
    assert objects(files) == []


def test_what_another_machine_has_had_since_is_not_deleted(files: Files, machine: Machine) -> None:
    one, other = machine("one"), machine("other")
    ran(one, "cars")
    ran(other, "cars")
    with pytest.raises(OtherMachineError, match="another machine was the last to use"):
        one.delete("cars")
    assert objects(files) == ["cars"] and not one.directory_of("cars").exists()
    machine("one").delete_pending(silent)
    over(held := other.acquire("cars", silent))
    assert held.has_current_local_state and objects(files) == ["cars"]


def test_a_deletion_that_was_broken_off_is_finished(files: Files, machine: Machine) -> None:
    one = machine("one")
    ran(one, "cars")
    ran(one, "lights")
    files.refuses = True
    for stream_id in ("cars", "lights"):
        with pytest.raises(CheckpointError, match="cannot be used: no answer"):
            one.delete(stream_id)
    said: list[str] = []
    one = machine("one")
    one.delete_pending(lambda level, text, fields: said.append(text))
    assert len(said) == 2 and "that is to be deleted is still there" in said[0]
    files.refuses = False
    # A stream of this name begins anew, and the other one goes at the next start.
    over(held := one.acquire("cars", silent))
    assert held.has_current_local_state and objects(files) == ["cars", "lights"]
    assert not (files.directory / "lights/streams/cars/spark").exists()
    machine("one").delete_pending(silent)
    assert objects(files) == ["cars"]
