"""The section `redpanda` of the top level: a connection for several components, logs and status."""

from __future__ import annotations

from typing import Final

from streamer.connectors.kafka.cluster.connection_fields import (
    SEED_BROKERS,
    TCP_FIELD,
    connection_problems,
    read_connection,
    seed_connection,
)
from streamer.connectors.kafka.output.producer_fields import PRODUCER_FIELDS, producer_problems
from streamer.sdk.spec import Field, ParsedFields, SharedFields

SECTION: Final = "redpanda"
PIPELINE_ID: Final = "pipeline_id"
LOGS_TOPIC: Final = "logs_topic"
LOGS_LEVEL: Final = "logs_level"
STATUS_TOPIC: Final = "status_topic"

_CONNECTION: Final = (*seed_connection("1m", shared=True), TCP_FIELD)
_CONNECTION_NAMES: Final = tuple(field.name for field in _CONNECTION)

SHARED_CONNECTION: Final = SharedFields(SECTION, SEED_BROKERS, _CONNECTION_NAMES)
"""What inputs take from the section."""

SHARED_PRODUCER: Final = SharedFields(
    SECTION, SEED_BROKERS, (*_CONNECTION_NAMES, *(field.name for field in PRODUCER_FIELDS))
)
"""What outputs take from it."""


def _check(parsed: ParsedFields) -> str | None:
    """Return what is wrong with the fields together."""
    for name, problem in (*connection_problems(parsed), *producer_problems(parsed)):
        return f"{name} {problem}"
    topics = [name for name in (LOGS_TOPIC, STATUS_TOPIC) if parsed[name]]
    if topics and not parsed[SEED_BROKERS]:
        return f"has {topics[0]} and no seed_brokers; expected the brokers of that topic"
    return None


def explain_event_topics(section: ParsedFields | None) -> tuple[str, ...]:
    """Return which topics the log and the status of a stream go to, in lines.

    Args:
        section: the section; None without one.
    """
    if section is None:
        return ()
    lines = []
    if section[LOGS_TOPIC]:
        level = section[LOGS_LEVEL].upper()
        lines.append(f"lines of the log from {level} on go to the topic {section[LOGS_TOPIC]}")
    if section[STATUS_TOPIC]:
        lines.append(f"the status goes to the topic {section[STATUS_TOPIC]}")
    brokers = ",".join(read_connection(section).brokers)
    key = section[PIPELINE_ID]
    keyed = f" with the key {key!r}" if key else ""
    return tuple(f"redpanda: {line} at {brokers}{keyed}" for line in lines)


REDPANDA_SECTION: Final = Field(
    SECTION,
    "object",
    "A connection to Redpanda or Kafka for several components: inputs and outputs `redpanda` "
    "without `seed_brokers`, and `redpanda_common`. It also has topics for the log and the status "
    "of the stream.",
    optional=True,
    advanced=True,
    check=_check,
    children=(
        *_CONNECTION,
        Field(
            PIPELINE_ID,
            "string",
            "A name of the stream in its log lines and status events; also their keys.",
            default="",
        ),
        Field(
            LOGS_TOPIC,
            "string",
            "A topic for the lines of the log, as JSON; none when empty.",
            default="",
            examples=("__redpanda.connect.logs",),
        ),
        Field(
            LOGS_LEVEL,
            "string",
            "The lowest level of these lines.",
            default="info",
            options=("debug", "info", "warn", "error"),
        ),
        Field(
            STATUS_TOPIC,
            "string",
            "A topic for the status of the stream: at the start, every 30 seconds, and at the end; "
            "none when empty.",
            default="",
            examples=("__redpanda.connect.status",),
        ),
        Field("rack_id", "string", "Has no effect.", default="", deprecated=True, advanced=True),
        *PRODUCER_FIELDS,
    ),
)
