"""The ids of streams: of requests, and of the files of a directory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

from streamer.core.errors import StreamerError

STREAM_ID_PATTERN: Final = "[A-Za-z0-9_-]{1,128}"
"""What the id of a stream looks like, as a regular expression."""

_ID: Final = re.compile(STREAM_ID_PATTERN)
RESERVED_IDS: Final = frozenset(
    {
        *("bloblang", "console", "debug", "endpoints", "lint", "metrics", "ping", "ready"),
        *("resources", "schema", "stats", "streams", "version"),
    }
)
"""What the service's own paths begin with. Those of a stream begin with its id: `/ID/ready`."""

_TEST_FILE_ENDINGS: Final = ("_streamer_test", "_benthos_test")
_CONFIG_FILE_ENDINGS: Final = (".yaml", ".yml")


def id_problem(text: str) -> str | None:
    """Return what is wrong with the id of a stream, which names a directory and a path."""
    if _ID.fullmatch(text):
        return None
    shortened = text if len(text) <= 40 else f"{text[:37]}..."
    return f"{shortened!r} is no id of a stream; expected up to 128 of A-Z, a-z, 0-9, _ and -"


def stream_id_problem(text: str, root_path: str) -> str | None:
    """Return why a new stream cannot have an id; see `id_problem`.

    Args:
        text: the id.
        root_path: what the service's paths are served behind as well.
    """
    if text in RESERVED_IDS or text == root_path.strip("/").partition("/")[0]:
        return (
            f"{text!r} cannot be the id of a stream: the service has paths of its own at /{text}, "
            "where the stream's would be; expected another id"
        )
    return id_problem(text)


def file_ids(paths: Iterable[str], root_path: str) -> dict[str, str]:
    """Return the streams of files by their ids, in order.

    As in Benthos, the id is the file's name without its ending; of files below a directory that
    was named, the path from there, with `_` between its parts. Files of tests are left out.

    Args:
        paths: files, and directories with YAML files.
        root_path: what the service's paths are served behind as well.

    Raises:
        StreamerError: two files have one id, an id is none or is the service's own, or a path does
            not exist.
    """
    path_by_id: dict[str, str] = {}
    for path in paths:
        for stream_id, file in _iter_files(path):
            problem = stream_id_problem(stream_id, root_path)
            if problem is not None:
                raise StreamerError(f"{file}: {problem}; rename the file")
            if path_by_id.get(stream_id, file) != file:
                raise StreamerError(
                    f"{path_by_id[stream_id]} and {file} would both be the stream {stream_id}; "
                    "rename one of them"
                )
            path_by_id[stream_id] = file
    return path_by_id


def _iter_files(path: str) -> Iterable[tuple[str, str]]:
    if not os.path.isdir(path):
        if not os.path.exists(path):
            raise StreamerError(f"{path}: there is no such file or directory")
        yield os.path.splitext(os.path.basename(path))[0], path
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            bare, ending = os.path.splitext(name)
            if (
                ending in _CONFIG_FILE_ENDINGS
                and not name.startswith(".")
                and not bare.endswith(_TEST_FILE_ENDINGS)
            ):
                inner = os.path.relpath(os.path.join(folder, bare), path)
                yield inner.replace(os.sep, "_"), os.path.join(folder, name)
