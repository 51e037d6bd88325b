"""Pages of the documentation are in plain English: no new finding in any of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs.style import DEBT, MAX_WORDS, check_page, count_findings, list_pages, list_sentences


def test_no_page_has_more_findings_than_before() -> None:
    allowed = json.loads(DEBT.read_text())
    worse = {page: n for page, n in count_findings().items() if n > allowed.get(page, 0)}
    findings = [
        f"{finding.page}: {finding.kind} {finding.text!r}: {finding.advice}"
        for path in list_pages()
        if path.stem in worse
        for finding in check_page(path)
    ]
    assert worse == {}, "\n".join(["", *findings])


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("What comes late is lost.", ["clause"]),
        ("It waits; who asks gets all.", ["clause"]),
        ("What is a pane?\n\nA pane is a slice. It shows what is late.", []),
        ("## What a window keeps", ["clause"]),
        ("The mapping folds. `folds` and [text](fold.md) do not count.", ["word"]),
        ("```sh\nnobody\n```\n<!-- nobody -->", []),
        (f"{'word ' * MAX_WORDS}more.", ["length"]),
        (f"{'word ' * 20}end. {'Word ' * 20}end.", []),
        ("| nobody | all |\n|---|---|\n| One that is late | x |", ["word", "word"]),
        (f"- {'word ' * 20}\n- {'word ' * 20}", []),
    ],
)
def test_findings(text: str, kinds: list[str], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    assert [finding.kind for finding in check_page(page)] == kinds


def test_sentences_are_cut_at_paragraphs_items_and_cells() -> None:
    text = "# Title\n\nOne. Two,\nstill two (e.g. this).\n\n- item\n| a | `b c` |\n"
    assert [*list_sentences(text)] == [
        *("Title", "One.", "Two, still two (e.g. this).", "item", "a", "CODE"),
    ]
