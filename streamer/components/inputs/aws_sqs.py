"""`aws_sqs`: "consume messages from an AWS SQS URL".

A message is deleted from the queue when it is on the disk. One that comes again, since it could not
be deleted, is known by its ID.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.connectors.aws.fields import (
    PACKAGES,
    SESSION_FIELDS,
    TESTED,
    http_url_problem,
    session_problems,
)
from streamer.connectors.aws.queue import WAIT_TIME_FIELD, max_messages_field
from streamer.connectors.aws.queue_session import (
    DELETE_MESSAGE,
    MAX_MESSAGES,
    MAX_OUTSTANDING,
    MESSAGE_TIMEOUT,
    RESET_VISIBILITY,
    URL,
    QueueInput,
)
from streamer.core.durations import SECOND
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
    duration_field,
)

_MAX_TIMEOUT_S: Final = 43_200


def _timeout_problem(timeout: int) -> str | None:
    if SECOND <= timeout <= _MAX_TIMEOUT_S * SECOND:
        return None
    return "must be from 1s to 12h"


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from session_problems(parsed)
    if not parsed[MESSAGE_TIMEOUT]:
        yield MESSAGE_TIMEOUT, "is empty; expected a duration from 1s to 12h"


SPEC: Final = Spec(
    Kind.INPUT,
    "aws_sqs",
    "Receives messages of a queue of AWS SQS.",
    description=(
        "A message is deleted from the queue when it is on the driver's disk; until then, its "
        "visibility timeout is renewed. A message that comes again because it could not be deleted "
        "is left out, also after a restart. What a standard queue delivers twice although it was "
        "deleted is delivered twice.\n"
        "\n"
        "With `delete_message: false`, a message stays in the queue and comes again after each "
        "visibility timeout, until something else deletes it.\n"
        "\n"
        "Without `wait_time_seconds`, an empty queue is asked with pauses of up to five seconds. "
        "With `20`, messages of a quiet queue come at once, by fewer requests.\n"
        "\n"
        "The metadata are `sqs_message_id`, `sqs_receipt_handle`, `sqs_approximate_receive_count` "
        "and the attributes of the message that are texts or numbers."
        f"\n\n{TESTED}"
    ),
    fields=(
        Field(
            URL,
            "string",
            "The URL of the queue.",
            access=Access.REMOTE,
            check=http_url_problem,
            examples=("https://sqs.eu-west-1.amazonaws.com/123456789012/orders",),
        ),
        Field(
            DELETE_MESSAGE,
            "bool",
            "True to delete a message from the queue when it is on the disk.",
            default=True,
            advanced=True,
        ),
        Field(
            RESET_VISIBILITY,
            "bool",
            "True to make messages visible again at once when the stream stops before they are on "
            "the disk.",
            default=True,
            advanced=True,
        ),
        max_messages_field(MAX_MESSAGES),
        Field(
            MAX_OUTSTANDING,
            "int",
            "Maximum number of messages that are received before they are written to the disk.",
            default=1000,
            check=lambda number: None if number >= 1 else f"is {number}; expected 1 or more",
        ),
        WAIT_TIME_FIELD,
        duration_field(
            MESSAGE_TIMEOUT,
            "The visibility timeout of received messages; renewed after half of it.",
            default="30s",
            advanced=True,
            check=_timeout_problem,
        ),
        *SESSION_FIELDS,
    ),
    check=_problems,
    examples=(
        Example(
            "Orders of a queue",
            "input:\n"
            "  aws_sqs:\n"
            "    url: https://sqs.eu-west-1.amazonaws.com/123456789012/orders\n"
            "    wait_time_seconds: 20\n"
            "    region: eu-west-1\n",
        ),
    ),
    categories=("Services", "AWS"),
    delivery=(
        "once onto the driver's disk, by the message's ID, except for what a standard queue repeats"
    ),
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> QueueInput:
    """Take the fields; it is connected once it is opened."""
    return QueueInput(parsed, ComponentRef(context.component).fields)
