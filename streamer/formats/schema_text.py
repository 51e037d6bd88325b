"""Schemas that a config names by URL instead of holding them, as Benthos's `schema_path` does."""

from __future__ import annotations

from typing import Final

from streamer import urls
from streamer.permissions import ALL, Permissions

_FILE: Final = "file://"
_HTTP: Final = "http://"
_PATIENCE: Final = 10.0


def url_problem(url: str) -> str | None:
    """Return what is wrong with the URL of a schema; an empty one is none at all."""
    if url.startswith(_HTTP):
        return urls.url_problem(url)
    if not url or url.startswith(_FILE):
        return None
    return f"is {url!r}; must start with {_FILE} or {_HTTP}"


def read_schema(url: str, permissions: Permissions = ALL) -> str:
    """Read a schema.

    Raises:
        OSError: it is not there, or nobody answers within ten seconds.
        ValueError: it is no text.
        NotPermittedError: it is in a file, and these are out of reach.
    """
    if url.startswith(_FILE):
        return permissions.read(url.removeprefix(_FILE)).decode()
    from http.client import HTTPException
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=_PATIENCE) as answer:
            return str(answer.read().decode())
    except HTTPException as error:
        # What answers is no HTTP server, or the path has white space.
        raise OSError(f"{url}: {error}") from None
