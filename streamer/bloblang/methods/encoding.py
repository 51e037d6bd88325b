"""Methods that encode, escape and hash."""

from __future__ import annotations

import hashlib
import html
import re
import urllib.parse
import uuid
from collections.abc import Callable
from typing import Any

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.errors import ArgumentError, QueryError, TypeMismatch
from streamer.bloblang.golib.convert import bytes_of, text_of
from streamer.bloblang.golib.goquote import quote as go_quote
from streamer.bloblang.golib.urls import unescape
from streamer.bloblang.runtime import digests
from streamer.bloblang.runtime.text_encodings import DECODERS, ENCODERS
from streamer.core.timestamps import Timestamp

_CATEGORY = "Encoding and Encryption"
_STRING_CATEGORY = "String Manipulation"


@declare(
    "encode",
    _CATEGORY,
    Param("scheme", "string"),
    examples=(
        Example(
            'root.payload = this.text.encode("base64")',
            '{"text":"hello"}',
            '{"payload":"aGVsbG8="}',
        ),
        Example('root.payload = this.text.encode("hex")', '{"text":"hi"}', '{"payload":"6869"}'),
    ),
    binds=True,
)
def encode(scheme: str) -> Callable[[Any], str]:
    """The bytes as text: base64, base64url, base64rawurl, hex, ascii85."""
    encoder = ENCODERS.get(scheme)
    if encoder is None:
        raise ArgumentError(f"unrecognized encoding type: {scheme}")
    return lambda value: encoder(bytes_of(value)).decode()


@declare(
    "decode",
    _CATEGORY,
    Param("scheme", "string"),
    examples=(
        Example(
            'root.text = this.payload.decode("base64").string()',
            '{"payload":"aGVsbG8="}',
            '{"text":"hello"}',
        ),
        Example(
            'root.text = this.payload.decode("hex").string()', '{"payload":"6869"}', '{"text":"hi"}'
        ),
    ),
    binds=True,
)
def decode(scheme: str) -> Callable[[Any], bytes]:
    """The bytes encoded by a text: base64, base64url, base64rawurl, hex, ascii85."""
    decoder = DECODERS.get(scheme)
    if decoder is None:
        raise ArgumentError(f"unrecognized encoding type: {scheme}")
    return lambda value: decoder(bytes_of(value))


@declare(
    "hash",
    _CATEGORY,
    Param("algorithm", "string"),
    Param("key", "string", default=None),
    Param("polynomial", "string", default="IEEE"),
    examples=(
        Example(
            'root.id = this.email.hash("sha256").encode("hex")',
            '{"email":"ada@example.com"}',
            '{"id":"b5fc85e55755f9e0d030a10ab4429b6b2944855f9a0d60077fe832becbc41d72"}',
        ),
        Example(
            'root.signature = this.body.hash("hmac_sha256", "sesame").encode("base64")',
            '{"body":"hello"}',
            '{"signature":"TIYbvHTyABICkjWayvfJsJKn509TjADOiSYqUy6z0qo="}',
        ),
    ),
    binds=True,
)
def hash_(algorithm: str, key: str | None, polynomial: str) -> Callable[[Any], bytes]:
    """A digest of the bytes, as bytes; the HMACs among the algorithms need a key."""
    raw_key = (key or "").encode("utf-8", "surrogateescape")
    digest = digests.find_digest(algorithm, raw_key, polynomial)
    return lambda value: digest(bytes_of(value))


def _text_bytes(value: Any) -> bytes:
    return text_of(value).encode("utf-8", "surrogateescape")


_NAMESPACES = {
    "dns": uuid.NAMESPACE_DNS,
    "url": uuid.NAMESPACE_URL,
    "oid": uuid.NAMESPACE_OID,
    "x500": uuid.NAMESPACE_X500,
}


@declare(
    "uuid_v5",
    _CATEGORY,
    Param("ns", "string", default=None),
    examples=(Example('root = "example".uuid_v5()', "{}", "feb54431-301b-52bb-a6dd-e1e93e81bb9e"),),
)
def uuid_v5(value: Any, ns: str | None) -> str | None:
    """The version 5 UUID of a name: dns, url, oid, x500 or a UUID as namespace."""
    if value is None:
        return None
    space = uuid.UUID(int=0)
    if ns is not None:
        known = _NAMESPACES.get(ns.lower()) if ns in (ns.lower(), ns.upper()) else None
        try:
            space = known or uuid.UUID(ns)
        except ValueError:
            raise QueryError(f"invalid ns uuid: {go_quote(ns)}") from None
    if type(value) is Timestamp:
        raise TypeMismatch(value, "string")
    digest = hashlib.sha1(space.bytes + _text_bytes(value), usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest[:16], version=5))


@declare(
    "escape_html",
    _STRING_CATEGORY,
    examples=(
        Example(
            "root.safe = this.comment.escape_html()",
            '{"comment":"<b>1 & 2</b>"}',
            '{"safe":"&lt;b&gt;1 &amp; 2&lt;/b&gt;"}',
        ),
    ),
)
def escape_html(value: Any) -> str:
    """The text with HTML's special characters escaped."""
    escaped = html.escape(text_of(value))
    return escaped.replace("&quot;", "&#34;").replace("&#x27;", "&#39;")


@declare(
    "unescape_html",
    _STRING_CATEGORY,
    examples=(
        Example(
            "root.text = this.text.unescape_html()",
            '{"text":"tea &amp; cakes"}',
            '{"text":"tea & cakes"}',
        ),
    ),
)
def unescape_html(value: Any) -> str:
    """The text with HTML's entities resolved."""
    return html.unescape(text_of(value))


@declare(
    "escape_url_query",
    _STRING_CATEGORY,
    examples=(
        Example(
            'root.url = "https://example.com/search?q=" + this.words.escape_url_query()',
            '{"words":"tea & cakes"}',
            '{"url":"https://example.com/search?q=tea+%26+cakes"}',
        ),
    ),
)
def escape_url_query(value: Any) -> str:
    """The text escaped for a URL's query."""
    return urllib.parse.quote_plus(_text_bytes(value), safe="")


@declare(
    "escape_url_path",
    _STRING_CATEGORY,
    examples=(
        Example(
            'root.url = "https://example.com/files/" + this.name.escape_url_path()',
            '{"name":"a/b c.txt"}',
            '{"url":"https://example.com/files/a%2Fb%20c.txt"}',
        ),
    ),
)
def escape_url_path(value: Any) -> str:
    """The text escaped for a segment of a URL's path."""
    return urllib.parse.quote(_text_bytes(value), safe="$&+=:@")


@declare(
    "unescape_url_query",
    _STRING_CATEGORY,
    examples=(
        Example(
            "root.words = this.q.unescape_url_query()",
            '{"q":"tea+%26+cakes"}',
            '{"words":"tea & cakes"}',
        ),
    ),
)
def unescape_url_query(value: Any) -> str:
    """The text with the escapes of a URL's query resolved."""
    return unescape(text_of(value), plus=True)


@declare(
    "unescape_url_path",
    _STRING_CATEGORY,
    examples=(
        Example(
            "root.name = this.path.unescape_url_path()", '{"path":"a%20b+c"}', '{"name":"a b+c"}'
        ),
    ),
)
def unescape_url_path(value: Any) -> str:
    """The text with the escapes of a URL's path resolved."""
    return unescape(text_of(value))


@declare(
    "quote",
    _STRING_CATEGORY,
    examples=(
        Example(
            "root.quoted = this.text.quote()",
            '{"text":"two\\nlines"}',
            '{"quoted":"\\"two\\\\nlines\\""}',
        ),
    ),
)
def quote(value: Any) -> str:
    """The text in double quotes, with Go's escapes."""
    return go_quote(text_of(value))


@declare(
    "unquote",
    _STRING_CATEGORY,
    examples=(
        Example(
            "root.text = this.quoted.unquote()",
            '{"quoted":"\\"two\\\\nlines\\""}',
            '{"text":"two\\nlines"}',
        ),
    ),
)
def unquote(value: Any) -> str:
    """The text without its quotes, Go's escapes resolved."""
    from streamer.bloblang.literals import unquote as resolve

    text = text_of(value)
    mark, inside = text[:1], text[1:-1]
    quoted = len(text) > 1 and mark == text[-1] and mark in "`'\""
    if not quoted or ("\n" in inside and mark != "`"):
        raise QueryError("invalid syntax")
    if mark == "`":
        if mark in inside:
            raise QueryError("invalid syntax")
        return inside.replace("\r", "")
    if re.search(rf"(?<!\\)(?:\\\\)*{mark}", inside):
        raise QueryError("invalid syntax")
    try:
        # In single quotes is one letter, where the other quote needs no escape, and has none.
        result = resolve(text if mark == '"' else f'"{_swap_quote_escapes(inside)}"')
    except ValueError:
        raise QueryError("invalid syntax") from None
    if mark == "'" and len(result) != 1:
        raise QueryError("invalid syntax")
    return result


def _swap_quote_escapes(inside: str) -> str:
    if inside == '\\"':
        raise ValueError("a double quote needs no escape in single quotes")
    return {'"': '\\"', "\\'": "'"}.get(inside, inside)
