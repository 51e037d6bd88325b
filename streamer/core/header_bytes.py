"""Headers as they are sent: UTF-8, as Go sends them; the client by itself takes ASCII alone."""

from __future__ import annotations

from collections.abc import Iterable


def encode_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    r"""Return names and values of headers as bytes.

    >>> encode_headers([("Authorization", "Bearer \u00fc")])
    [(b'Authorization', b'Bearer \xc3\xbc')]
    """
    return [
        (name.encode("utf-8", "replace"), text.encode("utf-8", "replace")) for name, text in headers
    ]
