"""The fields of Kafka's inputs beside the connection, and the source that they describe."""

from __future__ import annotations

from typing import Any, Final

from streamer.connectors.kafka.cluster.connection_fields import RACK_ID
from streamer.sdk.spec import REQUIRED, Field, ParsedFields, duration_field

TOPICS: Final = "topics"
GROUP: Final = "consumer_group"
CHECKPOINT_LIMIT: Final = "checkpoint_limit"
COMMIT_PERIOD: Final = "commit_period"
MULTI_HEADER: Final = "multi_header"
START_FROM_OLDEST: Final = "start_from_oldest"
MAX_MESSAGES: Final = "max_messages_per_trigger"
MIN_PARTITIONS: Final = "min_partitions"
FAIL_ON_DATA_LOSS: Final = "fail_on_data_loss"

NO_MEMBER: Final = "Has no effect: Spark reads as no member of the group, so nothing is rebalanced."

_DEFAULT_CHECKPOINT_LIMIT: Final = 1024

RACK: Final = Field(
    RACK_ID,
    "string",
    "Rack of the client, so that Spark reads from the closest replica.",
    default="",
    advanced=True,
)


def at_least_one_problem(number: int) -> str | None:
    """Return what is wrong with a number that must not be below one."""
    return None if number >= 1 else f"is {number}; expected 1 or more"


def topics_field(optional: bool) -> Field:
    """Return the field `topics`."""
    return Field(
        TOPICS,
        "string",
        "The topics; an item may hold several, separated by commas. `foo:1` reads a single "
        "partition, `foo:0-5` a range of them.",
        shape="array",
        default=() if optional else REQUIRED,
        examples=(["foo", "bar"], ["foo,bar"], ["foo:0", "bar:1,bar:3"], ["foo:0-5"]),
    )


def group_field() -> Field:
    """Return the field `consumer_group`."""
    return Field(
        GROUP,
        "string",
        "The consumer group that offsets are committed to once they are safe in the checkpoint, so "
        "that Kafka's tools and dashboards show the lag. A stream without a checkpoint begins "
        "where the group is. Empty for none.",
        default="",
    )


def checkpoint_limit_field() -> Field:
    """Return the field `checkpoint_limit_field`."""
    return Field(
        CHECKPOINT_LIMIT,
        "int",
        "A value other than the default is how many messages a micro-batch takes at most, of all "
        "partitions. With the default micro-batches grow with what waits, which is far faster.",
        default=_DEFAULT_CHECKPOINT_LIMIT,
        advanced=True,
        check=at_least_one_problem,
    )


def read_limit(parsed: ParsedFields) -> int | None:
    """Return what `checkpoint_limit_field` bounds a micro-batch to, or None.

    The default stands in every config that was made with all fields, so it cannot mean it.
    """
    limit: int = parsed[CHECKPOINT_LIMIT]
    return None if limit == _DEFAULT_CHECKPOINT_LIMIT else limit


def commit_period_field(default: str) -> Field:
    """Return the field `commit_period`."""
    return duration_field(
        COMMIT_PERIOD,
        "Minimum interval of commits to the group; the end of the stream commits too.",
        default=default,
        advanced=True,
    )


def ineffective_duration_field(name: str, default: str | None, why: str = NO_MEMBER) -> Field:
    """Return a field that is a duration and has no effect.

    Args:
        name: its name.
        default: its default; None when it has none.
        why: its description, which says why.
    """
    if default is None:
        return duration_field(name, why, optional=True, advanced=True)
    return duration_field(name, why, default=default, advanced=True)


INSTANCE_ID: Final = Field("instance_id", "string", NO_MEMBER, default="", advanced=True)

NACKS: Final = (
    Field(
        "auto_replay_nacks",
        "bool",
        "True if a message that an output rejects is kept and sent again; otherwise it is dropped, "
        "counted and logged.",
        default=True,
        advanced=True,
    ),
    ineffective_duration_field(
        "timely_nacks_maximum_wait",
        None,
        "Has no effect: nothing is rejected for its age, a micro-batch is done when all of it is.",
    ),
)

TRACING: Final = Field(
    "extract_tracing_map",
    "string",
    "Taken for compatibility: with a tracer, the header `traceparent` of a message is followed.",
    optional=True,
    mapping=True,
    advanced=True,
    examples=("root = @",),
)

MULTI: Final = Field(
    MULTI_HEADER,
    "bool",
    "True if the metadata of a header is the list of all its values; otherwise the last one.",
    default=False,
    advanced=True,
)

OWN_FIELDS: Final = (
    Field(
        MAX_MESSAGES,
        "int",
        "Maximum number of messages of a micro-batch. Not in Redpanda Connect.",
        optional=True,
        advanced=True,
        check=at_least_one_problem,
    ),
    Field(
        MIN_PARTITIONS,
        "int",
        "Into how many parts a micro-batch is cut at least, so that several tasks read one "
        "partition of Kafka's; the order within a partition is then lost. Not in Redpanda "
        "Connect.",
        optional=True,
        advanced=True,
        check=at_least_one_problem,
    ),
    Field(
        FAIL_ON_DATA_LOSS,
        "bool",
        "True if the stream ends with an error when messages are gone before they were read: "
        "expired, or with their topic. Otherwise it continues with the remaining messages, "
        "logs the lost ones, and counts them in the metric `kafka_lost` (`redpanda_lost` of "
        "`redpanda`). Not in Redpanda Connect.",
        default=True,
        advanced=True,
    ),
)
"""Fields that all of them have, and Connect's do not."""


def min_given(*bounds: int | None) -> int | None:
    """Return the smallest of what is given, or None."""
    given = [bound for bound in bounds if bound is not None]
    return min(given) if given else None


def own_settings(parsed: ParsedFields, limit: int | None) -> dict[str, Any]:
    """Return what our own fields say of a source.

    Args:
        parsed: the fields.
        limit: what `checkpoint_limit_field` says; see `read_limit`.
    """
    return {
        "bound": min_given(parsed[MAX_MESSAGES], limit),
        "min_partitions": parsed[MIN_PARTITIONS],
        "fail_on_data_loss": parsed[FAIL_ON_DATA_LOSS],
    }
