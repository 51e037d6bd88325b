"""`cached`: runs processors on a message, or takes what they made of one with the same key before.

"Cache the result of applying one or more processors to messages identified by a key. If the key
already exists within the cache the contents of the message will be replaced with the cached result
instead of applying the processors." What is stored has Benthos's form, so that both can use one
cache.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from streamer.bloblang import Interpolation, Mapping, compile_interpolation, compile_mapping
from streamer.core.durations import parse_duration
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.cache import Cache, CacheError, KeyNotFoundError
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import query_value
from streamer.sdk.processing import Processor, run_processor
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

CACHE: Final = "cache"
SKIP_ON: Final = "skip_on"
KEY: Final = "key"
TTL: Final = "ttl"
PROCESSORS: Final = "processors"

_UINT32: Final = struct.Struct(">I")
_VERSION: Final = 1

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "cached",
    "Runs processors on a message, or takes their earlier result from a cache.",
    description=(
        "The result of the processors for a message is stored under its key. A message with a "
        "stored key gets the stored content and keeps its own metadata. The stored format is "
        "internal: do not let it read keys written by other programs. If the result cannot be "
        "stored, the error is logged, and the message continues."
    ),
    fields=(
        Field(CACHE, "string", "The label of the cache.", refers=Kind.CACHE),
        Field(
            SKIP_ON,
            "string",
            "A Bloblang query over the result; when it is true, the result is not stored.",
            optional=True,
            mapping=True,
            examples=("errored()",),
        ),
        Field(
            KEY,
            "string",
            "The key of a message.",
            interpolated=True,
            examples=("my_foo_result", "${! this.document.id }", '${! meta("kafka_key") }'),
        ),
        Field(
            TTL,
            "string",
            "Lifetime of a result; default is the cache's own. Some caches have one lifetime "
            "for all values.",
            optional=True,
            interpolated=True,
        ),
        Field(PROCESSORS, "processor", "The processors whose result is stored.", shape="array"),
    ),
    examples=(
        Example(
            "Ask once for each kind",
            "pipeline:\n"
            "  processors:\n"
            "    - branch:\n"
            "        processors:\n"
            "          - cached:\n"
            "              key: ${! this.kind }\n"
            "              cache: kinds\n"
            "              ttl: 10m\n"
            "              processors:\n"
            '                - mapping: root.about = file("/data/" + this.kind).string()\n'
            "        result_map: root.about = this.about\n"
            "cache_resources:\n"
            "  - label: kinds\n"
            "    lru: {}\n",
        ),
    ),
    categories=("Utility",),
    limits="metadata of a result is not stored",
)


class CachedProcessor:
    """Takes a result from a cache, or runs the processors and stores their result."""

    def __init__(
        self,
        cache: Cache,
        key: Interpolation,
        ttl: Interpolation | None,
        skip_on: Mapping | None,
        children: Sequence[Processor],
        origin: ComponentRef,
    ) -> None:
        """Take the cache, the texts, the query and what makes the result."""
        self._cache = cache
        self._key = key
        self._ttl = ttl
        self._skip_on = skip_on
        self._children = children
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return what comes out of all messages as one batch."""
        made: Batch = []
        for message in batch:
            try:
                made += self._process_one(message, ex)
            except (MessageError, CacheError) as error:
                made.append(self._origin.fail_unattributed(message, str(error), ex))
        return [made] if made else []

    def _process_one(self, message: Message, ex: Execution) -> Batch:
        key, ttl = self._key_of(message, ex), self._ttl_of(message, ex)
        try:
            stored = self._cache.get(key, ex)
        except KeyNotFoundError:
            return self._make_result(message, key, ttl, ex)
        try:
            return [message.with_bytes(payload) for payload in unpack_payloads(stored)]
        except ValueError as error:
            raise MessageError(
                "failed to parse cached result, this indicates the data was not set by this "
                f"processor: {error}"
            ) from None

    def _make_result(self, message: Message, key: str, ttl: int | None, ex: Execution) -> Batch:
        made: Batch = []
        stores = True
        batches = [[message]]
        for child in self._children:
            # In Benthos a message that has failed skips nothing here, not even in a strict run.
            batches = run_processor(child, batches, ex)
        for batch in batches:
            stores = not self._is_skipped(batch, ex) and stores
            made += batch
        if stores:
            try:
                self._cache.set(key, pack_payloads([one.raw for one in made]), ttl, ex)
            except CacheError as error:
                self._origin.log(ex, "ERROR", f"failed to write result to cache: {error}")
        return made

    def _key_of(self, message: Message, ex: Execution) -> str:
        try:
            return self._key.text_of([message], 0, ex)
        except MessageError as error:
            raise MessageError(f"failed to interpolate key expression: {error}") from None

    def _ttl_of(self, message: Message, ex: Execution) -> int | None:
        if self._ttl is None:
            return None
        try:
            text = self._ttl.text_of([message], 0, ex)
        except MessageError as error:
            raise MessageError(f"failed to interpolate ttl expression: {error}") from None
        try:
            return parse_duration(text)
        except ValueError as error:
            raise MessageError(f"failed to parse ttl expression: {error}") from None

    def _is_skipped(self, batch: Batch, ex: Execution) -> bool:
        if self._skip_on is None:
            return False
        try:
            skips = query_value(self._skip_on, batch, 0, ex)
            if skips is True or skips is False:
                return skips
            problem = f"skip_on did not return boolean result: {skips}"
        except MessageError as error:
            problem = f"failed to execute skip_on mapping: {error}"
        text = f"skip_on check failed: {problem}, caching will be skipped as a precaution"
        self._origin.log(ex, "ERROR", text)
        return True


def pack_payloads(payloads: Sequence[bytes]) -> bytes:
    """Return payloads as one value: a version, their number, and each behind its length.

    All numbers are unsigned, of 32 bits, the highest byte first.
    """
    parts = [_UINT32.pack(_VERSION), _UINT32.pack(len(payloads))]
    for payload in payloads:
        parts += (_UINT32.pack(len(payload)), payload)
    return b"".join(parts)


def unpack_payloads(value: bytes) -> list[bytes]:
    """Return the payloads in a value.

    Raises:
        ValueError: it is none that `packed` has made.
    """

    def read_number(at: int, what: str) -> int:
        if len(value) < at + _UINT32.size:
            raise ValueError(f"failed to extract {what}: message is too small to extract number")
        number_read: int = _UINT32.unpack_from(value, at)[0]
        return number_read

    version = read_number(0, "serialization format version")
    if version != _VERSION:
        raise ValueError(f"invalid format version: {version}")
    count, at = read_number(_UINT32.size, "batch size"), 2 * _UINT32.size
    payloads = []
    for place in range(count):
        length = read_number(at, f"message {place} size")
        at += _UINT32.size
        if len(value) < at + length:
            raise ValueError(f"failed to extract message {place} size: input ended unexpectedly")
        payloads.append(value[at : at + length])
        at += length
    return payloads


def build(parsed: ParsedFields, context: BuildContext) -> CachedProcessor:
    """Find the cache, compile the texts and build the children."""
    ttl, skip_on = parsed[TTL], parsed[SKIP_ON]
    return CachedProcessor(
        context.resource(Kind.CACHE, parsed[CACHE]),
        compile_interpolation(parsed[KEY]),
        None if ttl is None else compile_interpolation(ttl),
        compile_mapping(skip_on) if skip_on else None,
        context.build_all(parsed[PROCESSORS]),
        ComponentRef(context.component),
    )
