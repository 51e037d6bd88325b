"""Markdown as a terminal shows it."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

import streamer
from streamer.tools.markdown_rendering import render_markdown

DOCS = Path(streamer.__file__).parent / "docs"
PAGES = sorted(path.relative_to(DOCS) for path in DOCS.rglob("*.md"))
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def plain(text: str, columns: int = 40) -> str:
    return render_markdown(text, columns, lambda part, **_: part)


def test_headings_text_and_links_have_no_marks() -> None:
    text = """\
# A **page**

<!-- not shown -->
Text with `code`, *stress* and **weight**
goes on; see [windows](windows.md#late), [this](#here),
[the output](components/outputs/file.md) and [a site](https://example.com/).

## Next
> quoted
> twice
"""
    assert plain(text, 200) == (
        "A page\n══════\n\n"
        "Text with code, stress and weight goes on; see windows, this, the output (outputs file) "
        "and a site (https://example.com/).\n\n"
        "Next\n\n│ quoted twice\n"
    )


def test_text_and_lists_are_wrapped_and_indented() -> None:
    text = "- one item that is longer than a line of the terminal\n  and goes on\n1. two\n   - in\n"
    assert plain(text, 30) == (
        "  • one item that is longer\n    than a line of the\n    terminal and goes on\n"
        "  1. two\n     • in\n"
    )


def test_code_stays_as_it_is() -> None:
    text = "```yaml config=a.yaml\ninput:\n\n  # **not bold** and a line longer than it\n```\n"
    assert plain(text, 20) == ("    input:\n\n      # **not bold** and a line longer than it\n")


def test_tables_have_columns_that_fit() -> None:
    text = "| a | b |\n|---|---|\n| `x\\|y` | several words that do not fit |\n| z | |\n"
    assert plain(text, 24) == (
        "a    b\n───  ───────────────────\nx|y  several words that\n     do not fit\nz\n"
    )


def test_styles_are_those_of_the_terminal() -> None:
    shown = render_markdown("# T\n\nSee `a b` and **c**.\n", 40, click.style)
    assert shown.startswith("\x1b[1mT\x1b[0m\n")
    assert "\x1b[36ma\x1b[0m \x1b[36mb\x1b[0m and \x1b[1mc\x1b[0m." in shown


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_no_page_shows_its_marks(page: Path) -> None:
    text = (DOCS / page).read_text()
    shown = ESCAPE.sub("", render_markdown(text, 100, click.style))
    prose = "\n".join(line for line in shown.splitlines() if not line.startswith("    "))
    # Where code has them, they are no marks.
    for code in re.findall(r"(`+)(.+?)\1(?!`)", text):
        prose = prose.replace(code[1].strip().replace("\\|", "|"), "")
    assert not re.search(r"^#+ |^```|\]\(|\*\*|^\|[-: |]+\|$", prose, re.M)
