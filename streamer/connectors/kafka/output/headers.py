"""Headers of a record from metadata: which keys, as which bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streamer.bloblang.golib.text import metadata_text, to_bytes
from streamer.sdk.metadata_filter import MetadataFilter

Header = tuple[str, bytes]

Headers = Callable[[Mapping[str, Any]], list[Header]]
"""Returns the headers that metadata give, sorted by name."""


def header_bytes(value: Any) -> bytes:
    """Return the bytes of one value: bytes as they are, anything else as its text in UTF-8."""
    if type(value) is str:
        return value.encode("utf-8", "surrogateescape")
    return to_bytes(metadata_text(value) if type(value) is dict else value)


def headers_of(entries: Iterable[tuple[str, Any]]) -> list[Header]:
    """Return headers; a list gives one for each of its items, as `multi_header` reads them."""
    headers: list[Header] = []
    for name, value in entries:
        if not name.isascii():
            # The client breaks down at names that are not UTF-8.
            name = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if type(value) is list:
            headers += ((name, header_bytes(item)) for item in value)
        else:
            headers.append((name, header_bytes(value)))
    return headers


def select_headers(rules: MetadataFilter) -> Headers | None:
    """Return the headers of the metadata that rules take; without a rule there are none."""
    if not rules.is_set:
        return None
    return lambda meta: headers_of(rules.select(meta))


def headers_without(prefixes: tuple[str, ...]) -> Headers:
    """Return the headers of all metadata but those that begin with one of these."""

    def make_headers(meta: Mapping[str, Any]) -> list[Header]:
        return headers_of((key, meta[key]) for key in sorted(meta) if not key.startswith(prefixes))

    return make_headers
