"""Lookup tables in a worker: the versions that the micro-batch in hand looks up.

A local property says which they are, and where. On a local master that is a directory of the
checkpoint, on a cluster the directory into which Spark fetches files of the driver.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkFiles

from streamer.core.lookup_tables import LookupTable
from streamer.sdk.lookup_table import TableError, missing_table, read_version
from streamer.sdk.worker_resources import WorkerResources


class _VersionCache:
    """The version of each table that this process has read last, by label."""

    def __init__(self) -> None:
        self.tables: dict[str, tuple[str, LookupTable]] = {}


class WorkerTables:
    """The tables of a micro-batch; a version is read when it is first looked up, and then kept."""

    def __init__(self, versions: Mapping[str, str], directory: str, kept: _VersionCache) -> None:
        """Take the versions by label, and where they are; empty for among Spark's files."""
        self._versions, self._directory, self._kept = versions, directory, kept

    def find(self, label: str) -> LookupTable:
        """Return a table; see `LookupTables.find`."""
        version = self._versions.get(label)
        if version is None:
            raise missing_table(label, self._versions)
        known, table = self._kept.tables.get(label, ("", None))
        if table is None or known != version:
            path = (
                Path(self._directory, label)
                if self._directory
                else Path(SparkFiles.getRootDirectory())
            )
            table = _read(path / table_file_name(version), label)
            self._kept.tables[label] = (version, table)
        return table


def table_file_name(version: str) -> str:
    """Return the name of the file of a version."""
    return f"{version}.table"


def _read(path: Path, label: str) -> LookupTable:
    try:
        return read_version(path.read_bytes())
    except (OSError, ValueError) as e:
        raise TableError(f"the table {label!r} cannot be read from {path}: {e}") from None


def describe_versions(versions: Mapping[str, str], directory: str) -> str:
    """Return the text of the local property; see `WorkerTables`."""
    return json.dumps({"versions": dict(versions), "directory": directory})


def tables_of(text: str, resources: WorkerResources) -> WorkerTables:
    """Return the tables that the text of a local property names.

    Args:
        text: what `describe_versions` has made.
        resources: those of the stream's run in this process.
    """
    record = json.loads(text)
    kept = resources.get(_VersionCache, _VersionCache)
    return WorkerTables(record["versions"], record["directory"], kept)
