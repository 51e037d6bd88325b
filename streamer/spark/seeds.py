"""What the shards of a rescaled stream begin with, as workers find it."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from streamer.spark.checkpoint import Checkpoint


def seed_of(checkpoint: Checkpoint) -> str:
    """Return the directory for workers: its path, or its name among Spark's files.

    Returns:
        Nothing when the shards begin with nothing.
    """
    found = checkpoint.seed
    if found is None:
        return ""
    return str(found) if isinstance(found, Path) else found.name


def bring_seed(session: SparkSession, checkpoint: Checkpoint) -> None:
    """Let workers fetch it when it is on another file system, which only Spark reaches."""
    found = checkpoint.seed
    if found is not None and not isinstance(found, Path):
        session.sparkContext.addFile(str(found), recursive=True)
