"""Commits of a Delta table, as its log has them: files that are added and removed.

Source: Delta's protocol, sections "Delta Log Entries", "Actions" and "Change Data Files".
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

_LOG: Final = "_delta_log"


class LogFile(NamedTuple):
    """A file that a commit names.

    Attributes:
        path: below the directory of the table, not encoded.
        size: bytes; 0 where the log does not say it.
        rows: how many rows; -1 where the log does not say it.
        partition: the values of partition columns as texts; None for null.
        has_deleted_rows: whether some of its rows are deleted by a vector.
    """

    path: str
    size: int
    rows: int
    partition: Mapping[str, str | None]
    has_deleted_rows: bool


class Commit(NamedTuple):
    """One version of a table.

    Attributes:
        operation: what the writer calls it, such as `WRITE` or `MERGE`.
        added: files whose rows are new.
        removed: files whose rows are not there any more.
        changes: files with the changed rows, where the table keeps them.
        schema: the JSON of the columns, where the commit sets it; empty for as before.
        partition_columns: the columns of partitions, where the commit sets the columns.
    """

    operation: str
    added: list[LogFile]
    removed: list[LogFile]
    changes: list[LogFile]
    schema: str
    partition_columns: list[str]


def open_files(uri: str, options: Mapping[str, str]) -> fs.FileSystem:
    """Return the files of a table: the paths are below its directory.

    Args:
        uri: a directory, or a URL such as `s3://bucket/table`.
        options: for the store, as the library `object_store` names them.
    """
    if "://" not in uri:
        return fs.SubTreeFileSystem(os.path.abspath(uri), fs.LocalFileSystem())
    from deltalake.fs import DeltaStorageHandler

    return fs.PyFileSystem(DeltaStorageHandler(uri, dict(options)))


def has_commit(files: fs.FileSystem, version: int) -> bool:
    """Return whether the log has a version."""
    info = files.get_file_info(f"{_LOG}/{version:020}.json")
    return bool(info.type == fs.FileType.File)


def read_commit(files: fs.FileSystem, version: int) -> Commit:
    """Read one version of the log.

    Raises:
        FileNotFoundError: the log does not have it, or not any more.
        ValueError: it is none.
    """
    with files.open_input_stream(f"{_LOG}/{version:020}.json") as stream:
        body = stream.read()
    commit = Commit("", [], [], [], "", [])
    for line in body.splitlines():
        if not line.strip():
            continue
        action = json.loads(line)
        if info := action.get("commitInfo"):
            commit = commit._replace(operation=info.get("operation", ""))
        if meta := action.get("metaData"):
            commit = commit._replace(
                schema=meta["schemaString"], partition_columns=meta["partitionColumns"]
            )
        for name, files_of in (("add", commit.added), ("remove", commit.removed)):
            # A compaction moves rows to other files, and changes none.
            if (one := action.get(name)) and one.get("dataChange", True):
                files_of.append(_read_file(one))
        if one := action.get("cdc"):
            commit.changes.append(_read_file(one))
    return commit


def _read_file(action: Mapping[str, Any]) -> LogFile:
    stats = json.loads(action.get("stats") or "{}")
    return LogFile(
        decode_path(action["path"]),
        action.get("size") or 0,
        stats.get("numRecords", -1),
        action.get("partitionValues") or {},
        bool(action.get("deletionVector")),
    )


def decode_path(path: str) -> str:
    """Return the path of a file below the table, which the log has as in a URL.

    Raises:
        ValueError: the file is elsewhere, as those of a shallow clone are.

    Example:
        >>> decode_path("k=a%2520b/part-0.parquet")
        'k=a%20b/part-0.parquet'
    """
    decoded = unquote(path)
    if "://" in decoded or decoded.startswith("/") or ".." in decoded.split("/"):
        raise ValueError(f"the file {decoded} is not in the directory of the table")
    return decoded


def read_partition_value(text: str | None, kind: pa.DataType) -> pa.Scalar:
    """Return the value of a partition column; the log has it as text, and null as none or empty.

    Raises:
        ValueError: the text is none of the type.

    Example:
        >>> read_partition_value("2026-01-01", pa.date32()).as_py()
        datetime.date(2026, 1, 1)
    """
    if text is None or text == "":
        return pa.scalar(None, kind)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.scalar(text.encode(), kind)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        # It has a zone or none, which is UTC then.
        plain = text.removesuffix("Z").replace("T", " ")
        return pa.scalar(plain).cast(pa.timestamp(kind.unit)).cast(kind)
    return pa.scalar(text).cast(kind)
