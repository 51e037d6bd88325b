"""Styles of texts for the terminal: each part of a text in its colours, and cut at a width."""

from __future__ import annotations

from collections.abc import Callable

Style = Callable[[str, str], str]
"""Takes a part of a text and what it is, such as `head`; returns the part as it is shown."""


def keep_text(text: str, what: str) -> str:
    """Return a part as it is: the style without colours."""
    return text
