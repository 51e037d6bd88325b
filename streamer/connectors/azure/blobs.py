"""The client of Blob Storage of a component, which lasts as long as its worker."""

from __future__ import annotations

import threading
from typing import Any, Final

from streamer.connectors.azure.account import read_account
from streamer.connectors.azure.errors import AzureError, azure_errors
from streamer.sdk.spec import BuildContext, ParsedFields

CONNECT_TIMEOUT_S: Final = 5
READ_TIMEOUT_S: Final = 60
ABSENT: Final = 404
CONTAINER_ABSENT: Final = "ContainerNotFound"

CLIENT_OPTIONS: Final = {
    # Whoever sends repeats what has failed, and says so in logs and metrics.
    "retry_total": 0,
    "connection_timeout": CONNECT_TIMEOUT_S,
    "read_timeout": READ_TIMEOUT_S,
}


class BlobAccount:
    """A storage account's blobs. Threads may share it."""

    def __init__(self, parsed: ParsedFields) -> None:
        """Take the fields; nothing is connected yet."""
        self._parsed = parsed
        self._lock = threading.Lock()
        self._client: Any = None

    @property
    def client(self) -> Any:
        """The client, a `BlobServiceClient`.

        Raises:
            StreamerError: the fields describe no account.
        """
        with self._lock:
            if self._client is None:
                from azure.storage.blob import BlobServiceClient

                with azure_errors():
                    account = read_account(self._parsed)
                    self._client = BlobServiceClient(
                        account.url, credential=account.credential, **CLIENT_OPTIONS
                    )
            return self._client

    def check_container(self, name: str) -> str:
        """Check that blobs of a container could be listed; return the result in words.

        Raises:
            StreamerError: nobody answers, or a refusal.
        """
        try:
            with azure_errors():
                pages = self.client.get_container_client(name).list_blobs(results_per_page=1)
                next(iter(pages.by_page()), None)
        except AzureError as error:
            if error.code == CONTAINER_ABSENT:
                return f"the container {name} is not there yet"
            raise
        return f"the container {name} is there"

    def close(self) -> None:
        """Free the connections; the next use makes others."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()


def shared_account(parsed: ParsedFields, context: BuildContext) -> BlobAccount:
    """Return the account of a component, which lasts as long as its worker."""
    return context.worker_resource("blobs", lambda: BlobAccount(parsed))
