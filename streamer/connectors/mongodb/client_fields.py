"""The fields of everything that connects to MongoDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from streamer.sdk.spec import Access, Field, Kind, Package, ParsedFields, duration_field

URL: Final = "url"
DATABASE: Final = "database"
USERNAME: Final = "username"
PASSWORD: Final = "password"
APP_NAME: Final = "app_name"
COLLECTION: Final = "collection"
JSON_MARSHAL_MODE: Final = "json_marshal_mode"
AWS: Final = "aws"

PACKAGES: Final = (Package("pymongo"),)

FILE_OPTIONS: Final = frozenset({"tlscafile", "tlscertificatekeyfile", "tlscrlfile"})
"""Options of a URL that name files, in lower case."""
_NOT_IN_DATABASE_NAMES: Final = frozenset(' .$/\\\0"')
"""Source: MongoDB's manual, "Naming Restrictions"."""

_URL_TEXT: Final = "expected a URL such as mongodb://localhost:27017"


def _url_problem(text: str) -> str | None:
    if text.startswith(("mongodb://", "mongodb+srv://")):
        return None
    return f"is no URL of MongoDB; {_URL_TEXT}"


def url_options(url: str) -> dict[str, str]:
    """Return the options of a URL, by their names in lower case."""
    return {name.lower(): value for name, value in parse_qsl(url.partition("?")[2])}


def url_hosts(url: str) -> list[str]:
    """Return the hosts of a URL, with their ports; a Unix socket is its path."""
    place = url.partition("://")[2].partition("?")[0].partition("/")[0]
    return [unquote(host) for host in place.rpartition("@")[2].split(",")]


def _database_problem(name: str) -> str | None:
    """Return why no database can have this name."""
    if not name:
        return "is empty; expected the name of a database"
    wrong = next((sign for sign in name if sign in _NOT_IN_DATABASE_NAMES), None)
    return None if wrong is None else f"is {name!r}, in which {wrong!r} cannot be"


def _collection_problem(name: str) -> str | None:
    """Return why no collection can have this name; what messages choose is checked with them."""
    if "${!" in name:
        return None
    if not name or ".." in name or "$" in name or "\0" in name or name != name.strip("."):
        return f"is {name!r}; expected a name without $, and with single points only inside"
    return None


CLIENT_FIELDS: Final = (
    Field(
        URL,
        "string",
        "URL of the server or the replica set. TLS is set by its options, such as `tls=true`.",
        access=Access.ADDRESS,
        secret=True,
        check=_url_problem,
        examples=("mongodb://localhost:27017", "mongodb+srv://cluster.example.com/?tls=true"),
    ),
    Field(
        DATABASE,
        "string",
        "The database.",
        access=Access.NONE,
        examples=("shop",),
        check=_database_problem,
    ),
    Field(USERNAME, "string", "The user's name; used together with `password`.", default=""),
    Field(PASSWORD, "string", "The user's password.", default="", secret=True),
    Field(
        APP_NAME,
        "string",
        "The name of the client in the server's log.",
        default="benthos",
        advanced=True,
    ),
    Field(
        AWS,
        "object",
        "Must not be enabled: authentication by AWS IAM is not available.",
        optional=True,
        advanced=True,
    ),
)

MARSHAL_FIELD: Final = Field(
    JSON_MARSHAL_MODE,
    "string",
    "The form of documents as JSON: `canonical` keeps all types of MongoDB, as in "
    '`{"n": {"$numberInt": "1"}}`; `relaxed` has plain numbers.',
    default="canonical",
    options=("canonical", "relaxed"),
    advanced=True,
)

RETRY_FIELDS: Final = (
    Field("max_retries", "int", "Has no effect.", default=3, deprecated=True),
    Field(
        "backoff",
        "object",
        "Has no effect.",
        deprecated=True,
        children=tuple(
            duration_field(name, "Has no effect.", default=default, deprecated=True)
            for name, default in (
                ("initial_interval", "1s"),
                ("max_interval", "5s"),
                ("max_elapsed_time", "30s"),
            )
        ),
    ),
)


def collection_field(kind: Kind) -> Field:
    """Return the field `collection`; outputs and processors may choose it by message."""
    return Field(
        COLLECTION,
        "string",
        "The collection.",
        access=Access.NONE,
        check=_collection_problem,
        examples=("orders",),
        interpolated=kind in (Kind.OUTPUT, Kind.PROCESSOR),
    )


def client_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    if bool(parsed[USERNAME]) != bool(parsed[PASSWORD]):
        yield USERNAME, "and password need each other"
    aws: dict[str, Any] = parsed[AWS] or {}
    if aws.get("enabled"):
        yield f"{AWS}.enabled", "is true, and AWS IAM is not available; use a user with a password"
