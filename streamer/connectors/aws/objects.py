"""Objects of S3: what a message becomes, and how it is uploaded."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.connectors.aws.attributes import as_text
from streamer.connectors.aws.client import AwsClient, shared_client
from streamer.connectors.aws.errors import AwsError
from streamer.connectors.aws.fields import EXCLUDE_PREFIXES, METADATA
from streamer.connectors.aws.s3_store import BUCKET, s3_options
from streamer.core.durations import SECOND
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, NotConnectedError, Output, SendError
from streamer.sdk.output.rejection import Reason, Rejection, make_invalid_rejection
from streamer.sdk.processing.batching import output_policy
from streamer.sdk.spec import BuildContext, ParsedFields

PATH: Final = "path"
TAGS: Final = "tags"
STORAGE_CLASS: Final = "storage_class"
KMS_KEY_ID: Final = "kms_key_id"
CHECKSUM_ALGORITHM: Final = "checksum_algorithm"
SERVER_SIDE_ENCRYPTION: Final = "server_side_encryption"
TIMEOUT: Final = "timeout"
ACL: Final = "object_canned_acl"

HEADERS: Final[Mapping[str, str]] = {
    "content_type": "ContentType",
    "content_encoding": "ContentEncoding",
    "cache_control": "CacheControl",
    "content_disposition": "ContentDisposition",
    "content_language": "ContentLanguage",
    "website_redirect_location": "WebsiteRedirectLocation",
}
"""Fields of texts that go with an object, and the names that S3 has for them."""

_PART_BYTES: Final = 16 << 20
_MAX_KEY_BYTES: Final = 1024
_CRC32C: Final = "CRC32C"
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PLAIN_TEXT: Final = re.compile(r"[\x20-\x7e]*")


class OutgoingObject(NamedTuple):
    """An object as it is written.

    Attributes:
        key: its key.
        data: its bytes.
        settings: all else, in the words of S3.
    """

    key: str
    data: bytes
    settings: Mapping[str, Any]


class ObjectMaker:
    """Makes objects of messages."""

    def __init__(self, parsed: ParsedFields) -> None:
        """Compile the fields."""
        self._path = compile_interpolation(parsed[PATH])
        texts = {**HEADERS, STORAGE_CLASS: "StorageClass"}
        self._texts: dict[str, tuple[str, Interpolation]] = {
            known: (name, compile_interpolation(parsed[name])) for name, known in texts.items()
        }
        self._tags = {name: compile_interpolation(text) for name, text in parsed[TAGS].items()}
        self._left_out = tuple(parsed[METADATA][EXCLUDE_PREFIXES])
        fixed = {
            "ACL": parsed[ACL],
            "ChecksumAlgorithm": parsed[CHECKSUM_ALGORITHM],
            "SSEKMSKeyId": parsed[KMS_KEY_ID],
            "ServerSideEncryption": parsed[SERVER_SIDE_ENCRYPTION]
            or ("aws:kms" if parsed[KMS_KEY_ID] else ""),
        }
        self._fixed = {name: value for name, value in fixed.items() if value}

    def make(self, batch: Batch, index: int, ex: Execution) -> OutgoingObject:
        """Return the object of a message.

        Raises:
            MessageError: it has no usable key, or a text cannot be told.
        """
        key = interpolate(PATH, self._path, batch, index, ex)
        if not 0 < len(key.encode()) <= _MAX_KEY_BYTES:
            raise MessageError(f"path has {len(key.encode())} bytes; expected 1 to 1,024")
        settings: dict[str, Any] = dict(self._fixed)
        for known, (name, text) in self._texts.items():
            if value := interpolate(name, text, batch, index, ex):
                settings[known] = value
        if self._tags:
            tags = {
                name: interpolate(f"tag {name}", text, batch, index, ex)
                for name, text in sorted(self._tags.items())
            }
            settings["Tagging"] = urlencode(tags)
        if metadata := self._make_metadata(batch[index].meta):
            settings["Metadata"] = metadata
        return OutgoingObject(key, batch[index].raw, settings)

    def _make_metadata(self, metadata: Mapping[str, Any]) -> dict[str, str]:
        return {
            name: _header_text(as_text(value))
            for name, value in metadata.items()
            if _HEADER_NAME.fullmatch(name)
            and not (self._left_out and name.startswith(self._left_out))
        }


def _header_text(text: str) -> str:
    """Return a text as a header takes it; by RFC 2047 where it has more than ASCII."""
    if _PLAIN_TEXT.fullmatch(text):
        return text.strip()
    return f"=?UTF-8?B?{base64.b64encode(text.encode(errors='replace')).decode()}?="


class ObjectOutput(Output):
    """Writes messages as objects."""

    def __init__(self, parsed: ParsedFields, context: BuildContext) -> None:
        """Take the fields, and the worker that has the client."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self.policy = output_policy(parsed, context)
        self._parsed = parsed
        self._bucket = parsed[BUCKET]
        self._objects = ObjectMaker(parsed)
        self._client = shared_client(parsed, context, "s3", **_client_options(parsed))

    def send(self, batch: Batch, ex: Execution) -> None:
        """Write the objects of a batch; those that fail are named."""
        failed: dict[int, str] = {}
        for index in range(len(batch)):
            try:
                outgoing = self._objects.make(batch, index, ex)
                self._client.run(lambda client, one=outgoing: self._upload(client, one))  # type: ignore[misc]
            except MessageError as error:
                failed[index] = make_invalid_rejection(str(error))
            except AwsError as error:
                if error.is_content_refused:
                    reason = Reason.TOO_LARGE if error.is_too_large else Reason.REFUSED
                    failed[index] = Rejection(str(error), reason)
                    continue
                # What was written before is not written again.
                failed |= dict.fromkeys(range(index, len(batch)), str(error))
                if error.is_connection_lost and len(failed) == len(batch):
                    raise NotConnectedError(str(error), failed) from None
                break
        if failed:
            raise SendError(next(iter(failed.values())), failed)

    def _upload(self, client: Any, outgoing: OutgoingObject) -> None:
        """Write an object, in parts when it is large."""
        place = {"Bucket": self._bucket, "Key": outgoing.key}
        if len(outgoing.data) <= _PART_BYTES:
            checksum = _own_checksum(outgoing.settings, outgoing.data)
            client.put_object(**place, **outgoing.settings, **checksum, Body=outgoing.data)
            return
        upload = client.create_multipart_upload(**place, **outgoing.settings)["UploadId"]
        try:
            parts = [
                self._upload_part(client, outgoing, upload, number, data)
                for number, data in enumerate(_cut_parts(outgoing.data), 1)
            ]
            client.complete_multipart_upload(
                **place, UploadId=upload, MultipartUpload={"Parts": parts}
            )
        except BaseException:
            # Parts that are left cost money, and nobody sees them.
            with suppress(Exception):
                client.abort_multipart_upload(**place, UploadId=upload)
            raise

    def _upload_part(
        self, client: Any, outgoing: OutgoingObject, upload: str, number: int, data: memoryview
    ) -> dict[str, Any]:
        checksum = _own_checksum(outgoing.settings, data)
        if not checksum and "ChecksumAlgorithm" in outgoing.settings:
            checksum = {"ChecksumAlgorithm": outgoing.settings["ChecksumAlgorithm"]}
        answer = client.upload_part(
            Bucket=self._bucket,
            Key=outgoing.key,
            UploadId=upload,
            PartNumber=number,
            Body=bytes(data),
            **checksum,
        )
        names = ("ETag", *(f"Checksum{name}" for name in ("CRC32", _CRC32C, "SHA1", "SHA256")))
        return {"PartNumber": number, **{name: answer[name] for name in names if name in answer}}

    def probe(self) -> str:
        """Check that the bucket is there."""
        client = AwsClient(self._parsed, "s3", **_client_options(self._parsed))
        try:
            client.run(lambda one: one.head_bucket(Bucket=self._bucket))
        except AwsError as error:
            if error.code != "404":
                raise
            raise AwsError(f"there is no bucket {self._bucket!r}", "NoSuchBucket") from None
        finally:
            client.close()
        return "the bucket is there"


def _own_checksum(settings: Mapping[str, Any], data: bytes | memoryview) -> dict[str, str]:
    """Return a checksum that boto3 makes with a package only that is not needed otherwise."""
    if settings.get("ChecksumAlgorithm") != _CRC32C:
        return {}
    import crc32c

    sum_bytes = crc32c.crc32c(bytes(data)).to_bytes(4, "big")
    return {"ChecksumCRC32C": base64.b64encode(sum_bytes).decode()}


def _cut_parts(data: bytes) -> Iterator[memoryview]:
    view = memoryview(data)
    for at in range(0, len(data), _PART_BYTES):
        yield view[at : at + _PART_BYTES]


def _client_options(parsed: ParsedFields) -> dict[str, Any]:
    timeout_s = (parsed[TIMEOUT] or 0) / SECOND or 5.0
    return {"read_timeout_s": timeout_s, "options": s3_options(parsed)}
