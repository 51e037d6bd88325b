"""`gcp_cloud_storage`: "use a Google Cloud Storage bucket as a cache"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from streamer.connectors.google.credentials import CREDENTIALS_FIELD, PACKAGES
from streamer.connectors.google.storage import StorageClient, shared_storage
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.sdk.backoff import Backoff
from streamer.sdk.cache import CacheError, KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.output.each_message import MessageRefusedError
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

T = TypeVar("T")

BUCKET: Final = "bucket"
CONTENT_TYPE: Final = "content_type"

_TIMEOUT: Final = 10 * SECOND
_BACKOFF: Final = Backoff(SECOND // 2, 5 * SECOND, 10 * SECOND)

SPEC: Final = Spec(
    Kind.CACHE,
    "gcp_cloud_storage",
    "Keeps values as objects of a bucket of Google Cloud Storage.",
    description=(
        "The key is the name of the object. Objects have no end of their life here; rules of the "
        "bucket can delete old ones. `add` is one request that writes only where no object is, so "
        "that of several workers one alone succeeds.\n"
        "\n"
        "Each operation is a request of some ten milliseconds: put a memory cache before it by "
        "`multilevel` where that is too long."
    ),
    fields=(
        Field(BUCKET, "string", "The bucket, which must be there."),
        Field(
            CONTENT_TYPE,
            "string",
            "The content type of objects.",
            optional=True,
        ),
        CREDENTIALS_FIELD,
    ),
    examples=(
        Example(
            "Drop what was seen by any worker",
            "pipeline:\n"
            "  processors:\n"
            "    - dedupe:\n"
            "        cache: seen\n"
            "        key: ${! this.id }\n"
            "cache_resources:\n"
            "  - label: seen\n"
            "    gcp_cloud_storage:\n"
            "      bucket: seen\n",
        ),
    ),
    categories=("Services", "GCP"),
    requires=PACKAGES,
)


class CloudStorageCache:
    """Values as objects."""

    def __init__(self, parsed: ParsedFields, storage: StorageClient) -> None:
        """Take the fields, and the client."""
        self._bucket = parsed[BUCKET]
        kind = parsed[CONTENT_TYPE]
        self._settings = {"contentType": kind} if kind else {}
        self._storage = storage

    def get(self, key: str, ex: Execution) -> bytes:
        """Return the value of a key."""
        value = self._repeat(lambda: self._storage.read(self._bucket, key), ex)
        if value is None:
            raise KeyNotFoundError
        return value

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value."""
        self._repeat(lambda: self._storage.write(self._bucket, key, value, self._settings), ex)

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a key that has none."""
        is_written = self._repeat(
            lambda: self._storage.write(self._bucket, key, value, self._settings, generation=0), ex
        )
        if not is_written:
            raise KeyAlreadyExistsError

    def delete(self, key: str, ex: Execution) -> None:
        """Forget a key."""
        self._repeat(lambda: self._storage.delete(self._bucket, key), ex)

    def _repeat(self, request: Callable[[], T], ex: Execution) -> T:
        pauses = _BACKOFF.pauses(ex.elapsed)
        while True:
            try:
                return request()
            except StreamerError as error:
                is_refused = isinstance(error, MessageRefusedError)
                pause = None if is_refused else next(pauses, None)
                if pause is None:
                    raise CacheError(str(error)) from None
                ex.sleep(pause)


def build(parsed: ParsedFields, context: BuildContext) -> CloudStorageCache:
    """Take the fields; it is connected at the first use."""
    return CloudStorageCache(parsed, shared_storage(parsed, context, _TIMEOUT))
