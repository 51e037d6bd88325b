"""`cache`: "stores each message in a cache"."""

from __future__ import annotations

from typing import Final

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.core.durations import parse_duration
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.cache import Cache, CacheError, CacheItem, set_many
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, Output, SendError, max_in_flight_field
from streamer.sdk.output.rejection import make_invalid_rejection
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

TARGET: Final = "target"
KEY: Final = "key"
TTL: Final = "ttl"

SPEC: Final = Spec(
    Kind.OUTPUT,
    "cache",
    "Stores each message in a cache.",
    description=(
        "A batch is stored at once, where the cache can. Each worker has its own cache in "
        "memory, which others cannot read."
    ),
    fields=(
        Field(TARGET, "string", "The label of the cache.", refers=Kind.CACHE),
        Field(
            KEY,
            "string",
            "The key of a message, which should be its own.",
            default='${!count("items")}-${!timestamp_unix_nano()}',
            interpolated=True,
            examples=('${!json("doc.id")}', '${!meta("kafka_key")}'),
        ),
        Field(
            TTL,
            "string",
            "Lifetime of a message; default is the cache's own.",
            optional=True,
            advanced=True,
            interpolated=True,
            examples=("60s", "5m", "36h"),
        ),
        max_in_flight_field(),
    ),
    examples=(
        Example(
            "Documents by their id",
            "output:\n"
            "  cache:\n"
            "    target: documents\n"
            '    key: ${! json("id") }\n'
            "cache_resources:\n"
            "  - label: documents\n"
            "    file: { directory: ./documents }\n",
        ),
    ),
    categories=("Services",),
)


class CacheOutput(Output):
    """Stores messages under keys that they say themselves."""

    def __init__(
        self, cache: Cache, key: Interpolation, ttl: Interpolation, max_in_flight: int
    ) -> None:
        self.max_in_flight = max_in_flight
        self._cache = cache
        self._key = key
        self._ttl = ttl

    def send(self, batch: Batch, ex: Execution) -> None:
        """Store a batch; of several messages with one key the last one stays."""
        items: dict[str, CacheItem] = {}
        indices: list[int] = []
        failed: dict[int, str] = {}
        for index, message in enumerate(batch):
            try:
                ttl = self._ttl_of(batch, index, ex)
                key = self._key.text_of(batch, index, ex)
            except SendError as error:
                failed[index] = error.text
            except MessageError as error:
                failed[index] = make_invalid_rejection(f"key interpolation error: {error}")
            else:
                items[key] = CacheItem(message.raw, ttl)
                indices.append(index)
        try:
            if len(indices) > 1:
                set_many(self._cache, items, ex)
            else:
                for key, item in items.items():
                    self._cache.set(key, item.value, item.ttl, ex)
        except CacheError as error:
            failed |= dict.fromkeys(indices, str(error))
        if failed:
            raise SendError(next(iter(failed.values())), failed)

    def _ttl_of(self, batch: Batch, index: int, ex: Execution) -> int | None:
        try:
            text = self._ttl.text_of(batch, index, ex)
            return parse_duration(text) if text else None
        except MessageError as error:
            raise SendError(make_invalid_rejection(f"ttl interpolation error: {error}")) from None
        except ValueError as error:
            raise SendError(make_invalid_rejection(f"ttl field: {error}")) from None


def build(parsed: ParsedFields, context: BuildContext) -> CacheOutput:
    """Take the cache and compile the texts."""
    return CacheOutput(
        context.resource(Kind.CACHE, parsed[TARGET]),
        compile_interpolation(parsed[KEY]),
        compile_interpolation(parsed[TTL] or ""),
        parsed[MAX_IN_FLIGHT],
    )
