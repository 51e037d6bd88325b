"""Links at the end of pages and groups in the README, both from the index of the documentation.

`python -m tests.docs.navigation` writes them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from streamer.tools.docs_index import (
    INDEX_PAGE,
    DocsSection,
    format_docs_footer,
    format_docs_groups,
    read_docs_index,
    strip_docs_footer,
)

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "streamer" / "docs"
README: Final = ROOT / "README.md"
_GROUPS: Final = re.compile(r"(?<=\n## Documentation\n\n)\| \| \|\n(?:\|[^\n]*\n)+")


def make_texts() -> dict[Path, str]:
    """Return the text that each page of the index and the README should have, by path."""
    sections = read_docs_index(DOCS)
    texts = {
        path: _with_footer(sections, path) for path in DOCS.glob("*.md") if path.stem != INDEX_PAGE
    }
    groups = format_docs_groups(sections, "streamer/docs/")
    texts[README] = _GROUPS.sub(lambda _: groups, README.read_text())
    return texts


def _with_footer(sections: list[DocsSection], path: Path) -> str:
    footer = format_docs_footer(sections, path.stem)
    return strip_docs_footer(path.read_text()).rstrip("\n") + "\n" + footer


def main() -> None:
    """Write the pages whose links have changed."""
    for path, text in make_texts().items():
        if path.read_text() != text:
            path.write_text(text)
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
