"""Fields that `kafka_franz` and `redpanda` share as inputs: names of topics, and fetching."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamer.connectors.kafka.cluster.connection_fields import (
    RACK_ID,
    connection_problems,
    read_connection,
)
from streamer.connectors.kafka.cluster.sizes import parse_size, size_check
from streamer.connectors.kafka.cluster.topic_selection import (
    TopicSelection,
    parse_topics,
    pattern_problem,
    split_patterns,
    topics_problem,
)
from streamer.connectors.kafka.input.input_fields import (
    COMMIT_PERIOD,
    GROUP,
    INSTANCE_ID,
    RACK,
    START_FROM_OLDEST,
    TOPICS,
    ineffective_duration_field,
    own_settings,
    topics_field,
)
from streamer.connectors.kafka.input.kafka_source import KafkaSource
from streamer.connectors.kafka.input.opened_input import MetadataSettings
from streamer.connectors.kafka.input.start_offsets import StartRule, read_start
from streamer.core.durations import MILLISECOND
from streamer.sdk.spec import Field, ParsedFields, duration_field

REGEXP: Final = "regexp_topics"
INCLUDE: Final = "regexp_topics_include"
EXCLUDE: Final = "regexp_topics_exclude"
START_OFFSET: Final = "start_offset"
MAX_BYTES: Final = "fetch_max_bytes"
MAX_WAIT: Final = "fetch_max_wait"
MIN_BYTES: Final = "fetch_min_bytes"
MAX_PARTITION_BYTES: Final = "fetch_max_partition_bytes"
ISOLATION: Final = "transaction_isolation_level"
LAG_PERIOD: Final = "topic_lag_refresh_period"

_MAX_SIZE: Final = 2**31 - 1


def _start_problem(text: str) -> str | None:
    if read_start(text) is None:
        return (
            f"is {text!r}; expected earliest, latest, committed, or a time such as "
            "2026-01-31T12:00:00Z or 1769860800000"
        )
    return None


def _size_field(name: str, description: str, default: str, minimum: int = 0) -> Field:
    return Field(
        name,
        "string",
        description,
        default=default,
        advanced=True,
        check=size_check(minimum, _MAX_SIZE),
    )


def _patterns_field(name: str, description: str, example: list[str]) -> Field:
    return Field(
        name,
        "string",
        description,
        shape="array",
        default=(),
        check=pattern_problem,
        examples=(example,),
    )


SEED_TOPICS: Final = (
    topics_field(optional=True),
    Field(
        REGEXP,
        "bool",
        "True if `topics` are regular expressions (RE2), of which one is found in a topic's name. "
        f"`{INCLUDE}` says the same more clearly.",
        default=False,
        advanced=True,
    ),
    _patterns_field(
        INCLUDE,
        "Regular expressions (RE2); topics are read in whose names one of them is found, those too "
        "that come later, from their beginning.",
        ["logs_.*", "^metrics$"],
    ),
    _patterns_field(EXCLUDE, "Regular expressions of topics that are not read.", ["_test$"]),
)

SEED_READING: Final = (
    RACK,
    INSTANCE_ID,
    ineffective_duration_field("rebalance_timeout", "45s"),
    ineffective_duration_field("session_timeout", "1m"),
    ineffective_duration_field("heartbeat_interval", "3s"),
    Field(
        START_FROM_OLDEST,
        "bool",
        f"The old way to say `{START_OFFSET}`; it has no effect when true.",
        default=True,
        deprecated=True,
        advanced=True,
    ),
    Field(
        START_OFFSET,
        "string",
        "Start of a partition without a commit of the group: `earliest`, `latest`, "
        "`committed` (a missing commit is an error), or the first message of a time, as RFC "
        "3339 or in Unix milliseconds. Times are not in Redpanda Connect.",
        default="earliest",
        advanced=True,
        check=_start_problem,
        examples=("earliest", "latest", "2026-01-31T12:00:00Z"),
    ),
    _size_field(
        MAX_BYTES,
        "The most bytes of an answer, unless the first batch of records is larger.",
        "50MiB",
    ),
    duration_field(
        MAX_WAIT,
        "How long a broker waits for records, half a second at most.",
        default="5s",
        advanced=True,
    ),
    _size_field(MIN_BYTES, "Has no effect: only what is there is requested.", "1B"),
    _size_field(
        MAX_PARTITION_BYTES,
        "The most bytes of an answer from one partition, unless its first batch is larger.",
        "1MiB",
    ),
    Field(
        ISOLATION,
        "string",
        "`read_uncommitted` also reads messages of open and aborted transactions.",
        default="read_uncommitted",
        options=("read_uncommitted", "read_committed"),
    ),
)


def buffer_field(name: str, default: str) -> Field:
    """Return a field for the size of a buffer of Connect's."""
    return Field(
        name,
        "string",
        "Has no effect: Spark reads a micro-batch's messages as it needs them.",
        default=default,
        advanced=True,
        check=size_check(0, 2**63 - 1),
    )


def lag_period_field() -> Field:
    """Return the field of how often the lag is measured."""
    return duration_field(
        LAG_PERIOD, "Interval of updates of the lag metric.", default="5s", advanced=True
    )


def seed_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with these fields together, in the words of Redpanda Connect's rules."""
    yield from connection_problems(parsed)
    named, included = bool(parsed[TOPICS]), bool(parsed[INCLUDE])
    if named == included:
        yield (
            (TOPICS, f"cannot be given together with {INCLUDE}; use one of them")
            if named
            else (TOPICS, f"is not set; expected topics, or {INCLUDE}")
        )
        return
    if parsed[EXCLUDE] and not (included or parsed[REGEXP]):
        yield EXCLUDE, f"has no effect on topics by name; set {INCLUDE}"
    if parsed[START_OFFSET] == "earliest" and not parsed[START_FROM_OLDEST]:
        yield START_FROM_OLDEST, f"cannot be false with {START_OFFSET}: earliest; set it to latest"
    if named and parsed[REGEXP] and (problem := pattern_problem(parsed[TOPICS])):
        yield TOPICS, problem
    elif named and not parsed[REGEXP]:
        if problem := topics_problem(parsed[TOPICS], True):
            yield TOPICS, problem
        elif parsed[GROUP] and _read_selection(parsed, _read_start(parsed)).partitions:
            yield GROUP, "cannot be given with single partitions in topics; leave one of them out"


def _read_start(parsed: ParsedFields) -> StartRule:
    start = read_start(parsed[START_OFFSET])
    assert start is not None
    return start


def _read_selection(parsed: ParsedFields, start: StartRule) -> TopicSelection:
    exclude = split_patterns(parsed[EXCLUDE])
    if parsed[INCLUDE] or parsed[REGEXP]:
        return TopicSelection(
            include=split_patterns(parsed[INCLUDE] or parsed[TOPICS]), exclude=exclude
        )
    topics, partitions = parse_topics(parsed[TOPICS], start.number, True)
    return TopicSelection(topics=topics, partitions=partitions)


def _consumer_settings(parsed: ParsedFields) -> dict[str, str]:
    wait = (parsed[MAX_WAIT] or 0) // MILLISECOND
    settings = {
        "fetch.max.bytes": str(parse_size(parsed[MAX_BYTES])),
        "fetch.max.wait.ms": str(wait),
        "max.partition.fetch.bytes": str(parse_size(parsed[MAX_PARTITION_BYTES])),
    }
    if parsed[RACK_ID]:
        settings["client.rack"] = parsed[RACK_ID]
    return settings


def seed_source(
    parsed: ParsedFields, name: str, metadata: MetadataSettings, lag_metric: str, limit: int | None
) -> KafkaSource:
    """Return the source that the fields describe.

    Args:
        parsed: the fields.
        name: the component's.
        metadata: how its messages are described.
        lag_metric: its gauge.
        limit: what `checkpoint_limit_field` says; see `read_limit`.
    """
    start = _read_start(parsed)
    settings: dict[str, Any] = own_settings(parsed, limit)
    return KafkaSource(
        name=name,
        connection=read_connection(parsed),
        selection=_read_selection(parsed, start),
        start=start,
        group=parsed[GROUP] or "",
        metadata=metadata,
        lag_metric=lag_metric,
        lag_period=parsed[LAG_PERIOD] or 0,
        commit_period=parsed[COMMIT_PERIOD] or 0,
        read_committed=parsed[ISOLATION] == "read_committed",
        consumer=_consumer_settings(parsed),
        **settings,
    )
