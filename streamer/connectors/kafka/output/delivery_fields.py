"""Fields of exactly-once delivery: `dedupe_headers` and `transactional`.

Redpanda Connect has neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.bloblang import compile_interpolation
from streamer.core.durations import MILLISECOND, SECOND
from streamer.sdk.processing.batching import BATCHING, PROCESSORS
from streamer.sdk.spec import Field, ParsedFields, duration_field

TOPIC: Final = "topic"
DEDUPE_HEADERS: Final = "dedupe_headers"
TRANSACTIONAL: Final = "transactional"
TRANSACTION_TIMEOUT: Final = "transaction_timeout"

_TRANSACTION_TIMEOUT_NS: Final = 900 * SECOND
_MIN_TIMEOUT_MS: Final = 1_000
_MAX_TIMEOUT_MS: Final = 2**31 - 1


def _timeout_problem(ns: int) -> str | None:
    ms = ns // MILLISECOND
    return (
        None
        if _MIN_TIMEOUT_MS <= ms <= _MAX_TIMEOUT_MS
        else "is out of bounds; expected 1s to 596h"
    )


GUARANTEE_FIELDS: Final = (
    Field(
        DEDUPE_HEADERS,
        "bool",
        "True if records have headers by which a reader can drop those that come again after a "
        "failure: `batch_id`, which names the stream, the micro-batch and the part of it, and "
        "`batch_sequence`, the record's place in that part; the two are the same when a record "
        "comes again. A window's results have `window_id_of` as well, which all that the window "
        "emits shares.",
        default=False,
    ),
    Field(
        TRANSACTIONAL,
        "bool",
        "True if each part of a micro-batch is a transaction of Kafka's, so that readers with "
        "`isolation.level=read_committed` see every record exactly once, whatever is killed. Only "
        "the `output` of a stream can have it, with nothing around it, and a topic without "
        "expressions.",
        default=False,
    ),
    duration_field(
        TRANSACTION_TIMEOUT,
        "Maximum duration of a transaction, which is the time of a worker for its part of a "
        "micro-batch; after it brokers abort the transaction. Not more than their "
        "`transaction.max.timeout.ms`.",
        default="15m",
        advanced=True,
        check=_timeout_problem,
    ),
)


def guarantee_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    if parsed[TRANSACTIONAL] and compile_interpolation(parsed[TOPIC]).static is None:
        yield (
            TRANSACTIONAL,
            "needs a topic without expressions, with which the number of the micro-batch is kept; "
            "name the topic, or take dedupe_headers",
        )
    if parsed[DEDUPE_HEADERS] and parsed[BATCHING][PROCESSORS]:
        yield (
            DEDUPE_HEADERS,
            "cannot number what batching.processors make of the messages; put the processors into "
            "pipeline.processors, or beside the output",
        )
    # The default may be written out, as `streamer create` and the pages do.
    if not parsed[TRANSACTIONAL] and parsed[TRANSACTION_TIMEOUT] != _TRANSACTION_TIMEOUT_NS:
        yield TRANSACTION_TIMEOUT, "has no effect without transactional: true"
