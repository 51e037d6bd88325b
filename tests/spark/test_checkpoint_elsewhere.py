"""A checkpoint that is not on this machine: what another machine finds of it, and what not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.core.errors import StreamerError
from streamer.engine.planner.planner_channels import MicroBatchOffset
from streamer.plan import make_plan
from streamer.spark.checkpoint.checkpoint import (
    Checkpoint,
    CheckpointError,
    RemoteCheckpoint,
    lock_directory,
)
from streamer.spark.checkpoint.generations import (
    begin_generation,
    delete_old_generations,
    load_running,
    save_running,
)
from streamer.spark.checkpoint.initial_state import seed_for_workers
from streamer.spark.checkpoint.lease import Lease, LeaseTiming
from streamer.spark.checkpoint.local_state_check import check_local_state
from streamer.spark.checkpoint.rescaling import rescale_checkpoint
from tests.spark.checkpoint.test_rescaling import PLAN, begun, never

CONFIG = """
input: {generate: {mapping: root = 1}}
buffer: {tumbling_window: {size: 1s, timestamp_mapping: root = now()}}
output: {drop: {}}
"""
FITS = {"input": "generate", "window": "w", "key": None, "shards": 1}


class Place:
    """A directory that is reached by what a file system elsewhere offers, and not as a path."""

    full = False

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return f"far://{self.path}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    @property
    def name(self) -> str:
        return self.path.name

    def __truediv__(self, name: str) -> Place:
        return Place(self.path / name)

    def iterdir(self) -> Iterator[Place]:
        return map(Place, self.path.iterdir())

    def glob(self, pattern: str) -> Iterator[Place]:
        return map(Place, self.path.glob(pattern))

    def exists(self) -> bool:
        return self.path.exists()

    def read_bytes(self) -> bytes:
        return self.path.read_bytes()

    def read_text(self, encoding: str | None = None) -> str:
        return self.path.read_text(encoding)

    def put(self, body: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(body)

    def receive(self, directory: Path) -> None:
        assert not self.path.exists(), "Hadoop would copy it into that"
        self.path.mkdir(parents=True)
        for file in sorted(directory.iterdir()):
            if self.full:
                raise OSError(28, "No space left")
            shutil.copy(file, self.path)

    def fetch(self, directory: Path) -> None:
        shutil.copytree(self.path, directory)

    def delete(self) -> None:
        shutil.rmtree(self.path) if self.path.is_dir() else self.path.unlink(missing_ok=True)


class Terms:
    """The files of a lease."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def list_names(self) -> list[str]:
        return list(self.kept)

    def read(self, name: str) -> bytes:
        return self.kept[name]

    def create(self, name: str, body: bytes) -> None:
        self.kept[name] = body

    put = create

    def delete(self, name: str) -> None:
        del self.kept[name]


Machine = Callable[..., Checkpoint]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Take the one checkpoint on a machine of a name; each has a disk of its own."""
    terms = Terms()
    held: list[Checkpoint] = []

    def take(name: str, stayed: bool = True) -> Checkpoint:
        if held:
            held.pop().close()
        lease = Lease(terms, LeaseTiming(beat_s=60.0))
        lease.acquire()
        directory = tmp_path / name
        lock = lock_directory(directory)
        found = RemoteCheckpoint(Place(tmp_path / "far"), lock, directory, lease, stayed)
        held.append(Checkpoint(found))
        return held[-1]

    yield take
    for checkpoint in held:
        checkpoint.close()


def planned(checkpoint: Checkpoint, number: int = 0) -> None:
    """Leave what Spark does when a micro-batch is planned and committed."""
    offset = json.dumps({"data": 7})
    lines = f'v1\n{{"batchTimestampMs":1}}\n{offset}'
    spark: Any = checkpoint.spark
    (spark / "offsets" / str(number)).put(lines.encode())
    (spark / "commits" / str(number)).put(b"v1\n{}")


def test_another_machine_finds_the_record_and_where_the_input_was(machine: Machine) -> None:
    one = machine("one")
    one.bind(FITS, {"input": {"seen": 3}})
    planned(one)
    identity = one.identity
    other = machine("other", stayed=False)
    assert other.is_resumable and other.identity == identity
    assert other.read_record()["inputs"] == {"input": {"seen": 3}}
    assert other.check_fingerprint(FITS) == FITS
    assert str(other.spark).startswith("far://") and other.spool.is_relative_to(other.directory)


def test_a_generation_begins_and_the_former_is_swept_where_it_is(machine: Machine) -> None:
    one = machine("one")
    one.bind(FITS, {})
    planned(one)
    former: Any = one.spark
    begin_generation(one, FITS, keeps_input=True)
    assert one.start_offset == MicroBatchOffset(7) and not one.is_resumable
    assert one.spark.name == "spark-1" and former.exists()
    delete_old_generations(one)
    assert not former.exists()


def test_what_has_finished_is_cleared_here_and_there(machine: Machine) -> None:
    one = machine("one")
    one.bind(FITS, {})
    planned(one)
    one.spool.mkdir()
    one.finish()
    again = machine("one")
    assert again.clear_finished_run()
    assert not again.is_resumable and again.read_record() == {} and not again.spool.exists()
    assert not again.clear_finished_run()


def test_what_ran_is_known_to_the_machine_on_which_it_did(machine: Machine) -> None:
    config = parse_config(CONFIG, "config.yaml")
    one = machine("one")
    one.bind(FITS, {})
    save_running(one, config, make_plan(config))
    stayed = machine("one")
    assert load_running(stayed) is not None
    assert load_running(machine("one", stayed=False)) is None


def said(checkpoint: Checkpoint, config: str = CONFIG) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []

    def log(level: str, text: str, fields: Mapping[str, Any]) -> None:
        found.append((level, fields.get("path", "")))

    check_local_state(checkpoint, make_plan(parse_config(config, "config.yaml")), log)
    return found


def test_a_machine_without_what_was_received_is_refused(machine: Machine) -> None:
    one = machine("one")
    one.bind(FITS, {})
    assert said(one) == []
    one.spool.mkdir()
    (one.spool / "0000000001.seg").touch()
    assert said(one) == [("WARN", "input")]
    unplanned = machine("one", stayed=False)
    assert said(unplanned) == [("WARN", "input")]
    planned(unplanned)
    with pytest.raises(CheckpointError, match="messages that the input generate has received"):
        said(machine("one", stayed=False))


def test_it_is_said_what_another_machine_repeats_or_lacks(machine: Machine) -> None:
    files = CONFIG.replace("{drop: {}}", "{broker: {outputs: [{file: {path: x}}, {drop: {}}]}}")
    assert said(machine("one"), files) == [("INFO", "output.broker.outputs.0")]
    results = CONFIG.replace("{size", "{retention: 1d, size")
    assert said(machine("one"), results) == [("INFO", "")]


def test_what_rescaled_shards_begin_with_is_there_and_not_on_one_machine(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = begun(machine("one"))
    assert checkpoint.seed == Place(tmp_path / "far" / f"seed-1-{checkpoint.identity}")
    assert seed_for_workers(checkpoint) == f"seed-1-{checkpoint.identity}"
    record = checkpoint.read_record()
    monkeypatch.setattr(Place, "full", True)
    with pytest.raises(StreamerError, match="No space left; the checkpoint far://.* is as it was"):
        rescale_checkpoint(PLAN, checkpoint, 3, never)
    assert checkpoint.read_record() == record
    monkeypatch.setattr(Place, "full", False)
    # What was left of that is not in the way, on another machine neither.
    checkpoint = machine("other")
    done = rescale_checkpoint(PLAN, checkpoint, 3, never)
    assert (done.shards_before, done.shards_after) == (2, 3)
    assert done.former_state == Place(tmp_path / "far" / f"seed-1-{checkpoint.identity}")
    assert checkpoint.check_fingerprint(PLAN.fingerprint)["shards"] == 3
    assert checkpoint.seed is not None
    assert sorted(file.name for file in checkpoint.seed.iterdir()) == [
        *(f"{shard}.state" for shard in range(3)),
        "shards",
    ]
    delete_old_generations(checkpoint)
    assert [path.name for path in (tmp_path / "far").glob("seed-*")] == [checkpoint.seed.name]
