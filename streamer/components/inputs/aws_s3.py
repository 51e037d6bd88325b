"""`aws_s3`: "downloads objects within an Amazon S3 bucket, optionally filtered by a prefix"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.connectors.aws.fields import (
    PACKAGES,
    SESSION_FIELDS,
    TESTED,
    session_problems,
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
    OBJECT_SCANNER_FIELDS,
    PREFIX_FIELD,
    READING,
    WATCHER_FIELD,
    WATCHING,
    make_object_source,
)
from streamer.connectors.objects.object_source import ObjectSource
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
)

TAG_OBJECTS: Final = "tag_objects"


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from session_problems(parsed)
    if not parsed[BUCKET]:
        yield BUCKET, "is empty; expected the name of a bucket"
    if parsed[TAG_OBJECTS] and parsed[DELETE_OBJECTS]:
        yield TAG_OBJECTS, "cannot stand beside delete_objects: a deleted object has no tags"


SPEC: Final = Spec(
    Kind.INPUT,
    "aws_s3",
    "Reads the objects of a bucket of AWS S3.",
    description=(
        f"{READING}\n\n{WATCHING}\n"
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
    ),
    categories=("Services", "AWS"),
    begin={"bucket": "events"},
    runs="worker",
    delivery="exactly once: read again from the same offsets",
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> ObjectSource:
    """Make the input; it is connected once it is read."""
    store = S3Store(parsed[BUCKET], deferred_s3_client(parsed, context))
    return make_object_source(parsed, context, store, dict(parsed[TAG_OBJECTS]))
