"""The reference of lint's rules: `python -m streamer.config.rules_page` writes it into the page."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from streamer.config.lint.rules import RULES

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "lint-codes.md"
MARK: Final = (
    "<!-- From here on written by `python -m streamer.config.rules_page`: not to be edited. -->\n"
)
_FOOTER_LINE: Final = "\n---\n"
"""Begins the links to the previous and the next page."""


def format_rules() -> str:
    """Return the reference of all rules as Markdown."""
    sections = []
    for rule in RULES.values():
        facts = ["An error" if rule.level == "error" else "A warning"]
        if not rule.ignorable:
            facts.append("no comment silences it")
        elif rule.level == "error" and rule.runs_ignored:
            facts.append("a config runs when a comment silences it, and with `--chilled`")
        if rule.chilled:
            facts.append("a config runs with `--chilled`")
        sections.append(
            f"### {rule.code}\n\n{rule.meaning}\n\n{rule.remedy} ({'; '.join(facts)}.)\n"
        )
    return "\n".join(sections)


def update_page(text: str) -> str:
    """Return the documentation's page with the reference between its mark and its footer."""
    before, _, after = text.partition(MARK)
    _, line, footer = after.rpartition(_FOOTER_LINE)
    return f"{before}{MARK}\n{format_rules()}{line}{footer}"


if __name__ == "__main__":
    PAGE.write_text(update_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
