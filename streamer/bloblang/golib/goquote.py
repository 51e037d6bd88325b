"""Texts and letters as Go's `strconv` quotes them."""

from __future__ import annotations

from typing import Final

_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
}


def quote(text: str, mark: str = '"', ascii_only: bool = False) -> str:
    """Return a text as a Go literal.

    Args:
        text: the text; bytes that are no UTF-8 stand in it as lone surrogates.
        mark: the quote to put around it, and to escape in it.
        ascii_only: whether letters beyond ASCII are escaped too.
    """
    return mark + "".join([_escape_letter(c, mark, ascii_only) for c in text]) + mark


def _escape_letter(c: str, mark: str, ascii_only: bool) -> str:
    if c == mark:
        return "\\" + c
    if c in _ESCAPES:
        return _ESCAPES[c]
    code = ord(c)
    if 0xDC80 <= code < 0xDD00:
        return f"\\x{code - 0xDC00:02x}"
    if (c == " " or c.isprintable()) and (code < 0x80 or not ascii_only):
        return c
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quote_time(text: str) -> str:
    """Return a text the way errors of Go's `time` package show it: byte by byte beyond ASCII."""
    letters = []
    for byte in text.encode("utf-8", "surrogateescape"):
        c = chr(byte)
        if c in '"\\':
            letters.append("\\" + c)
        else:
            letters.append(c if 32 <= byte < 0x80 else f"\\x{byte:02x}")
    return f'"{"".join(letters)}"'


def can_backquote(text: str) -> bool:
    """Whether a text can stand between backquotes as it is."""
    return not any(
        c in "`\x7f\ufeff" or (c < " " and c != "\t") or "\ud800" <= c < "\ue000" for c in text
    )
