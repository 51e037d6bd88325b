"""Schemas that a config names by URL instead of holding them, as Benthos's `schema_path` does."""

from __future__ import annotations

from typing import Final

from streamer.core import urls
from streamer.core.permissions import ALL, Permissions

_FILE: Final = "file://"
_HTTP: Final = "http://"
_TIMEOUT_S: Final = 10.0


def schema_url_problem(url: str) -> str | None:
    """Return what is wrong with the URL of a schema; an empty one is none at all."""
    if url.startswith(_HTTP):
        return urls.url_problem(url)
    if not url or url.startswith(_FILE):
        return None
    return f"is {url!r}; must start with {_FILE} or {_HTTP}"


def read_schema(url: str, permissions: Permissions = ALL) -> str:
    """Read a schema.

    Raises:
        OSError: it is not there, or there is no whole answer within ten seconds.
        ValueError: it is no text.
        NotPermittedError: it is in a file, and these are out of reach.
    """
    if url.startswith(_FILE):
        return permissions.read(url.removeprefix(_FILE)).decode()
    # Imported here: who reads a schema from a file needs no client.
    from streamer.connectors.http_client.exchange_deadline import do_exchange

    return do_exchange("GET", url, _TIMEOUT_S, permissions=permissions).decode()
