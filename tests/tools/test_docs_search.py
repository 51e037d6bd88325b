"""Search of pages by words: titles go before headings, headings before text."""

from __future__ import annotations

from pathlib import Path

import pytest

import streamer
from streamer.tools.docs_search import DocsHit, mark_words, search_docs, suggest_words

SHIPPED = Path(streamer.__file__).parent / "docs"
PAGES = {
    "outputs.md": "# Outputs\n\nHow messages leave.\n\n## Order\n\nA delete after an upsert.\n\n"
    "```sh\n# Upserts are no heading here\n```\n",
    "upserts.md": "# Upserts into a database\n\nRows by key.\n",
    "cookbook/cdc.md": "# A table from changes\n\n## Upsert and delete\n\n`upsert_by: [id]`\n",
    "components/outputs/sql_insert.md": "# sql_insert (output)\n\n### `upsert_by`\n\nColumns.\n",
    "changelog.md": "# Changelog\n\n## Upserts\n\nupsert, upserts\n",
}


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    for name, text in PAGES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def names(hits: list[DocsHit]) -> list[str]:
    return [hit.page for hit in hits]


def test_titles_go_before_headings_and_these_before_text(pages: Path) -> None:
    found = search_docs(pages, ["Upsert"])
    assert names(found) == [
        *("upserts", "cookbook/cdc", "components/outputs/sql_insert", "changelog", "outputs"),
    ]
    assert (found[1].heading, found[1].line, found[1].excerpt) == (
        *("Upsert and delete", 3, "upsert_by: [id]"),
    )
    assert (found[0].heading, found[0].title) == ("Upserts into a database",) * 2


def test_all_words_must_occur_in_a_section(pages: Path) -> None:
    assert names(search_docs(pages, ["delete", "upserts"])) == ["cookbook/cdc", "outputs"]
    assert search_docs(pages, ["delete", "nowhere"]) == []
    assert search_docs(pages, ["rows by key"])[0].page == "upserts"
    assert search_docs(pages, ["…"]) == search_docs(pages, []) == []


def test_comments_of_code_are_no_headings(pages: Path) -> None:
    [found] = [hit for hit in search_docs(pages, ["upserts"]) if hit.page == "outputs"]
    assert found.heading == "Order"


def test_a_long_line_is_cut_around_the_word(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\n" + "x " * 200 + "needle" + " y" * 200 + "\n")
    [found] = search_docs(tmp_path, ["needle"])
    assert len(found.excerpt) <= 162 and "needle" in found.excerpt
    assert found.excerpt[0] == found.excerpt[-1] == "…"


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("upsert", "components/outputs/sql_insert"),
        ("top k", "cookbook/running_top_k"),
        ("percentile", "bloblang-methods-arrays"),
        ("exactly once", "components/outputs/kafka"),
        ("dead letter", "kafka-in-depth"),
        ("late window", "event-time-windows"),
        ("late", "troubleshooting"),
        ("why is my message late", "troubleshooting"),
        ("no window", "troubleshooting"),
        ("migrate from benthos", "migrating"),
        ("latency", "load"),
        ("tumbling", "components/buffers/tumbling_window"),
        ("parse csv", "bloblang-methods-parsing"),
    ],
)
def test_what_people_look_for_is_among_the_first(words: str, page: str) -> None:
    assert page in names(search_docs(SHIPPED, words.split()))[:5]


def test_the_end_of_a_word_may_be_another_one(pages: Path) -> None:
    assert names(search_docs(pages, ["deleting"])) == names(search_docs(pages, ["delet"]))
    assert search_docs(pages, ["deleting"])


def test_words_that_are_misspelt_are_corrected(pages: Path) -> None:
    assert suggest_words(pages, ["upsrt", "delete"]) == ["upsert", "delete"]
    assert suggest_words(pages, ["delete", "order"]) == []
    assert suggest_words(pages, ["upsrt", "xyzzy"]) == []


def test_a_heading_with_all_words_goes_before_a_title_with_one(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Windows\n\nNo rain.\n")
    (tmp_path / "b.md").write_text("# Faults\n\n## No window comes out\n\nText.\n")
    assert [hit.page for hit in search_docs(tmp_path, ["no", "window"])] == ["b", "a"]


def test_a_paragraph_is_shown_as_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\nThe first line\nends with a needle.\n\n- an item\n")
    [found] = search_docs(tmp_path, ["needle"])
    assert found.excerpt == "The first line ends with a needle."


def test_a_page_of_the_index_goes_before_others_and_is_found_by_its_summary(
    tmp_path: Path,
) -> None:
    for name, text in (("a.md", "x"), ("b.md", "needle\n\nneedle"), ("c.md", "needle")):
        (tmp_path / name).write_text(f"# T\n\n{text}\n")
    (tmp_path / "index.md").write_text("# I\n\n## S\n\n- [A](a.md): a needle in hay\n")
    assert names(search_docs(tmp_path, ["a", "needle"])) == ["a", "b", "c"]


def test_words_are_marked_in_a_text() -> None:
    assert mark_words("Upserts, and deletes.", ["delete"]) == [
        *(("Upserts, and ", False), ("deletes", True), (".", False)),
    ]
    assert mark_words("none", ["delete"]) == [("none", False)]
    assert mark_words("Deleted rows", ["deleting"]) == [("Deleted", True), (" rows", False)]
