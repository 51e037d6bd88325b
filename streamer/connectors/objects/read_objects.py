"""The memory of which objects were read, for an input that watches for new ones.

Eight bytes for each object that is there, on the driver's disk and in the memory of the process
that plans micro-batches: a million objects take 8 MB. An object that was deleted is forgotten at
the end of a listing. A hash of 64 bits stands for an object: among a million of them, one that is
new is taken for a known one with a probability of 5e-14.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.objects.store import ListedObject
from streamer.core.disk import sync_data, sync_directory

if TYPE_CHECKING:
    import numpy as np

FILE_NAME: Final = "read_objects"
_MAX_RECENT: Final = 50_000
"""Hashes that are kept in a set before they go into the sorted array."""
_HASH_BYTES: Final = 8


def hash_object(listed: ListedObject) -> int:
    """Return the hash of one version of an object."""
    text = f"{listed.key}\0{listed.version}\0{listed.modified}\0{listed.size}"
    return int.from_bytes(blake2b(text.encode(), digest_size=_HASH_BYTES).digest(), "little")


class ReadObjects:
    """The objects that were read, in a file.

    Its first eight bytes are a time, ns since 1970: all that was modified until then counts as
    read. That is for a machine that goes on with a checkpoint without having the file.
    """

    def __init__(self, path: Path, read_until: int) -> None:
        """Open the file, or make it.

        Args:
            path: of the file.
            read_until: for a file that is not there: the time until which all is read.

        Raises:
            OSError: the disk refuses.
        """
        import numpy as np

        self._path = path
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_whole(path, read_until, b"")
        data = path.read_bytes()
        self._read_until = int.from_bytes(data[:_HASH_BYTES], "little")
        # A half-written hash at the end is of an object whose offset comes again.
        whole = len(data) - len(data) % _HASH_BYTES
        if whole < len(data):
            os.truncate(path, whole)
        self._sorted: np.ndarray[Any, Any] = np.unique(
            np.frombuffer(data[_HASH_BYTES:whole], dtype="<u8")
        )
        self._is_present = np.zeros(len(self._sorted), dtype=bool)
        self._recent: dict[int, bool] = {}

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._sorted) + len(self._recent)

    def is_read(self, listed: ListedObject) -> bool:
        """Return whether an object was read; it is noted that it is there."""
        if listed.modified <= self._read_until:
            return True
        value = hash_object(listed)
        if value in self._recent:
            self._recent[value] = True
            return True
        # As a plain int it would be compared as a float, and the array be copied.
        place = int(self._sorted.searchsorted(self._sorted.dtype.type(value)))
        is_known = place < len(self._sorted) and int(self._sorted[place]) == value
        if is_known:
            self._is_present[place] = True
        return is_known

    def add(self, objects: Iterable[ListedObject]) -> None:
        """Note that objects are read; that is on the disk when this returns.

        Raises:
            OSError: the disk refuses.
        """
        new = [hash_object(one) for one in objects if not self.is_read(one)]
        if not new:
            return
        with open(self._path, "ab") as file:
            file.write(b"".join(value.to_bytes(_HASH_BYTES, "little") for value in new))
            file.flush()
            sync_data(file.fileno())
        self._recent |= dict.fromkeys(new, True)
        if len(self._recent) > _MAX_RECENT:
            self._merge(self._recent)

    def _merge(self, recent: dict[int, bool]) -> None:
        import numpy as np

        values = np.fromiter(recent, dtype="<u8", count=len(recent))
        present = np.fromiter(recent.values(), dtype=bool, count=len(recent))
        joined = np.concatenate((self._sorted, values))
        order = joined.argsort(kind="stable")
        self._sorted = joined[order]
        self._is_present = np.concatenate((self._is_present, present))[order]
        self._recent = {}

    def begin_listing(self) -> None:
        """Note that a listing begins: what it does not have is gone."""
        self._is_present[:] = False
        self._recent = dict.fromkeys(self._recent, False)

    def end_listing(self) -> None:
        """Forget the objects that were not in the listing, once that is worth it.

        Raises:
            OSError: the disk refuses.
        """
        gone = len(self) - int(self._is_present.sum()) - sum(self._recent.values())
        if gone <= max(len(self) // 4, 1000):
            return
        self._merge(self._recent)
        self._sorted = self._sorted[self._is_present]
        self._is_present = self._is_present[self._is_present]
        _write_whole(self._path, self._read_until, self._sorted.tobytes())


def _write_whole(path: Path, read_until: int, hashes: bytes) -> None:
    """Replace the file by another one, whole or not at all."""
    made = path.with_name(f"{path.name}.new")
    with open(made, "wb") as file:
        file.write(max(read_until, 0).to_bytes(_HASH_BYTES, "little") + hashes)
        file.flush()
        sync_data(file.fileno())
    os.replace(made, path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        sync_directory(directory)
    finally:
        os.close(directory)
