"""Style of the documentation: words that it does not use, and sentences that are too long.

`python -m tests.docs.style` lists all findings, and `--write` writes the pages that have any into
`style_debt.json`: a page may have as many findings as it lists there, and others none.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "streamer" / "docs"
DEBT: Final = Path(__file__).with_name("style_debt.json")
MAX_WORDS: Final = 30

_WORDS: Final = {
    r"horizons?": "watermark",
    r"(?:un)?fold(?:s|ed|ing)?": "pre-aggregate",
    r"(?:is|are|be|was|were) told": "receives, is notified",
    r"anew": "again, from the beginning",
    r"nobody": "no one; or name the reader",
    r"let(?:s|ting)? (?:\w+ ){0,3}(?:out|go)": "emit, flush, release",
    r"giv(?:e|es|en|ing) (?:away|back)": "release, return",
    r"of late|for looks": "name what is meant",
    r"com(?:e|es|ing) to (?:this|that|the same)": "results in",
    r"(?<!.)ones? (?:that|who)": "name the thing",
    r"for sure|by these": "leave it out",
}
_CLAUSES: Final = re.compile(
    r"(?:^|(?<=[.;:!?] ))(?:What|Who|Whoever|Whatever|Whichever|what|who|whoever|whatever)\b[^?]*?"
    r"(?=[.;:!](?: |$)|$)"
)
_PATTERNS: Final = {re.compile(rf"\b(?:{word})\b", re.I): word for word in _WORDS}
_FENCE: Final = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.M | re.S)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.S)
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])(?:\s+)(?=[A-Z\"`(*])")


class Finding(NamedTuple):
    """A fault of style.

    Attributes:
        page: the page's name.
        kind: `word`, `clause` or `length`.
        text: the words, or the sentence.
        advice: the words to use instead, or the limit.
    """

    page: str
    kind: str
    text: str
    advice: str


def list_pages() -> list[Path]:
    """Return the pages that are written by hand; the changelog has texts of earlier versions."""
    generated = {"api", "api-console", "bloblang-functions", "cookbook", "changelog"}
    return [
        ROOT / "README.md",
        *(
            path
            for path in sorted(DOCS.glob("*.md"))
            if path.stem not in generated and not path.stem.startswith("bloblang-methods")
        ),
    ]


def check_page(path: Path) -> Iterator[Finding]:
    """Return the findings of a page."""
    for sentence in list_sentences(path.read_text()):
        for pattern, word in _PATTERNS.items():
            if match := pattern.search(sentence):
                yield Finding(path.stem, "word", match[0], f"{_WORDS[word]}: {sentence}")
        if match := _CLAUSES.search(sentence):
            advice = f"begin with the subject: {sentence}"
            yield Finding(path.stem, "clause", match[0].split()[0], advice)
        count = len(sentence.split())
        if count > MAX_WORDS:
            yield Finding(path.stem, "length", f"{count} words", sentence)


def list_sentences(text: str) -> Iterator[str]:
    """Return the sentences of a page's paragraphs, items and cells, without code and links."""
    text = _COMMENT.sub("", _FENCE.sub("", text))
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|] ?|\d+\. ))", text):
        block = block.strip()
        cells = block.strip("|").split("|") if block.startswith("|") else [block]
        for cell in cells:
            plain = _LINK.sub(r"\1", re.sub(r"^(?:[-*] |\d+\. |#+ )", "", cell.strip()))
            plain = " ".join(re.sub(r"`[^`]*`", "CODE", plain).split())
            for part in plain.split(" · "):
                yield from filter(None, _SENTENCE_END.split(part))


def count_findings() -> dict[str, int]:
    """Return how many findings each page has, without pages that have none."""
    counts = {path.stem: len([*check_page(path)]) for path in list_pages()}
    return {page: count for page, count in counts.items() if count}


def main() -> None:
    """List the findings, or write how many there are."""
    if "--write" in sys.argv:
        DEBT.write_text(json.dumps(count_findings(), indent=2) + "\n")
        return
    for path in list_pages():
        if sys.argv[1:] and path.stem not in sys.argv[1:]:
            continue
        for finding in check_page(path):
            print(f"{finding.page}: {finding.kind} {finding.text!r}: {finding.advice}")


if __name__ == "__main__":
    main()
