"""`dedupe`: drops messages whose key was seen before.

It "deduplicates messages by storing a key value in a cache using the `add` operator. If the key
already exists within the cache it is dropped." A message whose key cannot be worked out is dropped
as well, and logged, as in Benthos.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamer.bloblang import Interpolation, compile_interpolation
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

CACHE: Final = "cache"
KEY: Final = "key"
DROP_ON_ERR: Final = "drop_on_err"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "dedupe",
    "Drops messages whose key is in a cache already, and puts the keys of others there.",
    description=(
        "A key is stored before its message is delivered. If a micro-batch fails after that "
        "and is repeated, its messages count as seen and are dropped, if the cache survives "
        "the failure. If no message may be lost, use `deduplicate`, or let the receiver "
        "recognise repetitions. The cache determines how long a key is remembered. Each "
        "message is checked separately; to drop whole windows use `cache`."
    ),
    fields=(
        Field(CACHE, "string", "The label of the cache.", refers=Kind.CACHE),
        Field(
            KEY,
            "string",
            "The key of a message.",
            interpolated=True,
            check=lambda key: None if key else "dedupe key must not be empty",
            examples=('${! meta("kafka_key") }', '${! content().hash("xxhash64") }'),
        ),
        Field(
            DROP_ON_ERR,
            "bool",
            "Drop messages when the cache cannot be reached; else they pass, marked as "
            "failed. Dropped messages are in the log and in the metric `processor_error`.",
            default=True,
        ),
    ),
    examples=(
        Example(
            "Drop what Kafka has brought twice",
            "pipeline:\n"
            "  processors:\n"
            "    - dedupe:\n"
            "        cache: keys\n"
            '        key: ${! meta("kafka_key") }\n'
            "cache_resources:\n"
            "  - label: keys\n"
            "    file:\n"
            "      directory: /var/lib/keys\n",
        ),
    ),
    categories=("Utility",),
    delivery="what was seen before a failure may be dropped when it comes again",
)

_SEEN_VALUE: Final = b"t"


class DedupeProcessor:
    """Adds each message's key to a cache."""

    def __init__(
        self, cache: Cache, key: Interpolation, origin: ComponentRef, *, drop_on_error: bool
    ) -> None:
        """Take the cache, the key's text and what to do without the cache."""
        self._cache = cache
        self._key = key
        self._origin = origin
        self._drop_on_error = drop_on_error

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the messages that are new."""
        made = self._select_new(
            [self._key_of(batch, index, ex) for index in range(len(batch))], batch, ex
        )
        return [made] if made else []

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Do the same for messages that are batches by themselves."""
        return self._select_new(
            [self._key_of([message], 0, ex) for message in messages], messages, ex
        )

    def _key_of(self, batch: Batch, index: int, ex: Execution) -> str | None:
        try:
            return self._key.text_of(batch, index, ex)
        except MessageError as error:
            self._origin.fail(batch[index], f"key interpolation error: {error}", ex)
            return None

    def _select_new(
        self, keys: Sequence[str | None], messages: Sequence[Message], ex: Execution
    ) -> list[Message]:
        """Request all keys at once; a message without a key is dropped."""
        calls = [CacheCall("add", key, _SEEN_VALUE) for key in keys if key is not None]
        outcomes = iter(call_many(self._cache, calls, ex))
        checked = (
            self._check_outcome(message, next(outcomes), ex)
            for key, message in zip(keys, messages, strict=True)
            if key is not None
        )
        return [message for message in checked if message is not None]

    def _check_outcome(
        self, message: Message, outcome: CallOutcome, ex: Execution
    ) -> Message | None:
        if isinstance(outcome, KeyAlreadyExistsError):
            return None
        if not isinstance(outcome, CacheError):
            return message
        line = f"Cache error: {outcome}"
        if self._drop_on_error:
            self._origin.fail(message, str(outcome), ex, f"{line}; the message is dropped")
            return None
        return self._origin.fail(message, str(outcome), ex, line)


def build(parsed: ParsedFields, context: BuildContext) -> DedupeProcessor:
    """Find the cache and compile the key."""
    return DedupeProcessor(
        context.resource(Kind.CACHE, parsed[CACHE]),
        compile_interpolation(parsed[KEY]),
        ComponentRef(context.component),
        drop_on_error=parsed[DROP_ON_ERR],
    )
