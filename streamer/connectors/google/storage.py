"""The JSON API of Cloud Storage: objects are written, joined, read, listed and deleted."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from streamer.connectors.google.api import GoogleClient
from streamer.connectors.http_client.errors import HttpError
from streamer.connectors.http_client.service_client import ServiceAnswer, ServiceRequest
from streamer.core.json.dump import dump_json
from streamer.sdk.output.each_message import MessageRefusedError, ReceiverLostError
from streamer.sdk.output.rejection import Reason
from streamer.sdk.spec import BuildContext, ParsedFields

EMULATOR: Final = "STORAGE_EMULATOR_HOST"
"""The variable of the environment that names host and port of an emulator, or its URL."""

ABSENT: Final = 404
CONDITION_FAILED: Final = 412
MAX_NAME_BYTES: Final = 1024
CHUNK_UNIT_BYTES: Final = 256 << 10
"""Parts of an object that is sent in several requests are multiples of it."""

_ADDRESS: Final = "https://storage.googleapis.com"
_RESUME: Final = 308
_CREATED: Final = (200, 201)
_TOO_LARGE: Final = 413
_CONTENT_REFUSED: Final = (400, _TOO_LARGE)


class StorageClient(GoogleClient):
    """A client of Cloud Storage. Threads may share it."""

    def __init__(self, parsed: ParsedFields, context: BuildContext, timeout: int) -> None:
        """Take the fields, what keeps connections and tokens, and the time of a request, ns."""
        super().__init__(parsed, context, timeout, "Cloud Storage", _ADDRESS, emulator=EMULATOR)

    def write(
        self,
        bucket: str,
        name: str,
        data: bytes,
        settings: Mapping[str, Any],
        *,
        generation: int | None = None,
        chunk_bytes: int = 0,
    ) -> bool:
        """Write an object.

        Args:
            bucket: its bucket.
            name: its name.
            data: its content.
            settings: all else, in the words of the API.
            generation: the object is written only where this is its generation (0: where there is
                none); None for always.
            chunk_bytes: an object with more is sent by requests of so many bytes; 0 for one
            request.

        Returns:
            False where the generation is another one.

        Raises:
            StreamerError: it fails; see `raise_refusal`.
        """
        document = dump_json({**settings, "name": name})
        if chunk_bytes and len(data) > chunk_bytes:
            answer = self._write_chunks(bucket, document, data, generation, chunk_bytes)
        else:
            mark = f"part-{uuid.uuid4().hex}"
            head = f"--{mark}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n".encode()
            kind = str(settings.get("contentType") or "application/octet-stream")
            middle = f"\r\n--{mark}\r\nContent-Type: {kind}\r\n\r\n".encode()
            body = b"".join((head, document, middle, data, f"\r\n--{mark}--".encode()))
            path = _upload_path(bucket, "multipart", generation)
            answer = self.exchange("POST", path, body, f"multipart/related; boundary={mark}")
        if answer.status == CONDITION_FAILED and generation is not None:
            return False
        self.raise_refusal(answer)
        return True

    def _write_chunks(
        self, bucket: str, document: bytes, data: bytes, generation: int | None, chunk_bytes: int
    ) -> ServiceAnswer:
        path = _upload_path(bucket, "resumable", generation)
        answer = self.exchange("POST", path, document, "application/json; charset=UTF-8")
        if answer.status not in _CREATED:
            return answer
        session = urlsplit(answer.headers.get("location", ""))
        target = f"{session.path}?{session.query}"
        size = max(chunk_bytes // CHUNK_UNIT_BYTES, 1) * CHUNK_UNIT_BYTES
        for start in range(0, len(data), size):
            part = data[start : start + size]
            span = f"bytes {start}-{start + len(part) - 1}/{len(data)}"
            answer = self.exchange("PUT", target, part, more=(("Content-Range", span),))
            if answer.status != _RESUME:
                break
        return answer

    def append(
        self, bucket: str, name: str, part: str, generation: int, settings: Mapping[str, Any]
    ) -> bool:
        """Put an object behind another one.

        Args:
            bucket: of both.
            name: the object that grows.
            part: the object that is added; it stays.
            generation: that of the object that grows.
            settings: of the object that grows, in the words of the API.

        Returns:
            False where it has another generation meanwhile.

        Raises:
            StreamerError: it fails.
        """
        path = f"{object_path(bucket, name)}/compose?{urlencode({'ifGenerationMatch': generation})}"
        sources = [{"name": name, "generation": str(generation)}, {"name": part}]
        document = dump_json({"sourceObjects": sources, "destination": settings})
        answer = self.exchange("POST", path, document, "application/json")
        if answer.status in (CONDITION_FAILED, ABSENT):
            return False
        self.raise_refusal(answer)
        return True

    def find(self, bucket: str, name: str) -> dict[str, Any] | None:
        """Return the description of an object; None where there is none.

        Raises:
            StreamerError: it fails.
        """
        answer = self.exchange("GET", object_path(bucket, name))
        if answer.status == ABSENT:
            return None
        self.raise_refusal(answer)
        return self.read_document(answer)  # type: ignore[no-any-return]

    def list_objects(self, bucket: str, query: str) -> dict[str, Any]:
        """Return a page of objects, as the API answers.

        Args:
            bucket: the bucket.
            query: of the URL.

        Raises:
            StreamerError: it fails.
        """
        answer = self.exchange("GET", f"{_bucket_path(bucket)}/o?{query}")
        self.raise_refusal(answer)
        return self.read_document(answer)  # type: ignore[no-any-return]

    def delete(self, bucket: str, name: str) -> None:
        """Delete an object; one that is not there is deleted.

        Raises:
            StreamerError: it fails.
        """
        answer = self.exchange("DELETE", object_path(bucket, name))
        if answer.status not in (204, ABSENT):
            self.raise_refusal(answer)

    def read(self, bucket: str, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        """Return bytes of an object; None where there is none.

        Raises:
            StreamerError: it fails.
        """
        span = "" if end is None else str(end - 1)
        more = (("Range", f"bytes={start}-{span}"),) if start or end is not None else ()
        answer = self.exchange("GET", f"{object_path(bucket, name)}?alt=media", more=more)
        if answer.status == ABSENT:
            return None
        self.raise_refusal(answer)
        return answer.body

    def check_bucket(self, bucket: str) -> str:
        """Check that a bucket is there; return the result in words.

        Objects can be written without the right to see the bucket, so that is not asked for.

        Raises:
            StreamerError: it is not there, or nobody answers.
        """
        answer = self.exchange("GET", f"{_bucket_path(bucket)}/o?maxResults=1&fields=kind")
        if answer.status == ABSENT:
            raise HttpError(f"there is no bucket {bucket!r}", ABSENT)
        if answer.status == 403:
            return "there are credentials, which may not list the bucket"
        self.raise_refusal(answer)
        return "the bucket is there"

    def exchange(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        kind: str = "application/octet-stream",
        more: tuple[tuple[str, str], ...] = (),
        *,
        keeps_encoding: bool = False,
    ) -> ServiceAnswer:
        """Return an answer, whatever it is.

        Raises:
            ReceiverLostError: there is none, or there is no token.
        """
        try:
            made = self.make_request(method, path, body, kind)
            headers = (*made.headers, *more)
            return self.client.exchange(
                ServiceRequest(method, path, headers, made.body, keeps_encoding)
            )
        except HttpError as error:
            raise ReceiverLostError(str(error)) from None

    def raise_refusal(self, answer: ServiceAnswer) -> None:
        """Raise an error where an answer is a refusal.

        Raises:
            MessageRefusedError: for what was sent.
            HttpError: for anything else.
        """
        if answer.status < 300:
            return
        text = self.describe_answer(answer)
        if answer.status in _CONTENT_REFUSED:
            reason = Reason.TOO_LARGE if answer.status == _TOO_LARGE else Reason.REFUSED
            raise MessageRefusedError(text, reason)
        raise HttpError(text, answer.status)


def shared_storage(parsed: ParsedFields, context: BuildContext, timeout: int) -> StorageClient:
    """Return the client of a component that lasts as long as its worker."""
    return context.worker_resource("storage", lambda: StorageClient(parsed, context, timeout))


def _bucket_path(bucket: str) -> str:
    return f"/storage/v1/b/{quote(bucket, safe='')}"


def object_path(bucket: str, name: str) -> str:
    """Return the path of an object in the API."""
    return f"{_bucket_path(bucket)}/o/{quote(name, safe='')}"


def _upload_path(bucket: str, kind: str, generation: int | None) -> str:
    query: dict[str, str | int] = {"uploadType": kind}
    if generation is not None:
        query["ifGenerationMatch"] = generation
    return f"/upload/storage/v1/b/{quote(bucket, safe='')}/o?{urlencode(query)}"
