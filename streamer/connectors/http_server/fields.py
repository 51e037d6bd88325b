"""The fields of a component that may have an HTTP server of its own: certificates and origins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.connectors.http_server.address import address_problem
from streamer.connectors.http_server.paths import path_problem
from streamer.sdk.spec import Access, Field, ParsedFields

ADDRESS: Final = "address"
CERT_FILE: Final = "cert_file"
KEY_FILE: Final = "key_file"
CORS: Final = "cors"
ENABLED: Final = "enabled"
ALLOWED_ORIGINS: Final = "allowed_origins"

SERVER_FIELDS: Final = (
    Field(
        CERT_FILE,
        "string",
        "A TLS certificate, PEM.",
        access=Access.FILE,
        default="",
        advanced=True,
    ),
    Field(
        KEY_FILE,
        "string",
        "The certificate's key, PEM.",
        access=Access.FILE,
        default="",
        advanced=True,
    ),
    Field(
        CORS,
        "object",
        "Requests of the pages of other origins.",
        advanced=True,
        children=(
            Field(ENABLED, "bool", "True to allow them.", default=False),
            Field(
                ALLOWED_ORIGINS,
                "string",
                "The origins that are allowed; `*` for all.",
                default=(),
                shape="array",
            ),
        ),
    ),
)


def address_field(example: str) -> Field:
    """Return the field of the address that a component listens on by itself."""
    return Field(
        ADDRESS,
        "string",
        "Address of the server; empty for the stream's own server.",
        access=Access.ADDRESS,
        default="",
        check=lambda text: address_problem(text) if text else None,
        examples=(example,),
    )


def path_field(name: str, description: str, default: str) -> Field:
    """Return the field of a path that is served."""
    return Field(
        name, "string", description, access=Access.NONE, default=default, check=path_problem
    )


def server_problems(parsed: ParsedFields, instead: str) -> Iterator[tuple[str, str]]:
    """Return what is wrong with `SERVER_FIELDS`, as pairs of field and text.

    Args:
        parsed: the component's fields.
        instead: says, without an address, whose one is missing and what to do: `the input's own:
            give an address`.
    """
    if bool(parsed[CERT_FILE]) != bool(parsed[KEY_FILE]):
        yield CERT_FILE, "needs a key_file beside it, and a key_file a cert_file"
    if parsed[CORS][ENABLED] and not parsed[CORS][ALLOWED_ORIGINS]:
        yield CORS, "is enabled; name at least one origin in allowed_origins"
    if not parsed[ADDRESS]:
        for name, given in ((CERT_FILE, parsed[CERT_FILE]), (CORS, parsed[CORS][ENABLED])):
            if given:
                yield name, f"is for an address of {instead}, or set http.{name}"
