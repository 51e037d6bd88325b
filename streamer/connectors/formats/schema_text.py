"""Schemas that a config names by URL instead of holding them, as Benthos's `schema_path` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamer.connectors.locations.location_files import read_path
from streamer.core import urls
from streamer.core.errors import StreamerError
from streamer.core.locations import is_location, location_problem
from streamer.core.permissions import ALL, Permissions
from streamer.sdk.spec import Access, BuildContext, Field, ParsedFields

SCHEMA: Final = "schema"
SCHEMA_PATH: Final = "schema_path"

_FILE: Final = "file://"
_HTTP: Final = "http://"
_TIMEOUT_S: Final = 10.0


def schema_url_problem(url: str) -> str | None:
    """Return what is wrong with the URL of a schema; an empty one is none at all."""
    if url.startswith(_HTTP):
        return urls.url_problem(url)
    if not url or url.startswith(_FILE):
        return None
    if is_location(url):
        return location_problem(url)
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
    if is_location(url):
        return read_path(url, permissions).decode()
    # Imported here: who reads a schema from a file needs no client.
    from streamer.connectors.http_client.exchange_deadline import do_exchange

    return do_exchange("GET", url, _TIMEOUT_S, permissions=permissions).decode()


def schema_fields(
    check: Callable[[str], str | None], example: str, **absent: Any
) -> tuple[Field, Field]:
    """Return the fields of a schema, as a text or by its URL.

    Args:
        check: returns what is wrong with a schema.
        example: the URL of one.
        **absent: what a field is that is left out: `default` or `optional`.
    """
    return (
        Field(
            SCHEMA,
            "string",
            "The schema itself. Set this or `schema_path`.",
            access=Access.NONE,
            check=check,
            **absent,
        ),
        Field(
            SCHEMA_PATH,
            "string",
            "URL of the schema, with `file://` or `http://`, or of an object in a store, such as "
            "`s3://bucket/key`. It is read when the stream starts and overrides `schema`.",
            access=Access.SCHEMA_URL,
            check=schema_url_problem,
            examples=(example,),
            **absent,
        ),
    )


def read_schema_text(parsed: ParsedFields, context: BuildContext, prefix: str) -> str:
    """Return the schema of these fields.

    Raises:
        StreamerError: it cannot be read; the text begins with `prefix`.
    """
    path = parsed[SCHEMA_PATH]
    if not path:
        return str(parsed[SCHEMA])
    try:
        # It is read once, not by every task anew.
        return context.worker_resource("schema", lambda: read_schema(path, parsed.permissions))
    except (OSError, ValueError) as e:
        raise StreamerError(f"{prefix}{path}: {e}") from e
