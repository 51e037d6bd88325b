"""The checkpoint directory: whose it is, what fits it, and that one program uses it at a time.

```
<checkpoint>/streamer.json   format, what the state is bound to, what the inputs remember
            /lock            held by the program and its JVM
            /jvm.lock        held by a JVM that was there before, see `JvmLock`
            /spark           offsets, commits and state, as Spark lays them out
            /spool           what inputs have received and the checkpoint does not have yet
            /spark-1, …      the same, once a deploy has let the windows begin anew
            /seed-1, …       what the shards of such a generation begin with, by `streamer rescale`
            /drain.plan      what runs until the windows before such a deploy are out
            /running.plan    what runs, where a later start may have to let its windows out
            /files*.json     lengths of output files before the micro-batch in hand
            /files*.newest   which micro-batch that is, so that an older copy is noticed
            /files*.columns  types of the columns of Parquet files
            /files*.tables   tables of the newest micro-batch, where messages name them
            /crashes.json    messages of the micro-batch in hand that end a worker
            /signals         hints between driver and planner
            /figures.json    figures of the newest micro-batch, shown after a restart
            /history         figures of the last hour (`streamer.service.monitoring.history_file`)
            /decisions       decisions of windows (`streamer.engine.driver.decision_journal`)
            /results         results that are kept for queries (`streamer.engine.results`)
            /tables          versions of lookup tables, and which micro-batch looks up which
            /rejected        messages that outputs have rejected, and that are sent again
```

On another file system (`s3a://…`) are the record and Spark's part: `streamer.json`, `spark`, what
shards begin with (`seed-1-IDENTITY`), `rejected`, `tables`, and in place of the lock the files of a
lease. All else is in a directory of this machine.
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from streamer.core.errors import StreamerError
from streamer.engine.planner.checkpoint_path import (
    CheckpointPath,
    RemoteLocation,
    list_batch_numbers,
    remove_tree,
    replace_file,
)
from streamer.engine.planner.planner_channels import MicroBatchOffset
from streamer.plan.checkpoint_dir import is_remote
from streamer.plan.state_words import compare_states
from streamer.plan.stream_buffers import extends_state
from streamer.spark.checkpoint.directory_lock import DirectoryLock, acquire_within
from streamer.spark.checkpoint.lease import Lease

FORMAT = 1

_BATCHES_PER_GENERATION = 1_000_000_000
"""Micro-batches of a generation, which Spark numbers anew in each."""

_PRESERVED_FIELDS = (
    *("identity", "generation", "spool", "begins_at", "kafka_begins_at", "seed"),
    *("revision", "draining"),
)
"""What stays in the record when the inputs remember something else."""

_STATELESS_BUFFERS = frozenset({"none", "memory"})
"""Buffers that keep nothing: one can go on where the other was."""


class CheckpointError(StreamerError):
    """The checkpoint cannot be used; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class RemoteCheckpoint:
    """A checkpoint that is not on this machine.

    Attributes:
        root: where it is.
        lock: of the directory for what stays on this machine.
        directory: that one.
        lease: taken; it is this program's.
        has_current_local_state: whether this directory is that of the program which had the
            checkpoint before.
    """

    root: RemoteLocation
    lock: DirectoryLock
    directory: Path
    lease: Lease
    has_current_local_state: bool


def lock_directory(directory: Path, wait: float = 10.0, checkpoint: str = "") -> DirectoryLock:
    """Make a directory if it is not there, and take its lock.

    Args:
        directory: the directory.
        wait: seconds to wait for the JVM of a program that was killed.
        checkpoint: the checkpoint that it belongs to, if it is not that itself.

    Raises:
        CheckpointError: another program uses it, or it cannot be written.
    """
    try:
        lock = DirectoryLock(directory)
    except OSError as e:
        raise CheckpointError(
            f"the checkpoint directory {directory} cannot be written: {e}; "
            "name another one with --checkpoint or spark.checkpoint"
        ) from None
    if not acquire_within(lock, wait):
        holder = lock.holder()
        lock.close()
        raise in_use_error(checkpoint or str(directory), str(holder or ""))
    return lock


def in_use_error(checkpoint: str, holder: str) -> CheckpointError:
    """Return what is wrong when another program has a checkpoint."""
    return CheckpointError(
        f"another streamer uses the checkpoint {checkpoint}{f' ({holder})' if holder else ''}; "
        "stop it, or name another directory with --checkpoint"
    )


class Checkpoint:
    """A checkpoint that this program holds.

    Attributes:
        directory: the directory on this machine.
        root: where the record is, and Spark's part; the directory, or a place elsewhere.
        should_skip_damaged: whether this start passes over what is damaged of what inputs have
            received.
    """

    root: CheckpointPath
    should_skip_damaged: bool = False

    def __init__(self, directory: str | Path | RemoteCheckpoint, wait: float = 10.0) -> None:
        """Make the directory if it is not there, and take its lock.

        Args:
            directory: a local path, or a place elsewhere that is held already.
            wait: seconds to wait for the JVM of a program that was killed.

        Raises:
            CheckpointError: another program uses it, it cannot be written, or it is no local path.
        """
        self._cached_record: dict[str, Any] | None = None
        self._remote = directory if isinstance(directory, RemoteCheckpoint) else None
        if isinstance(directory, RemoteCheckpoint):
            self.directory, self.root = directory.directory, directory.root
            self._lock = directory.lock
        else:
            if is_remote(str(directory)):
                raise CheckpointError(
                    f"the checkpoint is {directory}: expected a directory of this machine"
                )
            self.directory = self.root = Path(str(directory).removeprefix("file://")).absolute()
            self._lock = lock_directory(self.directory, wait)
        self._file = self.root / "streamer.json"

    def __str__(self) -> str:
        return str(self.root)

    @property
    def is_remote(self) -> bool:
        """Whether the checkpoint is on another file system than this machine's."""
        return self._remote is not None

    @property
    def has_current_local_state(self) -> bool:
        """Whether what is kept on this machine is of the program that had it last."""
        return self._remote is None or self._remote.has_current_local_state

    def wait_lease_valid(self, stopping: Callable[[], bool]) -> None:
        """Wait, for a checkpoint elsewhere, until it is sure that it is still this program's.

        Args:
            stopping: ends the wait.

        Raises:
            CheckpointError: it is not.
        """
        if self._remote is not None and not self._remote.lease.wait_valid(stopping):
            self.check_lease()
            raise CheckpointError(f"the stream stops while the checkpoint {self} does not answer")

    def check_lease(self) -> None:
        """Check whether another program was seen to have taken it.

        Raises:
            CheckpointError: so it was.
        """
        if self._remote is not None and (loser := self._remote.lease.new_holder):
            raise CheckpointError(
                f"another streamer has taken the checkpoint {self} over ({loser}): this one gave "
                f"no sign of life for a while. It ends, and the other continues"
            )

    @property
    def lock(self) -> int:
        """The lock's file descriptor, for the JVM to inherit."""
        return self._lock.file

    @property
    def spark(self) -> CheckpointPath:
        """Spark's own checkpoint, of the generation that runs."""
        return self.root / _numbered_name("spark", self._record_number("generation"))

    @property
    def spool(self) -> Path:
        """The directory in which inputs keep what they have received."""
        return self.directory / _numbered_name("spool", self._record_number("spool"))

    @property
    def rejected(self) -> CheckpointPath:
        """The directory in which rejected messages wait to be sent again."""
        return self.root / "rejected"

    @property
    def start_offset(self) -> MicroBatchOffset | None:
        """The offset that the generation goes on from; None for the beginning of the input."""
        fields = self.read_record().get("begins_at")
        return None if fields is None else MicroBatchOffset.from_fields(fields)

    @property
    def kafka_start_offsets(self) -> list[Mapping[str, Mapping[str, int]]]:
        """The same for each Kafka input, by topic and partition."""
        return list(self.read_record().get("kafka_begins_at", ()))

    @property
    def seed(self) -> CheckpointPath | None:
        """The initial state of the generation's shards; None for none."""
        number = self._record_number("seed")
        return self.seed_path(number) if number else None

    def seed_path(self, generation: int) -> CheckpointPath:
        """Return where there is what the shards of a generation begin with."""
        name = _numbered_name("seed", generation)
        # Workers find it by its name alone, beside those of other streams.
        return self.root / (f"{name}-{self.identity}" if self.is_remote else name)

    @property
    def is_new(self) -> bool:
        """Whether nothing has ever run on it."""
        return not self.is_resumable and not self._record_number("generation")

    @property
    def revision(self) -> str:
        """The revision whose deploy began the generation; empty for none."""
        return str(self.read_record().get("revision", ""))

    @property
    def identity(self) -> str:
        """The identity of the checkpoint, which no other has; empty before `bind`."""
        return str(self.read_record().get("identity", ""))

    @property
    def generation(self) -> int:
        """The number of the generation that runs, from 0."""
        return self._record_number("generation")

    def global_batch_number(self, number: int) -> int:
        """Return the number of a micro-batch of Spark's among those of all generations."""
        return self._record_number("generation") * _BATCHES_PER_GENERATION + number

    def _record_number(self, name: str) -> int:
        # Where the record is whole is looked at by `record`.
        return int(self._read_record_leniently().get(name, 0))

    def _read_record_leniently(self) -> dict[str, Any]:
        if self._cached_record is not None:
            return self._cached_record
        try:
            record = json.loads(self._file.read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        if not isinstance(record, dict):
            return {}
        record.pop("checksum", None)
        return record

    def _cache_record(self, record: dict[str, Any]) -> None:
        """Know the record of a checkpoint elsewhere: nobody else writes it meanwhile."""
        self._cached_record = record if self.is_remote else None

    @property
    def is_resumable(self) -> bool:
        """Whether an earlier start left something to go on with."""
        return self.is_planned or self.seed is not None

    @property
    def is_planned(self) -> bool:
        """Whether a micro-batch of the generation was planned."""
        return any(True for _ in list_batch_numbers(self.spark / "offsets"))

    def forget_unplanned(self) -> None:
        """Delete what a start has left that ended before a micro-batch was planned.

        Of half a file of offsets Spark says that the directory should be empty, at every start.
        """
        if not self.is_planned:
            remove_tree(self.spark)

    def read_record(self) -> dict[str, Any]:
        """Return what `bind` wrote, or an empty dict.

        Raises:
            CheckpointError: it cannot be read.
        """
        if self._cached_record is not None:
            return self._cached_record
        try:
            record = json.loads(self._file.read_bytes())
            if not isinstance(record, dict):
                raise ValueError("it is not a JSON object")
            # Version 0.1 has written no check sum.
            if record.pop("checksum", None) not in (None, _checksum(record)):
                raise ValueError("it was changed: its checksum is wrong")
        except FileNotFoundError:
            if self.is_resumable:
                raise CheckpointError(
                    f"{self} holds a Spark checkpoint but no {self._file.name}: "
                    "it is not streamer's; name another directory with --checkpoint"
                ) from None
            return {}
        except ValueError as e:
            raise CheckpointError(
                f"{self._file} cannot be read ({e}); restore it from a backup, or delete "
                f"{self} to start from the beginning of the input"
            ) from None
        if record.get("format") != FORMAT:
            raise CheckpointError(
                f"the checkpoint {self} has format {record.get('format')}, this program "
                f"reads {FORMAT}; run the version that wrote it, or delete the directory to start "
                "from the beginning of the input"
            )
        self._cache_record(record)
        return record

    def clear_finished_run(self) -> bool:
        """Clear what a finished run left; tell whether there was one."""
        finished = bool(self.read_record().get("finished"))
        if finished:
            for path in self.find_paths(
                *("spark", "spark-*", "seed-*", "spool", "spool-*", "signals", "rejected", "tables")
            ):
                remove_tree(path)
            # Micro-batches are numbered anew: a journal that stayed would take the first ones for
            # replays and cut files back.
            # What says that there is one goes first.
            for kind in ("newest", "columns", "tables", "json"):
                for journal in self.directory.glob(f"files*.{kind}"):
                    journal.unlink()
            # For the same reason nothing stays of messages that ended workers.
            crashes = self.root / "crashes.json"
            if isinstance(crashes, Path):
                crashes.unlink(missing_ok=True)
            else:
                crashes.delete()
            self._delete_record()
        return finished

    def find_paths(self, *patterns: str) -> list[CheckpointPath]:
        """Return what has names like these, here and elsewhere."""
        places: list[CheckpointPath] = [self.directory]
        if self.is_remote:
            places.append(self.root)
        return [path for place in places for name in patterns for path in place.glob(name)]

    def _delete_record(self) -> None:
        file, self._cached_record = self._file, None
        if isinstance(file, Path):
            file.unlink()
        else:
            file.delete()

    def bind(
        self,
        fingerprint: Mapping[str, Any],
        inputs: Mapping[str, Any],
        plugins: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Write down what the state belongs to.

        Args:
            fingerprint: the plan's.
            inputs: what each input remembers for its next start, by its name.
            plugins: the packages of its plugins with their versions, by component.
        """
        before = self._read_record_leniently()
        fields: dict[str, Any] = {"identity": uuid.uuid4().hex[:16]}
        fields |= {name: before[name] for name in _PRESERVED_FIELDS if name in before}
        if plugins:
            fields["plugins"] = dict(plugins)
        self.write_record({"fingerprint": dict(fingerprint), "inputs": dict(inputs), **fields})

    def finish(self) -> None:
        """Note that the input was read to its end and nothing is held: the next start is new."""
        self.write_record({**self.read_record(), "finished": True})

    def write_record(self, record: Mapping[str, Any]) -> None:
        """Replace the record at once: after a crash there is the one before, or this one."""
        whole = json.loads(json.dumps({"format": FORMAT, **record}))
        checked_record = {**whole, "checksum": _checksum(whole)}
        replace_file(self._file, json.dumps(checked_record, indent=1).encode())
        self._cache_record(whole)

    def check_fingerprint(self, fingerprint: Mapping[str, Any]) -> dict[str, Any]:
        """Compare the config with what the state is bound to; return the state's own fingerprint.

        The number of shards is that of the checkpoint: state cannot be cut anew while it is in use
        (`streamer rescale` does so).

        Raises:
            CheckpointError: the state was made by another input or other windows.
        """
        bound = self.read_record().get("fingerprint")
        if bound is None:
            return dict(fingerprint)
        for name in ("input", "window", "key"):
            if _is_compatible(bound.get(name), fingerprint.get(name)):
                continue
            if name != "input" and _has_more_buffers(bound, fingerprint):
                continue
            if self.is_resumable or name == "input":
                raise self._make_mismatch_error(name, bound, fingerprint)
        return {**fingerprint, "shards": bound["shards"]}

    def _make_mismatch_error(
        self, name: str, bound: Mapping[str, Any], current: Mapping[str, Any]
    ) -> CheckpointError:
        """Return why a config cannot go on with this checkpoint; the safest remedy comes first."""
        before, now = compare_states(name, bound.get(name), current.get(name))
        if name == "input" and (
            not self.is_resumable or str(bound.get("window")) in _STATELESS_BUFFERS
        ):
            remedy = "change it back, or name another directory with --checkpoint"
            return CheckpointError(
                f"the checkpoint {self} was made with {before}, the config has {now}; {remedy}"
            )
        drain = "with -w --on-reset drain"
        if (self.directory / "running.plan").exists():
            drain = f"start {drain}"
        else:
            drain = f"start the earlier config once {drain}, stop it, and start this one likewise"
        return CheckpointError(
            f"the checkpoint {self} was made with {before}, the config has {now}, which cannot go "
            f"on with its open windows; to lose nothing, {drain}: these windows come out first. Or "
            "change it back; or name another directory with --checkpoint to start from the "
            "beginning of the input, without the open windows"
        )

    def close(self) -> None:
        """Give the lock back; a JVM that inherited it holds it until it ends."""
        if self._remote is not None:
            self._remote.lease.release()
        self._lock.close()


def _numbered_name(name: str, number: int) -> str:
    return f"{name}-{number}" if number else name


def _checksum(record: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(record, sort_keys=True).encode())


def _has_more_buffers(bound: Mapping[str, Any], current: Mapping[str, Any]) -> bool:
    """Return whether a config has buffers behind those that the state is bound to."""
    return extends_state(str(bound.get("window")), str(current.get("window"))) and str(
        current.get("key")
    ).startswith(str(bound.get("key")))


def _is_compatible(bound: Any, current: Any) -> bool:
    return bound == current or {str(bound), str(current)} <= _STATELESS_BUFFERS
