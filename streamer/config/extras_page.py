"""The table of extras: `python -m streamer.config.extras_page` writes it into the page."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from streamer.core.extras import ALL, EXTRA_OF, EXTRAS, NOT_IN_ALL

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "install.md"
MARK: Final = (
    "<!-- Written by `python -m streamer.config.extras_page`: not to be edited up to the next "
    "heading. -->\n"
)


def format_table() -> str:
    """Return the table of all extras as Markdown."""
    rows = ["| extra | for | modules |", "|---|---|---|"]
    for extra, purpose in EXTRAS.items():
        names = sorted(f"`{name}`" for name, of in EXTRA_OF.items() if of == extra)
        rows.append(f"| `{extra}` | {purpose} | {', '.join(names)} |")
    others = ", ".join(f"`{name}`" for name in NOT_IN_ALL)
    rows.append(f"| `{ALL}` | all of these but {others} | |")
    return "\n".join(rows) + "\n"


def update_page(text: str) -> str:
    """Return the documentation's page with the table put in after its mark."""
    before, _, after = text.partition(MARK)
    return f"{before}{MARK}\n{format_table()}\n{after[after.index('## ') :]}"


if __name__ == "__main__":
    PAGE.write_text(update_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
