"""Configs in Markdown: the blocks that are marked as YAML, as Benthos's lint reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_BLOCK: Final = re.compile(r"^([ \t]*)```yaml[^\n]*\n(.*?)^[ \t]*```", re.M | re.S)


def is_markdown(path: str) -> bool:
    """Return whether a file is a page that holds configs, by its name."""
    return path.endswith(".md")


def find_yaml_blocks(text: str) -> Iterator[str]:
    """Return the configs of a page, with empty lines before, so that their places are the page's.

    Indented blocks are left as they are: YAML takes the indentation.
    """
    for block in _BLOCK.finditer(text):
        yield "\n" * text.count("\n", 0, block.start(2)) + block[2]
