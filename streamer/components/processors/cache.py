"""`cache`: stores, reads or removes a value of a cache for each message.

It "performs operations against a cache resource for each message, allowing you to store or retrieve
data within message payloads". Key, value and time to live are worked out for each message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.core.durations import parse_duration
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.cache import (
    Cache,
    CacheCall,
    CacheError,
    CallOutcome,
    KeyAlreadyExistsError,
    call_many,
)
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

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
        "`set` stores the value under the key. `add` does so only when the key has none; else "
        "the message fails with `key already exists`. `get` puts the stored value in the "
        "place of the message's payload; it fails when there is none. `exists` puts `true` or "
        "`false` there. `delete` removes the key, and does not fail when it is not there. To "
        "cache the results of other processors use `cached`; to drop repeated messages use "
        "`dedupe`."
    ),
    fields=(
        Field(RESOURCE, "string", "The label of the cache.", refers=Kind.CACHE),
        Field(
            OPERATOR,
            "string",
            "Operation.",
            options=("set", "add", "get", "delete", "exists"),
        ),
        Field(KEY, "string", "The key.", interpolated=True),
        Field(VALUE, "string", "The value, for `set` and `add`.", optional=True, interpolated=True),
        Field(
            TTL,
            "string",
            "Lifetime of the value, for `set` and `add`; empty for the cache's default. Some "
            "caches have one lifetime for all values.",
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
    delivery="calls are repeated when a micro-batch is replayed",
)


class CacheProcessor:
    """Makes one operation on a cache for each message."""

    def __init__(
        self,
        cache: Cache,
        operator: str,
        key: Interpolation,
        value: Interpolation,
        ttl: Interpolation,
        origin: ComponentRef,
    ) -> None:
        """Take the cache, what to ask of it, and the texts."""
        self._cache = cache
        self._operator = operator
        # Whether a key exists is seen when it is read.
        self._operation = "get" if operator == "exists" else operator
        self._key = key
        self._value = value
        self._ttl = ttl
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the batch, with what was read in the place of payloads."""
        return [self._call_all([self._call(batch, index, ex) for index in range(len(batch))], ex)]

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Do the same for messages that are batches by themselves."""
        return self._call_all([self._call([message], 0, ex) for message in messages], ex)

    def _call(self, batch: Batch, index: int, ex: Execution) -> tuple[Message, CacheCall | None]:
        """Return what to ask for a message; nothing where that cannot be worked out."""
        message, what = batch[index], "key"
        try:
            key = self._key.text_of(batch, index, ex)
            what = "value"
            value = self._value.bytes_of(batch, index, ex)
            what = "ttl"
            ttl = parse_ttl(self._ttl.text_of(batch, index, ex))
        except MessageError as error:
            return self._origin.fail(message, f"{what} interpolation error: {error}", ex), None
        except ValueError as error:
            return self._origin.fail(message, f"ttl must be a duration: {error}", ex), None
        return message, CacheCall(self._operation, key, value, ttl)

    def _call_all(
        self, calls: Sequence[tuple[Message, CacheCall | None]], ex: Execution
    ) -> list[Message]:
        """Request the keys of all messages at once, in order."""
        outcomes = iter(call_many(self._cache, [call for _, call in calls if call is not None], ex))
        return [
            message if call is None else self._apply_outcome(message, call.key, next(outcomes), ex)
            for message, call in calls
        ]

    def _apply_outcome(
        self, message: Message, key: str, outcome: CallOutcome, ex: Execution
    ) -> Message:
        if self._operator == "exists":  # an error counts as none, as in Benthos
            return message.with_bytes(b"false" if isinstance(outcome, CacheError) else b"true")
        if isinstance(outcome, KeyAlreadyExistsError):
            return self._origin.fail(message, f"key already exists: {key}", ex)
        if isinstance(outcome, CacheError):
            return self._origin.fail(message, f"operator failed for key '{key}': {outcome}", ex)
        return message.with_bytes(outcome) if self._operator == "get" else message


def parse_ttl(text: str) -> int | None:
    """Return a time to live, nanoseconds; None for an empty text.

    Raises:
        ValueError: the text is no duration.
    """
    return parse_duration(text) if text else None


def build(parsed: ParsedFields, context: BuildContext) -> CacheProcessor:
    """Find the cache and compile the texts."""
    return CacheProcessor(
        context.resource(Kind.CACHE, parsed[RESOURCE]),
        parsed[OPERATOR].lower(),
        compile_interpolation(parsed[KEY]),
        compile_interpolation(parsed[VALUE] or ""),
        compile_interpolation(parsed[TTL] or ""),
        ComponentRef(context.component),
    )
