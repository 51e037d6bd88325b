"""The fields of everything that connects to a broker of AMQP 0.9.1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qsl

from streamer.connectors.tls import ENABLED, TLS, TLS_FIELD, tls_problems
from streamer.core.urls import split_url
from streamer.sdk.spec import Access, Field, Package, ParsedFields

URLS: Final = "urls"

PACKAGES: Final = (Package("aiormq"),)

SECURE_SCHEME: Final = "amqps"
_SCHEMES: Final = frozenset({"amqp", SECURE_SCHEME})
_URL_TEXT: Final = "expected a URL such as amqp://guest:guest@localhost:5672/"
HEARTBEAT: Final = "heartbeat"
_KNOWN_PARAMETERS: Final = frozenset({HEARTBEAT, "connection_timeout", "channel_max"})


def split_urls(urls: Any) -> list[str]:
    """Return the single URLs of a list whose items may hold several, separated by commas."""
    return [one.strip() for text in urls for one in text.split(",") if one.strip()]


def _urls_problem(urls: Any) -> str | None:
    given = split_urls(urls)
    for text in given:
        try:
            url = split_url(text)
        except ValueError as e:
            return f"has {e}"
        if url.scheme not in _SCHEMES or not url.hostname:
            return f"has a value that is no URL of AMQP; {_URL_TEXT}"
        unknown = {name for name, _ in parse_qsl(url.query)} - _KNOWN_PARAMETERS
        if unknown:
            return (
                f"has the parameter {min(unknown)!r}; files of certificates stand in the field "
                "tls, and credentials in the URL before the host"
            )
    return None if given else f"is an empty list; {_URL_TEXT}"


URLS_FIELD: Final = Field(
    URLS,
    "string",
    "URLs of the brokers; an item may have several, separated by commas. The first one that "
    "answers is used. The path is the virtual host. `amqps` has TLS.",
    access=Access.ADDRESS,
    shape="array",
    check=_urls_problem,
    examples=(["amqp://guest:guest@127.0.0.1:5672/"],),
)
CLIENT_TLS_FIELD: Final = TLS_FIELD


def arguments_field(description: str, example: dict[str, Any]) -> Field:
    """Return a field for arguments of a declaration."""
    return Field(
        "arguments",
        "string",
        f"{description} Digits are sent as a number, `true` and `false` as a bool.",
        default={},
        shape="map",
        advanced=True,
        examples=(example,),
    )


def read_arguments(given: Any) -> dict[str, Any]:
    """Return arguments as the broker takes them: it refuses a length that is a text."""
    typed = {"true": True, "false": False}
    return {
        name: int(text) if text.isascii() and text.isdecimal() else typed.get(text, text)
        for name, text in given.items()
    }


def client_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    yield from tls_problems(parsed)
    plain = [one for one in split_urls(parsed[URLS]) if split_url(one).scheme != SECURE_SCHEME]
    if parsed[TLS][ENABLED] and plain:
        yield TLS, "is enabled, but a URL begins with amqp://, which has no TLS; use amqps://"
