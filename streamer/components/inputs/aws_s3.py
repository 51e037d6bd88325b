"""`aws_s3`: "downloads objects within an Amazon S3 bucket, optionally filtered by a prefix"."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from streamer.connectors.aws.fields import (
    PACKAGES,
    SESSION_FIELDS,
    TESTED,
    http_url_problem,
    session_problems,
)
from streamer.connectors.aws.notifications import (
    NotificationPaths,
    NotifiedInput,
    ObjectSettings,
)
from streamer.connectors.aws.queue import (
    WAIT_TIME,
    WAIT_TIME_FIELD,
    QueueSettings,
    max_messages_field,
)
from streamer.connectors.aws.s3_store import (
    BUCKET,
    FORCE_PATH_STYLE_FIELD,
    S3Store,
    deferred_s3_client,
)
from streamer.connectors.objects.fields import (
    DELETE_FIELD,
    DELETE_OBJECTS,
    ENABLED,
    OBJECT_SCANNER_FIELDS,
    PREFIX_FIELD,
    READING,
    WATCHER,
    WATCHER_FIELD,
    WATCHING,
    make_object_source,
)
from streamer.connectors.objects.object_source import ObjectSource
from streamer.core.durations import MILLISECOND
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
from streamer.sdk.spec.scanner_fields import build_scanner

TAG_OBJECTS: Final = "tag_objects"
SQS: Final = "sqs"
URL: Final = "url"
KEY_PATH: Final = "key_path"
BUCKET_PATH: Final = "bucket_path"
ENVELOPE_PATH: Final = "envelope_path"
DELAY_PERIOD: Final = "delay_period"
MAX_MESSAGES: Final = "max_messages"
NACK_VISIBILITY_TIMEOUT: Final = "nack_visibility_timeout"


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from session_problems(parsed)
    if not parsed[BUCKET] and not parsed[SQS][URL]:
        yield BUCKET, "is empty; expected the name of a bucket, or a queue in sqs.url"
    if parsed[SQS][URL] and parsed[WATCHER][ENABLED]:
        yield WATCHER, "cannot stand beside sqs.url: the queue says which objects are new"
    if parsed[TAG_OBJECTS] and parsed[DELETE_OBJECTS]:
        yield TAG_OBJECTS, "cannot stand beside delete_objects: a deleted object has no tags"


def _text_field(name: str, description: str, default: str = "", **more: Any) -> Field:
    return Field(name, "string", description, default=default, **more)


_SQS_FIELD: Final = Field(
    SQS,
    "object",
    "A queue that says which objects are new; they are read in place of a listing.",
    children=(
        _text_field(
            URL,
            "The URL of the queue; empty for none.",
            access=Access.REMOTE,
            check=http_url_problem,
            examples=("https://sqs.eu-west-1.amazonaws.com/123456789012/uploads",),
        ),
        _text_field(
            "endpoint",
            "The URL of the API of SQS; empty for the field `endpoint` beside `bucket`.",
            access=Access.ADDRESS,
            advanced=True,
            check=http_url_problem,
        ),
        _text_field(
            KEY_PATH,
            "The dot path of the objects' keys in a message.",
            "Records.*.s3.object.key",
            access=Access.NONE,
        ),
        _text_field(
            BUCKET_PATH,
            "The dot path of the objects' buckets in a message; without one there, `bucket` holds.",
            "Records.*.s3.bucket.name",
            access=Access.NONE,
        ),
        _text_field(
            ENVELOPE_PATH,
            "The dot path of a text that has the notification as JSON, for a queue that is behind "
            "a topic of SNS.",
            access=Access.NONE,
            examples=("Message",),
        ),
        duration_field(
            DELAY_PERIOD,
            "How long after a message was sent its objects are read.",
            default="",
            advanced=True,
            examples=("10s", "5m"),
        ),
        max_messages_field(MAX_MESSAGES),
        WAIT_TIME_FIELD,
        Field(
            NACK_VISIBILITY_TIMEOUT,
            "int",
            "Seconds until a message that names no objects comes again.",
            default=0,
            check=lambda number: (
                None if 0 <= number <= 43_200 else f"is {number}; expected 0 to 43,200"
            ),
        ),
    ),
)

_QUEUE_TEXT: Final = (
    "With `sqs.url`, a queue says which objects are new. Their names go to the driver's disk, and "
    "the message is deleted from the queue. A message that was not deleted is known by its ID, "
    "also after a restart; one that the queue delivers twice has its objects read twice. A message "
    "that names no objects is logged as an error, and stays in the queue: give it a queue for dead "
    "letters. The test message that S3 sends at first is deleted."
)

SPEC: Final = Spec(
    Kind.INPUT,
    "aws_s3",
    "Reads the objects of a bucket of AWS S3.",
    description=(
        f"{READING}\n\n{WATCHING}\n\n{_QUEUE_TEXT}\n"
        "\n"
        "The metadata are `s3_key`, `s3_bucket`, `s3_last_modified_unix` (seconds), "
        "`s3_last_modified` (RFC 3339), `s3_content_type`, `s3_content_encoding`, `s3_version_id` "
        "and those of the object itself, in small letters.\n"
        "\n"
        "For other services with S3's API, set `endpoint`, and mostly `force_path_style_urls`. "
        f"Directory buckets have no order of keys and cannot be read.\n\n{TESTED}"
    ),
    fields=(
        Field(BUCKET, "string", "The bucket.", default="", access=Access.REMOTE),
        PREFIX_FIELD,
        *SESSION_FIELDS,
        FORCE_PATH_STYLE_FIELD,
        DELETE_FIELD,
        *OBJECT_SCANNER_FIELDS,
        _SQS_FIELD,
        WATCHER_FIELD,
        Field(
            TAG_OBJECTS,
            "string",
            "Tags that an object gets once all of its messages are processed and safe in the "
            "checkpoint. Not in Redpanda Connect.",
            default={},
            shape="map",
            advanced=True,
            examples=({"processed": "yes"},),
        ),
    ),
    check=_problems,
    examples=(
        Example(
            "Lines of packed objects",
            "input:\n"
            "  aws_s3:\n"
            "    bucket: events\n"
            "    prefix: 2026/\n"
            "    region: eu-west-1\n"
            "    scanner:\n"
            "      decompress:\n"
            "        algorithm: gzip\n"
            "        into:\n"
            "          lines: {}\n",
        ),
        Example(
            "New objects as they come",
            "input:\n"
            "  aws_s3:\n"
            "    bucket: uploads\n"
            "    region: eu-west-1\n"
            "    delete_objects: true\n"
            "    watcher:\n"
            "      enabled: true\n"
            "      poll_interval: 30s\n",
        ),
        Example(
            "Objects that a queue names",
            "input:\n"
            "  aws_s3:\n"
            "    region: eu-west-1\n"
            "    scanner:\n"
            "      lines: {}\n"
            "    sqs:\n"
            "      url: https://sqs.eu-west-1.amazonaws.com/123456789012/uploads\n"
            "      wait_time_seconds: 20\n",
        ),
    ),
    categories=("Services", "AWS"),
    begin={"bucket": "events"},
    runs="worker",
    delivery=(
        "exactly once: read again from the same offsets; by a queue, its messages are once on the "
        "driver's disk, by their IDs"
    ),
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> ObjectSource | NotifiedInput:
    """Make the input; it is connected once it is read."""
    client = deferred_s3_client(parsed, context)
    tags = dict(parsed[TAG_OBJECTS])
    queue = parsed[SQS]
    if not queue[URL]:
        return make_object_source(parsed, context, S3Store(parsed[BUCKET], client), tags)
    settings = QueueSettings(
        url=queue[URL],
        max_messages=queue[MAX_MESSAGES],
        wait_s=queue[WAIT_TIME],
        delay_ms=(queue[DELAY_PERIOD] or 0) // MILLISECOND,
        refused_timeout_s=queue[NACK_VISIBILITY_TIMEOUT],
    )
    paths = NotificationPaths(
        queue[KEY_PATH], queue[BUCKET_PATH], queue[ENVELOPE_PATH], parsed[BUCKET]
    )
    objects = ObjectSettings(
        partial(S3Store, client=client),
        build_scanner(parsed, context),
        parsed[DELETE_OBJECTS],
        tags,
        queue["endpoint"],
    )
    return NotifiedInput(parsed, settings, paths, objects, ComponentRef(context.component).fields)
