"""The page of missing components: `python -m streamer.config.unsupported_page` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from streamer.config.known_names import explain_unavailable, list_unavailable
from streamer.sdk.spec import Kind

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "unsupported.md"
MARK: Final = (
    "<!-- From here on written by `python -m streamer.config.unsupported_page`: not to be edited. "
    "-->\n"
)
_FOOTER_LINE: Final = "\n---\n"
"""Begins the links to the previous and the next page."""
_NO_REPLACEMENT: Final = "not written yet"


def format_tables() -> str:
    """Return a table for each kind of component that Benthos or Connect has more of, as Markdown.

    Components with the same remedy share a row.
    """
    sections = []
    for kind in Kind:
        by_text: dict[str, list[str]] = {}
        for name in sorted(list_unavailable(kind)):
            by_text.setdefault(explain_unavailable(kind, name), []).append(f"`{name}`")
        if not by_text:
            continue
        title = str(kind).replace("_", " ").capitalize()
        title += "" if title.endswith("s") else ("es" if title.endswith("ch") else "s")
        rows = ["| components | instead |", "|---|---|"]
        rest = by_text.pop("", [])
        for text, names in sorted(by_text.items(), key=lambda item: item[1]):
            rows.append(f"| {', '.join(names)} | {text} |")
        rows += [f"| {name} | {_NO_REPLACEMENT} |" for name in rest]
        sections.append(f"## {title}\n\n" + "\n".join(rows) + "\n")
    return "\n".join(sections)


def update_page(text: str) -> str:
    """Return the documentation's page with the tables between its mark and its footer."""
    before, _, after = text.partition(MARK)
    _, line, footer = after.rpartition(_FOOTER_LINE)
    return f"{before}{MARK}\n{format_tables()}{line}{footer}"


if __name__ == "__main__":
    PAGE.write_text(update_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
