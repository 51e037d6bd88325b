"""`aws_s3`: "sends message parts as objects to an Amazon S3 bucket"."""

from __future__ import annotations

from typing import Any, Final

from streamer.connectors.aws.fields import (
    PACKAGES,
    SESSION_FIELDS,
    TESTED,
    metadata_exclude_field,
    session_problems,
)
from streamer.connectors.aws.objects import (
    ACL,
    CHECKSUM_ALGORITHM,
    HEADERS,
    KMS_KEY_ID,
    PATH,
    SERVER_SIDE_ENCRYPTION,
    STORAGE_CLASS,
    TAGS,
    TIMEOUT,
    ObjectOutput,
)
from streamer.connectors.aws.s3_store import BUCKET, FORCE_PATH_STYLE_FIELD
from streamer.sdk.output.protocols import max_in_flight_field
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems
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
from streamer.sdk.spec.checks import join_checks


def _text_field(name: str, description: str, default: str = "", **more: Any) -> Field:
    return Field(name, "string", description, default=default, advanced=True, **more)


_HEADER_TEXTS: Final = {
    "content_encoding": "The content encoding of objects.",
    "cache_control": "The cache control of objects.",
    "content_disposition": "The content disposition of objects.",
    "content_language": "The content language of objects.",
    "website_redirect_location": "Where a website redirects requests for an object.",
}
assert {"content_type", *_HEADER_TEXTS} == {*HEADERS}

SPEC: Final = Spec(
    Kind.OUTPUT,
    "aws_s3",
    "Writes each message as an object of a bucket of AWS S3.",
    description=(
        "Messages of more than 16 MiB are uploaded in parts; an upload that fails leaves no parts. "
        "To write many messages as one object, join them by `archive` in the processors of "
        "`batching`. Metadata go with the object; names that are no names of headers are left out, "
        "and texts beyond ASCII are encoded by RFC 2047.\n"
        "\n"
        "Each message may fail by itself; what S3 refuses for its content, such as a key of more "
        "than 1,024 bytes, is rejected alone.\n"
        "\n"
        "A message may be written again after a failure of the program. With a `path` that depends "
        "on the message alone, that replaces the object by the same one; with `counter()` or the "
        "time in it, there are two.\n"
        "\n"
        "For other services with S3's API, set `endpoint`, and mostly `force_path_style_urls`."
        f"\n\n{TESTED}"
    ),
    fields=(
        Field(BUCKET, "string", "The bucket.", access=Access.REMOTE),
        Field(
            PATH,
            "string",
            "The key of each object.",
            default="${!counter()}-${!timestamp_unix_nano()}.txt",
            interpolated=True,
            access=Access.NONE,
            examples=("${! @kafka_key }.json", "${! this.doc.namespace }/${! this.doc.id }.json"),
        ),
        Field(
            TAGS,
            "string",
            "Tags of the object.",
            default={},
            shape="map",
            interpolated=True,
            examples=({"Key1": "Value1", "Timestamp": "${! @Timestamp }"},),
        ),
        Field(
            "content_type",
            "string",
            "The content type of objects.",
            default="application/octet-stream",
            interpolated=True,
        ),
        *(
            _text_field(name, text, interpolated=True, access=Access.NONE)
            for name, text in _HEADER_TEXTS.items()
        ),
        metadata_exclude_field("Which metadata are left out."),
        _text_field(
            STORAGE_CLASS,
            "The storage class of objects.",
            "STANDARD",
            interpolated=True,
            options=(
                *("STANDARD", "REDUCED_REDUNDANCY", "GLACIER", "STANDARD_IA", "ONEZONE_IA"),
                *("INTELLIGENT_TIERING", "DEEP_ARCHIVE"),
            ),
        ),
        _text_field(KMS_KEY_ID, "A key of KMS by which the server encrypts.", access=Access.NONE),
        _text_field(
            CHECKSUM_ALGORITHM,
            "The algorithm of the checksum of objects.",
            options=("", "CRC32", "CRC32C", "SHA1", "SHA256"),
        ),
        _text_field(SERVER_SIDE_ENCRYPTION, "The algorithm by which the server encrypts."),
        FORCE_PATH_STYLE_FIELD,
        max_in_flight_field(),
        duration_field(TIMEOUT, "Maximum time of a request.", default="5s", advanced=True),
        _text_field(
            ACL,
            "The canned ACL of objects; none when empty.",
            options=(
                *("", "private", "public-read", "public-read-write", "authenticated-read"),
                *("aws-exec-read", "bucket-owner-read", "bucket-owner-full-control"),
            ),
        ),
        BATCHING_FIELD,
        *SESSION_FIELDS,
    ),
    check=join_checks(session_problems, batching_problems),
    examples=(
        Example(
            "Archives of a hundred messages",
            "output:\n"
            "  aws_s3:\n"
            "    bucket: events\n"
            "    path: ${! @kafka_partition }/${! @kafka_offset }.tar.gz\n"
            "    region: eu-west-1\n"
            "    batching:\n"
            "      count: 100\n"
            "      processors:\n"
            "        - archive:\n"
            "            format: tar\n"
            "        - compress:\n"
            "            algorithm: gzip\n",
        ),
    ),
    categories=("Services", "AWS"),
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> ObjectOutput:
    """Compile the fields; nothing is connected yet."""
    return ObjectOutput(parsed, context)
