"""`cache`: stores, reads or removes a value of a cache for each message.

It "performs operations against a cache resource for each message, allowing you to store or retrieve
data within message payloads". Key, value and time to live are worked out for each message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.caching import Cache, CacheError, KeyAlreadyExistsError
from streamer.durations import parse_duration
from streamer.errors import MessageError
from streamer.failure import Origin
from streamer.message import Batch, Execution, Message
from streamer.spec import BuildContext, Example, Field, Kind, Parsed, Spec

RESOURCE: Final = "resource"
OPERATOR: Final = "operator"
KEY: Final = "key"
VALUE: Final = "value"
TTL: Final = "ttl"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "cache",
    "Stores, reads or removes a value of a cache for each message.",
    description=(
        "`set` stores the value under the key. `add` does so only when the key has none; else the "
        "message fails with `key already exists`. `get` puts the stored value in the place of the "
        "message's payload; it fails when there is none. `exists` puts `true` or `false` there. "
        "`delete` removes the key, and does not fail when it is not there. To cache what other "
        "processors make use `cached`, to drop what was seen before `dedupe`."
    ),
    fields=(
        Field(RESOURCE, "string", "The label of the cache.", refers=Kind.CACHE),
        Field(
            OPERATOR,
            "string",
            "What to do.",
            options=("set", "add", "get", "delete", "exists"),
        ),
        Field(KEY, "string", "The key.", interpolated=True),
        Field(VALUE, "string", "The value, for `set` and `add`.", optional=True, interpolated=True),
        Field(
            TTL,
            "string",
            "How long the value is kept, for `set` and `add`; the cache's own time when it is "
            "empty. Some caches keep all values equally long.",
            optional=True,
            interpolated=True,
            advanced=True,
            examples=("60s", "5m", "36h"),
        ),
    ),
    examples=(
        Example(
            "Drop what was seen before",
            "pipeline:\n"
            "  processors:\n"
            "    - cache:\n"
            "        resource: seen\n"
            "        operator: add\n"
            "        key: ${! this.message.id }\n"
            "        value: storeme\n"
            "    - mapping: root = if errored() { deleted() }\n"
            "cache_resources:\n"
            "  - label: seen\n"
            "    file:\n"
            "      directory: /var/lib/seen\n",
        ),
        Example(
            "Add what is known",
            "pipeline:\n"
            "  processors:\n"
            "    - branch:\n"
            "        processors:\n"
            "          - cache:\n"
            "              resource: known\n"
            "              operator: get\n"
            "              key: ${! this.message.document_id }\n"
            "        result_map: root.message.document = this\n"
            "cache_resources:\n"
            "  - label: known\n"
            "    file:\n"
            "      directory: /var/lib/known\n",
        ),
    ),
    categories=("Integration",),
)

Operator = Callable[[Cache, str, bytes, int | None, Execution], bytes | None]
"""Asks the cache: key, value, ttl. Returns what becomes the payload, or None."""


def _set(cache: Cache, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
    cache.set(key, value, ttl, ex)


def _add(cache: Cache, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
    cache.add(key, value, ttl, ex)


def _get(cache: Cache, key: str, value: bytes, ttl: int | None, ex: Execution) -> bytes:
    return cache.get(key, ex)


def _delete(cache: Cache, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
    cache.delete(key, ex)


def _exists(cache: Cache, key: str, value: bytes, ttl: int | None, ex: Execution) -> bytes:
    try:
        cache.get(key, ex)
    except CacheError:  # of any kind, as in Benthos
        return b"false"
    return b"true"


_OPERATORS: Final[dict[str, Operator]] = {
    "set": _set,
    "add": _add,
    "get": _get,
    "delete": _delete,
    "exists": _exists,
}


class CacheProcessor:
    """Asks a cache once for each message."""

    def __init__(
        self,
        cache: Cache,
        operator: Operator,
        key: Interpolation,
        value: Interpolation,
        ttl: Interpolation,
        origin: Origin,
    ) -> None:
        """Take the cache, what to ask of it, and the texts."""
        self._cache = cache
        self._operator = operator
        self._key = key
        self._value = value
        self._ttl = ttl
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the batch, with what was read in the place of payloads."""
        return [[self._asked(batch, index, ex) for index in range(len(batch))]]

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Do the same for messages that are batches by themselves."""
        return [self._asked([message], 0, ex) for message in messages]

    def _asked(self, batch: Batch, index: int, ex: Execution) -> Message:
        message = batch[index]
        what, key = "key", ""
        try:
            key = self._key.text_of(batch, index, ex)
            what = "value"
            value = self._value.bytes_of(batch, index, ex)
            what = "ttl"
            ttl = self._ttl.text_of(batch, index, ex)
            payload = self._operator(self._cache, key, value, duration_of(ttl), ex)
        except MessageError as error:
            return self._origin.fail(message, f"{what} interpolation error: {error}", ex)
        except ValueError as error:
            return self._origin.fail(message, f"ttl must be a duration: {error}", ex)
        except KeyAlreadyExistsError:
            return self._origin.fail(message, f"key already exists: {key}", ex)
        except CacheError as error:
            return self._origin.fail(message, f"operator failed for key '{key}': {error}", ex)
        return message if payload is None else message.with_bytes(payload)


def duration_of(text: str) -> int | None:
    """Return a time to live, nanoseconds; None for an empty text.

    Raises:
        ValueError: the text is no duration.
    """
    return parse_duration(text) if text else None


def build(parsed: Parsed, context: BuildContext) -> CacheProcessor:
    """Find the cache and compile the texts."""
    return CacheProcessor(
        context.resource(Kind.CACHE, parsed[RESOURCE]),
        _OPERATORS[parsed[OPERATOR].lower()],
        compile_interpolation(parsed[KEY]),
        compile_interpolation(parsed[VALUE] or ""),
        compile_interpolation(parsed[TTL] or ""),
        Origin(context.component),
    )
