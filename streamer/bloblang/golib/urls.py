"""URLs taken apart the way Go's net/url does, with its errors."""

from __future__ import annotations

import re
import urllib.parse
from typing import Any, Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.goquote import quote

_SCHEME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.\-]*):(.*)", re.DOTALL)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_USERINFO: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_HOST: Final = re.compile(r"""[A-Za-z0-9\-._~!$&'()*+,;=:\[\]<>"%\x80-\U0010ffff]*""")
# A host may hold escapes of letters beyond ASCII only, besides the percent sign itself.
_HOST_ESCAPE: Final = re.compile(r"%(?!25)[0-7][0-9a-fA-F]")
_PORT: Final = re.compile(r"(?::[0-9]*)?", re.ASCII)
_IN_PATH: Final = "$&+,/:;=@"
_IN_FRAGMENT: Final = "$&+,/:;=?@!()*"


def unescape(text: str, plus: bool = False) -> str:
    """Return a text with its escapes undone.

    Args:
        text: the text.
        plus: whether a plus sign stands for a space, as it does in a query.

    Raises:
        QueryError: a percent sign begins no escape, in Go's words.
    """
    bad = _BAD_ESCAPE.search(text)
    if bad is not None:
        raise QueryError(f"invalid URL escape {quote(text[bad.start() : bad.start() + 3])}")
    raw = (text.replace("+", " ") if plus else text).encode("utf-8", "surrogateescape")
    return urllib.parse.unquote_to_bytes(raw).decode("utf-8", "surrogateescape")


def _keep_unusual_spelling(plain: str, text: str, safe: str) -> str:
    """Return a text if it is not how Go would have escaped it, else an empty one."""
    return (
        "" if urllib.parse.quote(plain.encode("utf-8", "surrogateescape"), safe) == text else text
    )


def split_url(text: str) -> dict[str, Any]:
    """Return a URL's parts under Benthos's names.

    Raises:
        QueryError: the text is no URL, in Go's words.
    """
    rest, _, fragment = text.partition("#")
    try:
        result = _split_parts(rest)
    except QueryError as e:
        raise QueryError(f"parse {quote(rest)}: {e}") from None
    try:
        result["fragment"] = unescape(fragment)
    except QueryError as e:
        raise QueryError(f"parse {quote(text)}: {e}") from None
    result["raw_fragment"] = _keep_unusual_spelling(result["fragment"], fragment, _IN_FRAGMENT)
    return result


def _split_parts(text: str) -> dict[str, Any]:
    if any(c < " " or c == "\x7f" for c in text):
        raise QueryError("net/url: invalid control character in URL")
    if text.startswith(":"):
        raise QueryError("missing protocol scheme")
    match = _SCHEME.fullmatch(text)
    scheme, body = (match[1].lower(), match[2]) if match else ("", text)
    body, _, query = body.partition("?")
    result: dict[str, Any] = {
        "scheme": scheme,
        "opaque": "",
        "host": "",
        "path": "",
        "raw_path": "",
        "raw_query": query,
        "fragment": "",
        "raw_fragment": "",
    }
    if not body.startswith("/"):
        if scheme:
            result["opaque"] = body
            return result
        if ":" in body.partition("/")[0]:
            raise QueryError("first path segment in URL cannot contain colon")
    if body.startswith("//") and (scheme or not body.startswith("///")):
        authority, slash, path = body[2:].partition("/")
        body = slash + path
        _parse_authority(authority, result)
    result["path"] = unescape(body)
    if body != "*":
        result["raw_path"] = _keep_unusual_spelling(result["path"], body, _IN_PATH)
    return result


def _parse_authority(authority: str, result: dict[str, Any]) -> None:
    user, at, host = authority.rpartition("@")
    result["host"] = _parse_host(host)
    if not at:
        return
    if not _USERINFO.fullmatch(user):
        raise QueryError("net/url: invalid userinfo")
    name, colon, password = user.partition(":")
    userinfo = {"name": unescape(name)}
    if colon:
        userinfo["password"] = unescape(password)
    result["user"] = userinfo


def _parse_host(host: str) -> str:
    if host.startswith("["):
        close = host.rfind("]")
        if close < 0:
            raise QueryError("missing ']' in host")
        port = host[close + 1 :]
    else:
        port = host[host.index(":") :] if ":" in host else ""
    if not _PORT.fullmatch(port):
        raise QueryError(f"invalid port {quote(port)} after host")
    bad = _BAD_ESCAPE.search(host)
    refused = _HOST_ESCAPE.search(host)
    zone = host.find("%25") if host.startswith("[") else -1
    if refused is not None and (bad is None or refused.start() < bad.start()) and zone < 0:
        raise QueryError(f"invalid URL escape {quote(refused[0])}")
    plain = _HOST.match(host)
    if bad is None and plain is not None and plain.end() < len(host):
        raise QueryError(f"invalid character {quote(host[plain.end()])} in host name")
    return unescape(host)
