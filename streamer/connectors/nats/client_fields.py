"""The fields of everything that connects to NATS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamer.connectors.tls import TLS_FIELD, tls_problems
from streamer.core.urls import split_url
from streamer.sdk.metadata_filter import metadata_filter_field
from streamer.sdk.spec import Access, Field, Package, ParsedFields

URLS: Final = "urls"
SUBJECT: Final = "subject"
HEADERS: Final = "headers"
METADATA: Final = "metadata"
BUCKET: Final = "bucket"
TLS_HANDSHAKE_FIRST: Final = "tls_handshake_first"
AUTH: Final = "auth"

PACKAGES: Final = (Package("nats"), Package("nkeys"))

_SCHEMES: Final = frozenset({"nats", "tls", "ws", "wss"})
_URL_TEXT: Final = "expected a URL such as nats://localhost:4222"


def split_urls(urls: Any) -> list[str]:
    """Return the single URLs of a list whose items may hold several, separated by commas."""
    return [one.strip() for text in urls for one in text.split(",") if one.strip()]


def _urls_problem(urls: Any) -> str | None:
    given = split_urls(urls)
    for text in given:
        try:
            url = split_url(text if "://" in text else f"nats://{text}")
        except ValueError as e:
            return f"has {e}"
        if url.scheme not in _SCHEMES or not url.hostname:
            return f"has {text!r}; {_URL_TEXT}"
    return None if given else f"is an empty list; {_URL_TEXT}"


def _auth_field(name: str, description: str, **more: Any) -> Field:
    return Field(name, "string", description, default="", advanced=True, **more)


CLIENT_FIELDS: Final = (
    Field(
        URLS,
        "string",
        "URLs of the servers; an item may have several, separated by commas.",
        access=Access.ADDRESS,
        shape="array",
        check=_urls_problem,
        examples=(["nats://127.0.0.1:4222"],),
    ),
    Field(
        "max_reconnects",
        "int",
        "Has no effect: a lost connection is made again for as long as the stream runs.",
        optional=True,
        advanced=True,
    ),
)
CONNECTION_FIELDS: Final = (
    TLS_FIELD,
    Field(
        TLS_HANDSHAKE_FIRST,
        "bool",
        "True if the TLS handshake comes before the server's greeting.",
        default=False,
        advanced=True,
    ),
    Field(
        AUTH,
        "object",
        "Credentials. Use one kind of them.",
        advanced=True,
        children=(
            _auth_field("nkey_file", "A file with the seed of an NKey.", access=Access.FILE),
            _auth_field("nkey", "The seed of an NKey.", secret=True),
            _auth_field(
                "user_credentials_file",
                "A file with a JWT and the seed of its NKey.",
                access=Access.FILE,
                examples=("./user.creds",),
            ),
            _auth_field("user_jwt", "A JWT; needs `user_nkey_seed`.", secret=True),
            _auth_field("user_nkey_seed", "The seed of the JWT's NKey.", secret=True),
            _auth_field("user", "The user's name."),
            _auth_field("password", "The user's password.", secret=True),
            _auth_field("token", "A token.", secret=True),
        ),
    ),
)
HEADER_FIELDS: Final = (
    Field(
        HEADERS,
        "string",
        "Headers of the message.",
        default={},
        shape="map",
        interpolated=True,
        examples=({"Timestamp": '${! meta("Timestamp") }'},),
    ),
    metadata_filter_field(METADATA, "Metadata that becomes headers."),
)


def tracing_field(name: str) -> Field:
    """Return a field for maps of traces, which do nothing here."""
    return Field(name, "string", "Has no effect.", optional=True, advanced=True, mapping=True)


def subject_field(description: str, **more: Any) -> Field:
    """Return the field `subject` with a description."""
    return Field(
        SUBJECT, "string", description, access=Access.NONE, examples=("foo.bar.baz",), **more
    )


def bucket_field() -> Field:
    """Return the field `bucket` of components for key-value stores."""
    return Field(
        BUCKET,
        "string",
        "The name of the bucket, which must be there.",
        access=Access.NONE,
        examples=("my_kv_bucket",),
    )


def client_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    yield from tls_problems(parsed)
    auth = parsed[AUTH]
    if bool(auth["user_jwt"]) != bool(auth["user_nkey_seed"]):
        yield AUTH, "user_jwt and user_nkey_seed need each other"
    if auth["password"] and not auth["user"]:
        yield f"{AUTH}.password", "needs the field user"
