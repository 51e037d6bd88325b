"""A look at the brackets of a text before it is read, so that endless ones cost little.

What is nested deeper than `tree.MAX_DEPTH` is refused anyway, once it was read; brackets around
brackets are not counted there, but each takes memory while the text is read.
"""

from __future__ import annotations

import re
from typing import Final

MAX_BRACKET_DEPTH: Final = 1000
_TOKEN: Final = re.compile(r'"""(?:.*?"""|.*)|"(?:[^"\\]|\\.)*"?|#[^\n]*|[(\[{]|[)\]}]', re.DOTALL)


def find_too_deep_bracket(text: str) -> int | None:
    """Return the place of the first bracket with too many open ones before it, if there is one.

    Args:
        text: a mapping.
    """
    if sum(map(text.count, "([{")) <= MAX_BRACKET_DEPTH:
        return None
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "([{":
            depth += 1
            if depth > MAX_BRACKET_DEPTH:
                return match.start()
        elif token in ")]}":
            depth -= 1
    return None
