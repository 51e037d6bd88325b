"""Positions in a bucket, as offsets: the objects of a micro-batch, and the place in the last one.

A listing can be another one when a micro-batch comes again, so its offset has its objects by name.
It stands in Spark's log and in each task, so their number and the length of their keys are bounded.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from streamer.connectors.objects.store import ListedObject
from streamer.sdk.input.replayable import Offset
from streamer.sdk.input.scanning import ScanMark

MAX_OBJECTS: Final = 1000
"""Objects of a micro-batch, at most."""

MAX_KEY_CHARACTERS: Final = 128 << 10
"""Characters of the keys of a micro-batch, at most."""


class PartlyRead(NamedTuple):
    """An object that is read up to a place.

    Attributes:
        object: the object.
        mark: the place. Of lines it is a number of bytes: those lines are read that begin before.
    """

    object: ListedObject
    mark: ScanMark


class BatchObject(NamedTuple):
    """An object that a micro-batch reads to its end.

    Attributes:
        object: the object.
        is_rest: whether it begins where the micro-batch before has stopped in it.
        is_reread: whether it has replaced an object of which a part was read.
    """

    object: ListedObject
    is_rest: bool = False
    is_reread: bool = False


class ObjectOffset(NamedTuple):
    """The end of a micro-batch.

    Attributes:
        after: the key behind which objects follow; empty where the input knows by other means what
            was read.
        objects: what the micro-batch reads to the end, in its order.
        partly_read: the object behind these that the micro-batch reads in part; None for none.
        read_until: the time until which all objects are read, ns since 1970; 0 for unknown.
    """

    after: str = ""
    objects: Sequence[BatchObject] = ()
    partly_read: PartlyRead | None = None
    read_until: int = 0

    def to_offset(self) -> Offset:
        """Return the offset as JSON."""
        offset: Offset = {"after": self.after}
        if self.read_until:
            offset["read_until"] = self.read_until
        if self.objects:
            offset["objects"] = _pack(
                [[*one.object, one.is_rest, one.is_reread] for one in self.objects]
            )
        if self.partly_read is not None:
            partly = self.partly_read
            offset["in"] = {"object": list(partly.object), "mark": list(partly.mark)}
        return offset

    @classmethod
    def from_offset(cls, offset: Offset, with_objects: bool = True) -> ObjectOffset:
        """Read an offset; without its objects where nobody needs them."""
        objects = [
            BatchObject(ListedObject(*fields), bool(is_rest), bool(is_reread))
            for *fields, is_rest, is_reread in _unpack(
                offset.get("objects", "") if with_objects else ""
            )
        ]
        partly = offset.get("in")
        return cls(
            offset["after"],
            objects,
            PartlyRead(ListedObject(*partly["object"]), ScanMark(*partly["mark"]))
            if partly
            else None,
            offset.get("read_until", 0),
        )


def _pack(rows: Sequence[Any]) -> str:
    text = json.dumps(rows, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode())).decode()


def _unpack(text: str) -> Sequence[Any]:
    if not text:
        return ()
    rows: Sequence[Any] = json.loads(zlib.decompress(base64.b64decode(text)))
    return rows
