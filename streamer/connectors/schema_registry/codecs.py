"""Codecs of a worker: made once of the schemas of a registry, and kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from streamer.connectors.schema_registry.client import Schema, UnknownSchemaError
from streamer.core.errors import StreamerError
from streamer.core.message import Message

_STALE_S: Final = 600.0
_MISSING_S: Final = 5.0
"""How long a schema that was not there is not asked for again."""

_MAX_MISSING: Final = 10_000


class MessageCodec(Protocol):
    """Reads and writes messages of one schema."""

    def decode(self, message: Message, raw: bytes) -> Message:
        """Return a message with the document that bytes stand for.

        Raises:
            MessageError: they fit the schema in no way.
        """

    def encode(self, message: Message) -> bytes:
        """Return a message's document as bytes.

        Raises:
            MessageError: it does not fit the schema.
        """


@dataclass(frozen=True, slots=True)
class KeptCodec:
    """A codec that is kept.

    Attributes:
        codec: reads and writes messages.
        schema_id: the id of its schema.
        made: when the registry gave it, s.
    """

    codec: MessageCodec
    schema_id: int
    made: float


class CodecCache:
    """Codecs by what they are asked for: ids or subjects. Threads may share it.

    What a registry does not know is remembered for a while as well: whole batches may ask for it.
    """

    def __init__(
        self,
        fetch: Callable[[int | str], Schema],
        make: Callable[[Schema], MessageCodec],
        *,
        stale_after: float = _STALE_S,
        refresh_after: float | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with none.

        Args:
            fetch: asks the registry.
            make: makes a codec of a schema.
            stale_after: seconds without a use after which a codec goes.
            refresh_after: seconds after which the registry is asked again; None for never.
            now: a clock that never runs backwards, s.
        """
        self._fetch = fetch
        self._make = make
        self._stale_after = stale_after
        self._refresh_after = refresh_after
        self._now = now
        self._lock = threading.RLock()
        self._kept: dict[int | str, KeptCodec] = {}
        self._used: dict[int | str, float] = {}
        self._missing: dict[int | str, tuple[float, str]] = {}
        self._purge_at = now() + stale_after

    def find(self, key: int | str, on_failed_refresh: Callable[[str], None]) -> KeptCodec:
        """Return the codec of an id or a subject.

        Args:
            key: the id or the subject.
            on_failed_refresh: called with the error where an older codec has to do.

        Raises:
            StreamerError: there is no such schema, it is not right, or the registry is away.
        """
        now = self._now()
        kept = self._kept.get(key)
        if kept is None or self._is_due(kept, now):
            with self._lock:
                kept = self._kept.get(key)
                if kept is None:
                    kept = self._kept[key] = self._load(key, now)
                elif self._is_due(kept, now):
                    kept = self._kept[key] = self._reload(key, kept, now, on_failed_refresh)
        self._used[key] = now
        if now >= self._purge_at:
            self._purge(now)
        return kept

    def _is_due(self, kept: KeptCodec, now: float) -> bool:
        return self._refresh_after is not None and now - kept.made >= self._refresh_after

    def _load(self, key: int | str, now: float) -> KeptCodec:
        until, why = self._missing.get(key, (0.0, ""))
        if why and now < until:
            raise UnknownSchemaError(why)
        try:
            schema = self._fetch(key)
        except UnknownSchemaError as e:
            if len(self._missing) >= _MAX_MISSING:
                self._missing.clear()
            self._missing[key] = now + _MISSING_S, str(e)
            raise
        self._missing.pop(key, None)
        return KeptCodec(self._make(schema), schema.id, now)

    def _reload(
        self, key: int | str, kept: KeptCodec, now: float, on_failed: Callable[[str], None]
    ) -> KeptCodec:
        try:
            schema = self._fetch(key)
            if schema.id == kept.schema_id:
                return replace(kept, made=now)
            return KeptCodec(self._make(schema), schema.id, now)
        except StreamerError as e:
            on_failed(f"Failed to refresh schema subject '{key}': {e}")
            # It is asked again after a tenth of the period, as often as Connect looks.
            assert self._refresh_after is not None
            return replace(kept, made=now - self._refresh_after + max(self._refresh_after / 10, 1))

    def _purge(self, now: float) -> None:
        with self._lock:
            self._purge_at = now + self._stale_after / 10
            for key, used in list(self._used.items()):
                if now - used >= self._stale_after:
                    self._kept.pop(key, None)
                    self._used.pop(key, None)
