"""A file with the rows of a lookup table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Final

from streamer.connectors.locations.location_files import LocationFiles
from streamer.core.execution import Execution
from streamer.core.locations import is_location, location_problem
from streamer.core.lookup_tables import TableRow
from streamer.core.permissions import Permissions
from streamer.sdk.spec import Access, Field

PATH: Final = "path"
PATH_FIELD: Final = Field(
    PATH,
    "string",
    "The file, on the driver's machine, or the URL of an object (`s3://bucket/key`, see "
    "[Places](../../places.md)). Replace a file whole (write another one and rename it), so that "
    "no half of it is read.",
    access=Access.FILE,
    check=location_problem,
    examples=("cities.csv",),
)
REFRESH: Final = ("10s", "to look whether the file has changed, and to load it then")


class TableFile:
    """Reads a file whole."""

    def __init__(
        self, path: str, permissions: Permissions, parse: Callable[[bytes], Iterable[TableRow]]
    ) -> None:
        """Take the file, and what makes rows of its bytes."""
        self._path, self._permissions, self._parse = path, permissions, parse
        self._files = LocationFiles(permissions)

    def read_rows(self, ex: Execution) -> Iterable[TableRow]:
        """Give the rows; see `RowSource`."""
        if is_location(self._path):
            return self._parse(self._files.read(self._path))
        return self._parse(self._permissions.read(self._path))

    def change_sign(self) -> str | None:
        """Return what changes when the file is written or replaced.

        Raises:
            OSError: nobody knows it now.
        """
        if is_location(self._path):
            return self._files.version(self._path)
        stat = os.stat(self._permissions.file(self._path))
        return f"{stat.st_mtime_ns} {stat.st_size} {stat.st_ino}"
