"""URLs taken apart the way Go's net/url does."""

from __future__ import annotations

import re
import urllib.parse
from typing import Any, Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.runtime.goquote import quote

_SCHEME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.\-]*):(.*)", re.DOTALL)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")


def _unescape(text: str, whole: str) -> str:
    bad = _BAD_ESCAPE.search(text)
    if bad is not None:
        shown = quote(text[bad.start() : bad.start() + 3])
        raise QueryError(f"parse {quote(whole)}: invalid URL escape {shown}")
    return urllib.parse.unquote(text)


def parse(text: str) -> dict[str, Any]:
    """Return a URL's parts under Benthos's names.

    Raises:
        QueryError: the text is no URL, in Go's words.
    """
    rest, _, fragment = text.partition("#")
    if any(ord(c) < 32 or ord(c) == 127 for c in text):
        raise QueryError(f"parse {quote(text)}: net/url: invalid control character in URL")
    match = _SCHEME.fullmatch(rest)
    scheme, body = (match[1].lower(), match[2]) if match else ("", rest)
    if match is None and rest.startswith(":"):
        raise QueryError(f"parse {quote(rest)}: missing protocol scheme")
    body, _, query = body.partition("?")
    result: dict[str, Any] = {
        "scheme": scheme,
        "opaque": "",
        "host": "",
        "path": "",
        "raw_path": "",
        "raw_query": query,
        "fragment": _unescape(fragment, text),
        "raw_fragment": "",
    }
    if scheme and not body.startswith("/"):
        result["opaque"] = body
        return result
    if body.startswith("//") and not body.startswith("///"):
        authority, slash, path = body[2:].partition("/")
        body = slash + path
        _authority(authority, result, rest)
    result["path"] = _unescape(body, rest)
    default = urllib.parse.quote(
        result["path"].encode("utf-8", "surrogateescape"), safe="$&+,/:;=@!'()*"
    )
    if body != default and body != result["path"]:
        result["raw_path"] = body
    return result


def _authority(authority: str, result: dict[str, Any], text: str) -> None:
    user, at, host = authority.rpartition("@")
    port = re.search(r":([^:\]]*)$", host)
    if port is not None and port[1] and not port[1].isdecimal():
        raise QueryError(f"parse {quote(text)}: invalid port {quote(':' + port[1])} after host")
    if " " in host:
        raise QueryError(f"parse {quote(text)}: invalid character {quote(' ')} in host name")
    result["host"] = _unescape(host, text)
    if at:
        name, colon, password = user.partition(":")
        found = {"name": _unescape(name, text)}
        if colon:
            found["password"] = _unescape(password, text)
        result["user"] = found
