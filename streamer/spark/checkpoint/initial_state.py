"""Initial state of a rescaled stream's shards, as workers find it."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from streamer.spark.checkpoint.checkpoint import Checkpoint


def seed_for_workers(checkpoint: Checkpoint) -> str:
    """Return the directory for workers: its path, or its name among Spark's files.

    Returns:
        Nothing when the shards begin with nothing.
    """
    seed = checkpoint.seed
    if seed is None:
        return ""
    return str(seed) if isinstance(seed, Path) else seed.name


def ship_seed(session: SparkSession, checkpoint: Checkpoint) -> None:
    """Let workers fetch it when it is on another file system, which only Spark reaches."""
    seed = checkpoint.seed
    if seed is not None and not isinstance(seed, Path):
        session.sparkContext.addFile(str(seed), recursive=True)
