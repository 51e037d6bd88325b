"""S3 as a store of objects; also what all components on S3 have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError, aws_errors
from streamer.connectors.aws.fields import ENDPOINT
from streamer.connectors.objects.store import (
    PAGE_OBJECTS,
    ListedObject,
    ObjectInfo,
    ObjectMissingError,
    ObjectPage,
    ObjectReplacedError,
    ObjectUnreadableError,
    OpenObject,
    StoreError,
    StoreUnavailableError,
)
from streamer.core.durations import SECOND
from streamer.core.timestamps import format_rfc3339
from streamer.sdk.spec import Access, BuildContext, Field, ParsedFields

T = TypeVar("T")

BUCKET: Final = "bucket"
FORCE_PATH_STYLE: Final = "force_path_style_urls"

FORCE_PATH_STYLE_FIELD: Final = Field(
    FORCE_PATH_STYLE,
    "bool",
    "True if the bucket is in the path of URLs, not in their host.",
    default=False,
    access=Access.NONE,
    advanced=True,
)

_MAX_DELETED: Final = 1000
"""Keys of one request to delete."""

_MISSING_CODES: Final = frozenset(("NoSuchKey", "404", "NotFound"))
_REPLACED_CODES: Final = frozenset(("PreconditionFailed", "412"))
_UNREADABLE_CODES: Final = frozenset(("InvalidObjectState",))
_BEHIND_END_CODES: Final = frozenset(("InvalidRange", "416"))
_UNAVAILABLE_CODES: Final = frozenset(
    (
        *("SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "Throttling"),
        *("RequestTimeTooSkewed", "500", "502", "503", "504", "429", "TooManyRequests"),
    )
)


def s3_options(parsed: ParsedFields) -> dict[str, Any]:
    """Return botocore's settings of a client of S3, by the fields of a component."""
    options: dict[str, Any] = {
        "s3": {"addressing_style": "path" if parsed[FORCE_PATH_STYLE] else "auto"}
    }
    if parsed[ENDPOINT]:
        # Other services do not know the checksums that boto3 adds by itself.
        options |= {
            "request_checksum_calculation": "when_required",
            "response_checksum_validation": "when_required",
        }
    return options


def make_s3_client(parsed: ParsedFields) -> AwsClient:
    """Return a client of S3 by the fields of a component; it connects at its first use."""
    return AwsClient(parsed, "s3", options=s3_options(parsed))


def deferred_s3_client(parsed: ParsedFields, context: BuildContext) -> Callable[[], AwsClient]:
    """Return what gives the client of a component in any process, one for each run."""
    return context.deferred_worker_resource("s3", partial(make_s3_client, parsed))


class S3Store:
    """The objects of a bucket; see `ObjectStore`."""

    def __init__(self, bucket: str, client: Callable[[], AwsClient]) -> None:
        """Take the bucket, and what gives the client."""
        self._bucket = bucket
        self._client = client

    @property
    def place(self) -> str:
        """The bucket, for messages."""
        return f"s3://{self._bucket}"

    def list_page(self, prefix: str, after: str, limit: int = PAGE_OBJECTS) -> ObjectPage:
        """Return objects behind a key; see `ObjectStore`."""
        given = {"Prefix": prefix} if prefix else {}
        if after:
            given["StartAfter"] = after
        with self._store_errors("list objects"):
            answer = self._client().run(
                lambda client: client.list_objects_v2(Bucket=self._bucket, MaxKeys=limit, **given)
            )
        objects = [
            ListedObject(one["Key"], one["Size"], one.get("ETag", ""), _to_ns(one["LastModified"]))
            for one in answer.get("Contents", ())
        ]
        return ObjectPage(objects, not answer.get("IsTruncated"))

    def open(
        self, key: str, start: int = 0, end: int | None = None, version: str = ""
    ) -> OpenObject:
        """Begin to read an object; see `ObjectStore`."""
        given: dict[str, Any] = {"IfMatch": version} if version else {}
        if start or end is not None:
            given["Range"] = f"bytes={start}-{'' if end is None else max(end - 1, 0)}"
        with self._store_errors(f"read {key!r}"):
            try:
                answer = self._client().run(
                    lambda client: client.get_object(Bucket=self._bucket, Key=key, **given)
                )
            except AwsError as error:
                if error.code not in _BEHIND_END_CODES:
                    raise
                given.pop("Range")
                answer = self._client().run(
                    lambda client: client.head_object(Bucket=self._bucket, Key=key, **given)
                )
        return OpenObject(self._make_info(key, answer), _Body(answer.get("Body"), self, key))

    def _make_info(self, key: str, answer: Mapping[str, Any]) -> ObjectInfo:
        modified = _to_ns(answer["LastModified"])
        metadata: dict[str, Any] = dict(answer.get("Metadata", {}))
        metadata |= {
            "s3_key": key,
            "s3_bucket": self._bucket,
            "s3_last_modified_unix": modified // SECOND,
            "s3_last_modified": format_rfc3339(modified),
        }
        texts = {
            "s3_content_type": answer.get("ContentType"),
            "s3_content_encoding": answer.get("ContentEncoding"),
            "s3_version_id": answer.get("VersionId"),
        }
        metadata |= {name: text for name, text in texts.items() if text}
        version = answer.get("ETag", "")
        return ObjectInfo(key, _whole_size(answer), version, metadata, modified)

    def head(self, key: str) -> ListedObject | None:
        """Return an object as it is now; see `ObjectStore`."""
        try:
            with self._store_errors(f"look at {key!r}"):
                answer = self._client().run(
                    lambda client: client.head_object(Bucket=self._bucket, Key=key)
                )
        except ObjectMissingError:
            return None
        size, modified = answer["ContentLength"], _to_ns(answer["LastModified"])
        return ListedObject(key, size, answer.get("ETag", ""), modified)

    def delete(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Delete objects; see `ObjectStore`."""
        failed: dict[str, str] = {}
        for at in range(0, len(keys), _MAX_DELETED):
            requested = {
                "Objects": [{"Key": key} for key in keys[at : at + _MAX_DELETED]],
                "Quiet": True,
            }
            with self._store_errors("delete objects"):
                answer = self._client().run(
                    lambda client, some=requested: client.delete_objects(  # type: ignore[misc]
                        Bucket=self._bucket, Delete=some
                    )
                )
            failed |= {one["Key"]: one.get("Code", "") for one in answer.get("Errors", ())}
        return failed

    def tag(self, key: str, tags: Mapping[str, str]) -> None:
        """Add tags to an object; see `ObjectStore`."""
        with self._store_errors(f"tag {key!r}"):
            answer = self._client().run(
                lambda client: client.get_object_tagging(Bucket=self._bucket, Key=key)
            )
            requested = {one["Key"]: one["Value"] for one in answer["TagSet"]} | dict(tags)
            tag_set = [{"Key": name, "Value": value} for name, value in requested.items()]
            self._client().run(
                lambda client: client.put_object_tagging(
                    Bucket=self._bucket, Key=key, Tagging={"TagSet": tag_set}
                )
            )

    @contextmanager
    def _store_errors(self, action: str) -> Iterator[None]:
        """Turn errors of AWS into those of stores."""
        try:
            yield
        except AwsError as error:
            raise _as_store_error(error, f"failed to {action} of {self.place}") from None

    def close(self) -> None:
        """Free the connections; see `ObjectStore`."""
        self._client().close()


class _Body:
    """The bytes of an answer."""

    def __init__(self, body: Any, store: S3Store, key: str) -> None:
        """Take boto3's stream, None for no bytes, and the object for messages."""
        self._body = body
        self._store = store
        self._key = key

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes; see `ByteStream`."""
        if self._body is None:
            return b""
        try:
            with aws_errors():
                data: bytes = self._body.read(size)
        except AwsError as error:
            text = f"failed to read {self._key!r} of {self._store.place}"
            raise _as_store_error(error, text) from None
        return data

    def close(self) -> None:
        """Free the connection."""
        if self._body is not None:
            self._body.close()


def _as_store_error(error: AwsError, text: str) -> StoreError:
    text = f"{text}: {error}"
    if error.is_connection_lost or error.code in _UNAVAILABLE_CODES:
        return StoreUnavailableError(text)
    if error.code in _MISSING_CODES:
        return ObjectMissingError(text)
    if error.code in _REPLACED_CODES:
        return ObjectReplacedError(text)
    if error.code in _UNREADABLE_CODES:
        return ObjectUnreadableError(text)
    return StoreError(text)


def _to_ns(moment: Any) -> int:
    """Return a time of boto3 as ns since 1970."""
    return int(moment.timestamp() * 1000) * (SECOND // 1000)


def _whole_size(answer: Mapping[str, Any]) -> int:
    """Return the bytes of an object of which a range was requested."""
    _, _, total = answer.get("ContentRange", "").rpartition("/")
    return int(total) if total.isdigit() else int(answer["ContentLength"])
