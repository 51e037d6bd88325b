"""`aws_cloudwatch_logs`: "consumes log events from AWS CloudWatch Logs".

Events go to the disk together with the time from which the next start asks for more, and the events
from then on that were read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamer.connectors.aws.fields import PACKAGES, SESSION_FIELDS, TESTED, session_problems
from streamer.connectors.aws.log_session import (
    API_TIMEOUT,
    FILTER_PATTERN,
    LIMIT,
    LOG_GROUP_NAME,
    LOG_STREAM_NAMES,
    LOG_STREAM_PREFIX,
    POLL_INTERVAL,
    START_TIME,
    STRUCTURED_LOG,
    LogInput,
    first_start_ms,
)
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import (
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
    duration_field,
)
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD

_MAX_LIMIT: Final = 10_000
_MAX_STREAMS: Final = 100


def _time_problem(text: str) -> str | None:
    try:
        first_start_ms(text, 0)
    except ValueError:
        return f"is {text!r}; expected now, or a time such as 2024-01-01T00:00:00Z"
    return None


def _limit_problem(limit: int) -> str | None:
    return None if 1 <= limit <= _MAX_LIMIT else f"is {limit}; expected 1 to {_MAX_LIMIT}"


def _streams_problem(names: Any) -> str | None:
    count = len(names)
    return None if count <= _MAX_STREAMS else f"has {count} names; expected at most {_MAX_STREAMS}"


def _period_problem(period: int) -> str | None:
    return None if period > 0 else "expected more than 0s"


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from session_problems(parsed)
    if parsed[LOG_STREAM_NAMES] and parsed[LOG_STREAM_PREFIX]:
        yield LOG_STREAM_PREFIX, f"cannot stand beside {LOG_STREAM_NAMES}; use one of them"


def _text_field(name: str, description: str, *examples: str, **more: Any) -> Field:
    return Field(name, "string", description, default="", examples=examples, **more)


SPEC: Final = Spec(
    Kind.INPUT,
    "aws_cloudwatch_logs",
    "Reads log events of AWS CloudWatch Logs.",
    description=(
        "The driver asks a log group for events, in the order of their times, and writes them to "
        "its disk. The next start goes on behind these: each event is read once. Redpanda Connect "
        "forgets its position when it ends; here `start_time` is for the first start only.\n"
        "\n"
        "CloudWatch Logs has no positions, and some events arrive after newer ones. The last 30 "
        "seconds, or the last 20,000 events if they are fewer, are asked for again and again; an "
        "event that was read is known by its ID. An event that arrives later than that is missed.\n"
        "\n"
        "The metadata are `cloudwatch_log_group`, `cloudwatch_log_stream`, `cloudwatch_timestamp`, "
        "`cloudwatch_ingestion_time` and `cloudwatch_event_id`. Times are milliseconds since "
        f"1970.\n\n{TESTED}"
    ),
    fields=(
        Field(LOG_GROUP_NAME, "string", "The name of the log group.", examples=("my-app-logs",)),
        Field(
            LOG_STREAM_NAMES,
            "string",
            "The log streams that are read, at most 100; without them, all of the group.",
            default=(),
            shape="array",
            check=_streams_problem,
            examples=(["stream-1", "stream-2"],),
        ),
        _text_field(LOG_STREAM_PREFIX, "Read only log streams whose names begin with it.", "prod-"),
        _text_field(
            FILTER_PATTERN,
            "Read only events that match this pattern, in the syntax of CloudWatch Logs.",
            "ERROR",
        ),
        _text_field(
            START_TIME,
            "Where the first start begins: at this time in RFC 3339, or at `now`. Without it, at "
            "the oldest event.",
            *("2024-01-01T00:00:00Z", "now"),
            check=_time_problem,
        ),
        duration_field(
            POLL_INTERVAL,
            "Time between two questions for new events.",
            default="5s",
            check=_period_problem,
        ),
        Field(
            LIMIT,
            "int",
            "Maximum events of an answer, 1 to 10000.",
            default=1000,
            advanced=True,
            check=_limit_problem,
        ),
        Field(
            STRUCTURED_LOG,
            "bool",
            "True for JSON objects with `message`, `log_group`, `log_stream`, `timestamp`, "
            "`ingestion_time` and `event_id`; false for the text of the event.",
            default=True,
            advanced=True,
        ),
        duration_field(
            API_TIMEOUT,
            "Maximum time of an answer.",
            default="30s",
            advanced=True,
            check=_period_problem,
        ),
        AUTO_REPLAY_NACKS_FIELD,
        *SESSION_FIELDS,
    ),
    check=_problems,
    examples=(
        Example(
            "Errors of a program",
            "input:\n  aws_cloudwatch_logs:\n    log_group_name: my-app-logs\n"
            "    filter_pattern: ERROR\n    region: eu-west-1\n",
        ),
    ),
    categories=("Services", "AWS"),
    begin={LOG_GROUP_NAME: "my-app-logs"},
    delivery="exactly once onto the driver's disk, by the IDs of events",
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> LogInput:
    """Take the fields; it is connected once it is opened."""
    return LogInput(parsed, ComponentRef(context.component).fields)
