"""A copy of a running stream's checkpoint, on which a canary goes on beside it.

It is taken between two micro-batches, in the thread that is about to run the next one: all before
it are committed, and nothing of it is stored yet. So the copy is what a crash at this moment would
leave, and whoever starts on it repeats just that micro-batch.

Spark replaces the files of a checkpoint, and never changes one: so the copy has the same files as
long as both are in one file system, and takes no time and no place. Its maintenance may delete an
older file meanwhile, which nobody needs.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from streamer.spark.checkpoint.checkpoint import Checkpoint, CheckpointError

_SST_SUFFIX: Final = ".sst"
_DRAFT_MARKS: Final = (".tmp", ".crc.tmp")


def clone_checkpoint(checkpoint: Checkpoint, directory: Path) -> None:
    """Make a copy of a checkpoint, with an identity of its own.

    Args:
        checkpoint: of the running stream; no micro-batch of it runs until this returns.
        directory: where the copy is to be; it must not be there.

    Raises:
        CheckpointError: the checkpoint is not on this machine.
        OSError: the copy cannot be written.
    """
    spark = checkpoint.spark
    if not isinstance(spark, Path) or not isinstance(checkpoint.root, Path):
        raise CheckpointError(
            f"the checkpoint {checkpoint} is not on this machine, so it cannot be copied at once"
        )
    directory.mkdir(mode=0o700, parents=True)
    _link_tree(spark, directory / spark.name)
    _rename_query(directory / spark.name)
    tables, seed = checkpoint.root / "tables", checkpoint.seed
    for part in (tables, seed):
        if isinstance(part, Path) and part.exists():
            _link_tree(part, directory / part.name)
    record = {**checkpoint.read_record(), "identity": uuid.uuid4().hex[:16]}
    clone = Checkpoint(directory)
    try:
        clone.write_record(record)
    finally:
        clone.close()


def _link_tree(source: Path, target: Path) -> None:
    """Give a directory the files of another one: those first that name others."""
    files = sorted(_iter_files(source), key=lambda path: path.suffix == _SST_SUFFIX)
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in files:
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # deleted meanwhile, since nobody needs it
            _link(file, place)


def _iter_files(directory: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(directory):
        for name in names:
            if not name.endswith(_DRAFT_MARKS):
                yield Path(folder, name)


def _link(file: Path, place: Path) -> None:
    try:
        os.link(file, place)
    except FileNotFoundError:
        raise
    except OSError:  # another file system, or one without links
        shutil.copy2(file, place)


def _rename_query(spark: Path) -> None:
    """Give the copy's query an identity of its own: Spark runs no two queries of one."""
    file = spark / "metadata"
    if file.exists():
        # The file is that of the stream too: another takes its place.
        draft = spark / ".metadata.draft"
        draft.write_text(json.dumps({"id": str(uuid.uuid4())}))
        (spark / ".metadata.crc").unlink(missing_ok=True)
        os.replace(draft, file)
