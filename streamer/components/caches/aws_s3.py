"""`aws_s3`: "stores each item in an S3 bucket as a file, where an item ID is the path"."""

from __future__ import annotations

from typing import Any, Final

from streamer.connectors.aws.cache_requests import RETRIES_FIELD, CacheRequests
from streamer.connectors.aws.client import AwsClient, shared_client
from streamer.connectors.aws.fields import PACKAGES, SESSION_FIELDS, TESTED, session_problems
from streamer.connectors.aws.s3_store import BUCKET, FORCE_PATH_STYLE_FIELD, s3_options
from streamer.core.execution import Execution
from streamer.sdk.cache import KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
)

CONTENT_TYPE: Final = "content_type"

_ANSWERS: Final = {
    **dict.fromkeys(("NoSuchKey", "404", "NotFound"), KeyNotFoundError),
    **dict.fromkeys(("PreconditionFailed", "412"), KeyAlreadyExistsError),
}
_FINAL_CODES: Final = frozenset(
    (
        *("NoSuchBucket", "AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch"),
        *("InvalidObjectState", "InvalidBucketName", "PermanentRedirect", "301"),
    )
)

SPEC: Final = Spec(
    Kind.CACHE,
    "aws_s3",
    "Keeps each value as an object of a bucket of AWS S3, where all workers of all machines find "
    "it.",
    description=(
        "The key of a value is the key of its object. A value is added by a conditional write, so "
        "of several workers that add the same key, one succeeds; services with S3's API that do "
        "not know such writes may let two succeed. Values have no lifetime: give the bucket a rule "
        "that deletes old objects. Each value takes a request, so the cache is for few and large "
        f"values.\n\n{TESTED}"
    ),
    fields=(
        Field(BUCKET, "string", "The bucket.", access=Access.REMOTE),
        Field(
            CONTENT_TYPE,
            "string",
            "The content type of the objects.",
            default="application/octet-stream",
        ),
        FORCE_PATH_STYLE_FIELD,
        RETRIES_FIELD,
        *SESSION_FIELDS,
    ),
    check=session_problems,
    examples=(
        Example(
            "Documents that were fetched once",
            "pipeline:\n"
            "  processors:\n"
            "    - cached:\n"
            "        cache: documents\n"
            '        key: ${! this.url.hash("sha256").encode("hex") }\n'
            "        processors:\n"
            "          - http:\n"
            "              url: ${! this.url }\n"
            "              verb: GET\n"
            "cache_resources:\n"
            "  - label: documents\n"
            "    aws_s3:\n"
            "      bucket: documents\n"
            "      region: eu-west-1\n",
        ),
    ),
    categories=("Services", "AWS"),
    requires=PACKAGES,
)


class S3Cache:
    """Values in a bucket."""

    def __init__(self, parsed: ParsedFields, client: AwsClient) -> None:
        """Take the fields, and the client."""
        self._bucket = parsed[BUCKET]
        self._content_type = parsed[CONTENT_TYPE]
        self._requests = CacheRequests(parsed, client, _ANSWERS, _FINAL_CODES)

    def get(self, key: str, ex: Execution) -> bytes:
        """Return the value of a key."""

        def read(client: Any) -> bytes:
            body = client.get_object(Bucket=self._bucket, Key=key)["Body"]
            try:
                return bytes(body.read())
            finally:
                body.close()

        return self._requests.run(read, ex)

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value."""
        self._requests.run(lambda client: self._put(client, key, value), ex)

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a key that has none."""
        try:
            self._requests.run(lambda client: client.head_object(Bucket=self._bucket, Key=key), ex)
        except KeyNotFoundError:
            self._requests.run(lambda client: self._put(client, key, value, IfNoneMatch="*"), ex)
        else:
            raise KeyAlreadyExistsError

    def _put(self, client: Any, key: str, value: bytes, **more: str) -> None:
        client.put_object(
            Bucket=self._bucket, Key=key, Body=value, ContentType=self._content_type, **more
        )

    def delete(self, key: str, ex: Execution) -> None:
        """Forget a key."""
        self._requests.run(lambda client: client.delete_object(Bucket=self._bucket, Key=key), ex)


def build(parsed: ParsedFields, context: BuildContext) -> S3Cache:
    """Take the fields; it is connected at the first use."""
    client = shared_client(parsed, context, "s3", attempts=1, options=s3_options(parsed))
    return S3Cache(parsed, client)
