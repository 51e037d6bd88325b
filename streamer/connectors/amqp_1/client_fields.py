"""The fields of everything that connects to a broker of AMQP 1.0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamer.connectors.amqp.client_fields import SECURE_SCHEME, split_urls
from streamer.connectors.tls import ENABLED, TLS, TLS_FIELD, tls_problems
from streamer.core.urls import split_url
from streamer.sdk.spec import Access, Field, Package, ParsedFields

URL: Final = "url"
URLS: Final = "urls"
SASL: Final = "sasl"
MECHANISM: Final = "mechanism"
USER: Final = "user"
PASSWORD: Final = "password"
NO_SASL: Final = "none"
PLAIN: Final = "plain"
ANONYMOUS: Final = "anonymous"

PACKAGES: Final = (Package("proton"),)

_SCHEMES: Final = frozenset({"amqp", SECURE_SCHEME})
_URL_TEXT: Final = "expected a URL such as amqp://guest:guest@localhost:5672/"


def _urls_problem(urls: Any) -> str | None:
    for text in split_urls(urls):
        try:
            url = split_url(text)
        except ValueError as e:
            return f"has {e}"
        if url.scheme not in _SCHEMES or not url.hostname:
            return f"has a value that is no URL of AMQP; {_URL_TEXT}"
        if url.query:
            return "has parameters; a URL has the user, the password, the host and the port alone"
    return None


URL_FIELDS: Final = (
    Field(
        URL,
        "string",
        "A single URL; use `urls`.",
        access=Access.ADDRESS,
        optional=True,
        deprecated=True,
        check=lambda text: _urls_problem([text]),
    ),
    Field(
        URLS,
        "string",
        "URLs of the brokers; an item may have several, separated by commas. The first one that "
        "answers is used. `amqps` has TLS. A user and a password in it log in by SASL PLAIN.",
        access=Access.ADDRESS,
        shape="array",
        optional=True,
        check=_urls_problem,
        examples=(["amqp://guest:guest@127.0.0.1:5672/"],),
    ),
)

LOGIN_FIELDS: Final = (
    TLS_FIELD,
    Field(
        SASL,
        "object",
        "The login, in place of that of the URL.",
        optional=True,
        advanced=True,
        children=(
            Field(
                MECHANISM,
                "string",
                "`none` leaves it to the URL.",
                default=NO_SASL,
                options=(NO_SASL, PLAIN, ANONYMOUS),
            ),
            Field(USER, "string", "The user, for `plain`.", default="", examples=("${USER}",)),
            Field(
                PASSWORD,
                "string",
                "The password, for `plain`.",
                default="",
                secret=True,
                examples=("${PASSWORD}",),
            ),
        ),
    ),
)


def read_urls(parsed: ParsedFields) -> list[str]:
    """Return the single URLs of a component, in the order in which they are tried."""
    return split_urls(parsed[URLS] or ()) or split_urls([parsed[URL] or ""])


def client_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    yield from tls_problems(parsed)
    urls = read_urls(parsed)
    if not urls:
        yield URLS, f"is missing; {_URL_TEXT}"
    if parsed[TLS][ENABLED] and any(split_url(one).scheme != SECURE_SCHEME for one in urls):
        yield TLS, "is enabled, but a URL begins with amqp://, which has no TLS; use amqps://"
