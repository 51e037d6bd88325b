"""`gcp_cloud_storage`: "sends message parts as objects to a Google Cloud Storage bucket"."""

from __future__ import annotations

import posixpath
import uuid
from collections.abc import Mapping
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.bloblang.golib.text import to_text
from streamer.connectors.google.credentials import CREDENTIALS_FIELD, PACKAGES
from streamer.connectors.google.storage import (
    ABSENT,
    EMULATOR,
    MAX_NAME_BYTES,
    shared_storage,
)
from streamer.connectors.http_client.errors import HttpError
from streamer.core.durations import SECOND
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.each_message import MessageRefusedError, send_each
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, Output, max_in_flight_field
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems, output_policy
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

BUCKET: Final = "bucket"
PATH: Final = "path"
CONTENT_TYPE: Final = "content_type"
CONTENT_ENCODING: Final = "content_encoding"
COLLISION_MODE: Final = "collision_mode"
CHUNK_SIZE: Final = "chunk_size"
TIMEOUT: Final = "timeout"

OVERWRITE: Final = "overwrite"
APPEND: Final = "append"
ERROR_IF_EXISTS: Final = "error-if-exists"
IGNORE: Final = "ignore"
_MODES: Final = (OVERWRITE, APPEND, ERROR_IF_EXISTS, IGNORE)

_MAX_APPEND_TRIES: Final = 20
"""Tries to put a message behind an object to which others write meanwhile."""

SPEC: Final = Spec(
    Kind.OUTPUT,
    "gcp_cloud_storage",
    "Writes each message as an object of a bucket of Google Cloud Storage.",
    description=(
        "To write many messages as one object, join them by `archive` in the processors of "
        "`batching`. Metadata go with the object, as text.\n"
        "\n"
        "Each message may fail by itself: one that Cloud Storage refuses for its content is "
        "rejected alone.\n"
        "\n"
        "A message may be written again after a failure of the program. With a `path` that depends "
        "on the message alone, `overwrite` then replaces the object by the same one, and `ignore` "
        "leaves it as it is; with `counter()` or the time in it, there are two. With `append` the "
        "message is twice in the object. With `error-if-exists` the second one is rejected.\n"
        "\n"
        f"The environment's variable `{EMULATOR}` names an emulator; credentials are not sent "
        "there. "
        "This output uses the JSON API, and is tested with fake-gcs-server, not with Google's."
    ),
    fields=(
        Field(BUCKET, "string", "The bucket, which must be there.", interpolated=True),
        Field(
            PATH,
            "string",
            "The name of each object.",
            default="${!counter()}-${!timestamp_unix_nano()}.txt",
            interpolated=True,
            access=Access.NONE,
            examples=("${! @kafka_key }.json", "${! this.doc.namespace }/${! this.doc.id }.json"),
        ),
        Field(
            CONTENT_TYPE,
            "string",
            "The content type of objects.",
            default="application/octet-stream",
            interpolated=True,
        ),
        Field(
            CONTENT_ENCODING,
            "string",
            "The content encoding of objects.",
            default="",
            interpolated=True,
            advanced=True,
        ),
        Field(
            COLLISION_MODE,
            "string",
            "What happens where an object of this name is there: `overwrite` replaces it, `append` "
            "puts the message behind it, `error-if-exists` rejects the message, and `ignore` drops "
            "it.",
            default=OVERWRITE,
            interpolated=True,
            check=lambda text: (
                None
                if text in _MODES or "${" in text
                else f"is {text!r}; expected {', '.join(_MODES[:-1])} or {_MODES[-1]}"
            ),
        ),
        Field(
            CHUNK_SIZE,
            "int",
            "Maximum bytes of one request. A larger object is sent by several requests; 0 for one "
            "request in any case. It is rounded down to a multiple of 256 KiB.",
            default=16 << 20,
            advanced=True,
            check=lambda size: None if size >= 0 else f"is {size}; expected 0 or more",
        ),
        duration_field(
            TIMEOUT,
            "Maximum time of a request.",
            default="3s",
            examples=("1s", "500ms"),
            check=lambda ns: None if ns > 0 else "must be longer than 0s",
        ),
        CREDENTIALS_FIELD,
        max_in_flight_field(),
        BATCHING_FIELD,
    ),
    check=batching_problems,
    examples=(
        Example(
            "Archives of a hundred messages",
            "output:\n"
            "  gcp_cloud_storage:\n"
            "    bucket: events\n"
            "    path: ${!counter()}-${!timestamp_unix_nano()}.tar.gz\n"
            "    batching:\n"
            "      count: 100\n"
            "      period: 10s\n"
            "      processors:\n"
            "        - archive:\n"
            "            format: tar\n"
            "        - compress:\n"
            "            algorithm: gzip\n",
        ),
    ),
    categories=("Services", "GCP"),
    requires=PACKAGES,
)


class CloudStorageOutput(Output):
    """Writes messages as objects."""

    def __init__(self, parsed: ParsedFields, context: BuildContext) -> None:
        """Compile the fields; nothing is connected yet."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self.policy = output_policy(parsed, context)
        self._texts = {
            name: compile_interpolation(parsed[name])
            for name in (BUCKET, PATH, CONTENT_TYPE, CONTENT_ENCODING, COLLISION_MODE)
        }
        self._chunk_bytes = parsed[CHUNK_SIZE]
        self._storage = shared_storage(parsed, context, parsed[TIMEOUT] or 3 * SECOND)

    def send(self, batch: Batch, ex: Execution) -> None:
        """Write the objects of a batch; those that fail are named."""
        send_each(len(batch), lambda index: self._write_message(batch, index, ex))

    def _write_message(self, batch: Batch, index: int, ex: Execution) -> None:
        texts = {
            name: interpolate(name, text, batch, index, ex) for name, text in self._texts.items()
        }
        name, mode = texts[PATH], texts[COLLISION_MODE]
        if not 0 < len(name.encode()) <= MAX_NAME_BYTES:
            raise MessageError(f"path has {len(name.encode())} bytes; expected 1 to 1,024")
        if not texts[BUCKET]:
            raise MessageError("the name of the bucket is empty")
        if mode not in _MODES:
            raise MessageError(f"collision_mode is {mode!r}; expected one of {', '.join(_MODES)}")
        settings: dict[str, Any] = {"contentType": texts[CONTENT_TYPE]}
        if texts[CONTENT_ENCODING]:
            settings["contentEncoding"] = texts[CONTENT_ENCODING]
        if batch[index].meta:
            settings["metadata"] = {key: to_text(value) for key, value in batch[index].meta.items()}
        try:
            self._write_object(texts[BUCKET], name, mode, batch[index].raw, settings)
        except HttpError as error:
            # A bucket that one message names is no reason to keep the others waiting.
            if error.status == ABSENT and self._texts[BUCKET].static is None:
                raise MessageRefusedError(str(error)) from None
            raise

    def _write_object(
        self, bucket: str, name: str, mode: str, data: bytes, settings: Mapping[str, Any]
    ) -> None:
        generation = None if mode == OVERWRITE else 0
        is_written = self._storage.write(
            bucket, name, data, settings, generation=generation, chunk_bytes=self._chunk_bytes
        )
        if is_written or mode == IGNORE:
            return
        if mode == ERROR_IF_EXISTS:
            raise MessageRefusedError(f"the object {name!r} is there already")
        self._append_object(bucket, name, data, settings)

    def _append_object(
        self, bucket: str, name: str, data: bytes, settings: Mapping[str, Any]
    ) -> None:
        part = posixpath.join(posixpath.dirname(name), f"{uuid.uuid4()}.tmp")
        self._storage.write(bucket, part, data, settings, chunk_bytes=self._chunk_bytes)
        try:
            for _ in range(_MAX_APPEND_TRIES):
                now = self._storage.find(bucket, name)
                if now is None:
                    again = self._storage.write(
                        bucket,
                        name,
                        data,
                        settings,
                        generation=0,
                        chunk_bytes=self._chunk_bytes,
                    )
                    if again:
                        return
                    continue
                generation = int(now["generation"])
                if self._storage.append(bucket, name, part, generation, settings):
                    return
            raise StreamerError(
                f"the object {name!r} has changed {_MAX_APPEND_TRIES} times while a message was to "
                "be put behind it; write less to one object at once"
            )
        finally:
            self._storage.delete(bucket, part)

    def probe(self) -> str:
        """Check that the bucket is there, or that there is a token where messages name it."""
        bucket = self._texts[BUCKET].static
        if bucket is None:
            self._storage.make_request("GET", "")
            return "there are credentials"
        return self._storage.check_bucket(bucket)


def build(parsed: ParsedFields, context: BuildContext) -> CloudStorageOutput:
    """Compile the fields; nothing is connected yet."""
    return CloudStorageOutput(parsed, context)
