"""A look at the brackets of a text before it is read, so that endless ones cost little.

What is nested deeper than `tree.MAX_DEPTH` is refused anyway, once it was read; brackets around
brackets are not counted there, but each takes memory while the text is read.
"""

from __future__ import annotations

import re
from typing import Final

MOST_BRACKETS: Final = 1000
_TOKEN: Final = re.compile(r'"""(?:.*?"""|.*)|"(?:[^"\\]|\\.)*"?|#[^\n]*|[(\[{]|[)\]}]', re.DOTALL)


def too_deep_at(text: str) -> int | None:
    """Return the place of the first bracket with too many open ones before it, if there is one.

    Args:
        text: a mapping.
    """
    if sum(map(text.count, "([{")) <= MOST_BRACKETS:
        return None
    depth = 0
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in "([{":
            depth += 1
            if depth > MOST_BRACKETS:
                return found.start()
        elif token in ")]}":
            depth -= 1
    return None
