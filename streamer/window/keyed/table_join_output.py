"""Builds the messages of a stream that is joined with a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from streamer.core.message import Message
from streamer.window.contract import Emission, WindowReason
from streamer.window.keyed.join_metadata import JoinMetadata
from streamer.window.keyed.join_output import parse_documents
from streamer.window.keyed.lazy_metadata import LazyMetadata
from streamer.window.keyed.message_rows import LoadedPack
from streamer.window.keyed.table_rows import RowVersion
from streamer.window.pack.metadata_codec import read_key_spelling

_MESSAGES_PER_PORTION: Final = 500
"""Number of messages that are built together."""


class JoinedMessage(NamedTuple):
    """A message with its row.

    Attributes:
        time: the event time of the message, ns.
        arrival: its arrival number.
        key: its key.
        loaded: its pack.
        row: its row in the pack.
        version: the row of the table; None without one.
        reason: why it is emitted.
        is_null: whether the message has no value, and so is not emitted.
    """

    time: int
    arrival: int
    key: bytes
    loaded: LoadedPack
    row: int
    version: RowVersion | None
    reason: WindowReason
    is_null: bool = False


class TableJoinOutput:
    """Builds the messages of one micro-batch; a row of the table is parsed once for a portion."""

    def __init__(self) -> None:
        self._metadata = JoinMetadata()

    def emit(self, joined: Sequence[JoinedMessage]) -> Iterator[Emission]:
        """Give the joined messages, each a batch of its own.

        Args:
            joined: the messages, in order.
        """
        for reason, same in groupby(joined, key=_reason_of):
            some = list(same)
            for first in range(0, len(some), _MESSAGES_PER_PORTION):
                messages = self._build(some[first : first + _MESSAGES_PER_PORTION])
                yield Emission(None, messages, reason, is_per_message=True)

    def _build(self, joined: Sequence[JoinedMessage]) -> list[Message]:
        lefts = parse_documents([one.loaded.payloads[one.row] for one in joined])
        rows = {id(one.version): one.version for one in joined if one.version is not None}
        parsed = parse_documents([version.payload or b"" for version in rows.values()])
        rights = dict(zip(rows, parsed, strict=True))

        def entries(place: int) -> dict[str, Any]:
            one = joined[place]
            mine = one.loaded.encoded_metadata(one.row)
            other = b"" if one.version is None else one.version.meta
            key = read_key_spelling(mine) or one.key
            both = self._metadata.merge(mine, other)
            return self._metadata.make(both, (one.time, one.time), one.time, key, one.reason)

        return [
            Message(
                None,
                LazyMetadata(entries, place),
                None,
                {"left": left, "right": rights.get(id(one.version))},
            )
            for place, (one, left) in enumerate(zip(joined, lefts, strict=True))
        ]


def _reason_of(joined: JoinedMessage) -> WindowReason:
    return joined.reason
