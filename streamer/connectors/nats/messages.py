"""Messages of NATS as records of the spool, and as they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.connectors.nats.client_fields import HEADERS, METADATA
from streamer.connectors.spool.blocks import Record, pack_each
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.metadata_filter import MetadataFilter
from streamer.sdk.spec import ParsedFields


def header_metadata(message: Any) -> dict[str, str]:
    """Return the headers of a message; those without a text are left out, as in Connect."""
    headers: Mapping[str, str] = message.headers or {}
    return {name: text for name, text in headers.items() if text}


def make_record(message: Any, metadata: Mapping[str, Any]) -> Record:
    """Return a message with its headers and more metadata as a record of the spool."""
    return pack_each([bytes(message.data)], {**header_metadata(message), **metadata})


class HeaderMaker:
    """Makes the headers of messages that are sent, by `headers` and `metadata`."""

    def __init__(self, parsed: ParsedFields) -> None:
        """Compile the fields."""
        self._headers: dict[str, Interpolation] = {
            name: compile_interpolation(text) for name, text in parsed[HEADERS].items()
        }
        self._filter = MetadataFilter(parsed[METADATA])

    def make(self, batch: Batch, index: int, ex: Execution) -> dict[str, str] | None:
        """Return the headers of a message of a batch; None without any.

        Raises:
            MessageError: one cannot be told.
        """
        made = {
            name: interpolate(f"header {name}", text, batch, index, ex)
            for name, text in self._headers.items()
        }
        for name, value in self._filter.select(batch[index].meta):
            made[name] = value if isinstance(value, str) else _as_text(value)
        return made or None


def _as_text(value: Any) -> str:
    from streamer.core.json.dump import dump_json

    return value.decode(errors="replace") if isinstance(value, bytes) else dump_json(value).decode()
