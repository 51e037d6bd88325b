"""Search of the documentation by words: pages, recipes, components, functions and methods.

All of them are Markdown below one directory. What is found is a section: its heading counts more
than its text, and the page's title more than the heading of a section. A page of the index counts
more than a recipe or a component.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from streamer.tools.docs_index import INDEX_PAGE, read_docs_index, strip_docs_footer

_HEADING: Final = re.compile(r"(#{1,4}) +(.*)")
_FENCE: Final = re.compile(r"\s*(```|~~~)")
_TOKEN: Final = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
_MARKUP: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)|[*`]")
_TITLE_WEIGHT: Final = 12.0
_HEADING_WEIGHT: Final = 8.0
_NAME_WEIGHT: Final = 6.0
_SUMMARY_WEIGHT: Final = 6.0
_GUIDE_WEIGHT: Final = 4.0
_WHOLE_HEADING_WEIGHT: Final = 20.0
_WHOLE_WORD: Final = 1.5
_WORD_BEGIN: Final = 0.6
_BEGINNING_WEIGHT: Final = 3.0
_MAX_EXCERPT_CHARS: Final = 160
_MIN_CUT_CHARS: Final = 40
_MIN_BEGIN_CHARS: Final = 3
_MIN_SENTENCE_WORDS: Final = 6
_COMMON_WORDS: Final = frozenset(
    (
        *("a", "an", "and", "are", "be", "by", "can", "do", "does", "for", "from", "how", "i"),
        *("in", "into", "is", "it", "its", "my", "of", "on", "or", "the", "to", "what", "when"),
        *("where", "which", "why", "with"),
    )
)
# Where nearly every word occurs somewhere.
_LIST_PAGES: Final = frozenset({"changelog", "components/README", "components/at-a-glance"})


@dataclass(frozen=True, slots=True)
class DocsHit:
    """A section in which all words occur.

    Attributes:
        page: the page's path below the directory, without `.md`: `cookbook/top_k`.
        line: where the section begins, from 1.
        title: the page's title.
        heading: the section's; that of the page where it is its beginning.
        excerpt: the line that has most of the words, shortened.
        score: how well it fits.
    """

    page: str
    line: int
    title: str
    heading: str
    excerpt: str
    score: float


@dataclass(frozen=True, slots=True)
class _Section:
    line: int
    heading: str
    lines: Sequence[str]


def search_docs(directory: Path, words: Sequence[str]) -> list[DocsHit]:
    """Return the best section of each page in which all words occur, the best page first.

    Args:
        directory: the pages, and directories of pages.
        words: what is looked for, in small or capital letters; a word also stands for longer ones
            that begin with it, and a plural for its singular.
    """
    stems = _find_stems(words)
    if not stems:
        return []
    # What ends in -ing or -ed is looked for without that only where it does not occur as it is.
    return _find_sections(directory, stems) or _find_sections(directory, [*map(_cut_end, stems)])


def _find_stems(words: Sequence[str]) -> list[str]:
    """Return the stems of words; without those of a question where others remain."""
    tokens = [token for word in words for token in _TOKEN.findall(word.lower())]
    return [_stem(token) for token in tokens if token not in _COMMON_WORDS] or [*map(_stem, tokens)]


def _find_sections(directory: Path, stems: Sequence[str]) -> list[DocsHit]:
    hits: list[DocsHit] = []
    summaries = _read_summaries(directory)
    texts: dict[str, str] = {}
    counts = dict.fromkeys(stems, 0)
    paths = sorted(directory.rglob("*.md"))
    for path in paths:
        text = strip_docs_footer(path.read_text(encoding="utf-8"))
        page = path.relative_to(directory).with_suffix("").as_posix()
        small = f"{text}\n{summaries.get(page, '')}".lower()
        present = [stem for stem in counts if stem.removesuffix("y") in small]
        counts.update({stem: counts[stem] + 1 for stem in present})
        if page != INDEX_PAGE and len(present) == len(counts):
            texts[page] = text
    # A word that nearly every page has says little.
    rarity = {stem: math.log2(1 + len(paths) / max(1, count)) for stem, count in counts.items()}
    weights = {stem: one / max(rarity.values()) for stem, one in rarity.items()}
    for page, text in texts.items():
        hits += _best_section(page, text, weights, summaries.get(page))
    return sorted(hits, key=lambda hit: (-hit.score, hit.page))


def _read_summaries(directory: Path) -> dict[str, str]:
    """Return the line that the index has for each of its pages, by page."""
    if not (directory / f"{INDEX_PAGE}.md").exists():
        return {}
    sections = read_docs_index(directory)
    return {entry.name: entry.summary for section in sections for entry in section.entries}


def mark_words(text: str, words: Sequence[str]) -> list[tuple[str, bool]]:
    """Cut a text into the words that were looked for, and the parts between them.

    Args:
        text: an excerpt or a heading.
        words: as `search_docs` takes them.

    Returns:
        All parts in order, and whether each is such a word.
    """
    stems = _find_stems(words)
    stems += [_cut_end(stem) for stem in stems]
    parts: list[tuple[str, bool]] = []
    begin = 0
    for token in _TOKEN.finditer(text.lower()):
        if any(_match(stem, token[0]) for stem in stems):
            parts += [(text[begin : token.start()], False), (text[slice(*token.span())], True)]
            begin = token.end()
    return [part for part in (*parts, (text[begin:], False)) if part[0]]


def suggest_words(directory: Path, words: Sequence[str]) -> list[str]:
    """Return the words of the pages that are closest to those of which no page has any.

    Args:
        directory: the pages.
        words: what was looked for in vain; a word that the pages have is left as it is.

    Returns:
        As many words; nothing where there is no close one for a word, or all occur.
    """
    known: set[str] = set()
    for path in directory.rglob("*.md"):
        known.update(_TOKEN.findall(path.read_text(encoding="utf-8").lower()))
    stems = {_stem(token) for token in known}
    made: list[str] = []
    for word in words:
        small = word.lower()
        if _stem(small) in stems or any(token.startswith(_stem(small)) for token in known):
            made.append(word)
            continue
        close = difflib.get_close_matches(small, known, n=1, cutoff=0.8)
        if not close:
            return []
        made += close
    return made if made != [*words] else []


def _best_section(
    page: str, text: str, weights: Mapping[str, float], summary: str | None
) -> Iterator[DocsHit]:
    sections = [*_cut_sections(text)]
    title = sections[0].heading if sections else page
    if summary is not None and sections:
        sections[0] = replace(sections[0], lines=[summary, "", *sections[0].lines])
    best: DocsHit | None = None
    for section in sections:
        scores = [weights[stem] * _score_word(stem, page, title, section) for stem in weights]
        if not all(scores):
            continue
        if len(weights) > 1 and all(_match(stem, section.heading) > 1 for stem in weights):
            scores.append(_WHOLE_HEADING_WEIGHT)
        if summary is not None:
            fit = sum(weight * _match(stem, summary) for stem, weight in weights.items())
            scores.append(_GUIDE_WEIGHT + _SUMMARY_WEIGHT * fit / len(weights))
        score = sum(scores) * (0.3 if page in _LIST_PAGES else 1.0)
        if best is None or score > best.score:
            excerpt = _find_excerpt(section, [*weights])
            best = DocsHit(page, section.line, title, section.heading, excerpt, score)
    if best is not None:
        yield best


def _cut_sections(text: str) -> Iterator[_Section]:
    """Cut a page at its headings, but not at comments of code."""
    line, heading, lines = 1, "", list[str]()
    is_code = False
    for number, one in enumerate(text.splitlines(), 1):
        if _FENCE.match(one):
            is_code = not is_code
        match = None if is_code else _HEADING.fullmatch(one)
        if match is None:
            lines.append(one)
            continue
        if heading or any(map(str.strip, lines)):
            yield _Section(line, heading, lines)
        line, heading, lines = number, _MARKUP.sub(r"\1", match[2]), []
    yield _Section(line, heading, lines)


def _score_word(stem: str, page: str, title: str, section: _Section) -> float:
    """Return how well one word fits a section; 0 where it does not occur."""
    score = _TITLE_WEIGHT * _match(stem, title) + _NAME_WEIGHT * _match(
        stem, page.rsplit("/", 1)[-1]
    )
    if section.heading != title:
        score += _HEADING_WEIGHT * _match(stem, section.heading)
    elif score:
        score += _BEGINNING_WEIGHT
    count = sum(_match(stem, line) > 0 for line in section.lines)
    return score + math.log2(1 + count)


def _match(stem: str, text: str) -> float:
    """Return whether a text has a word that begins so; more where it is the whole word."""
    best = 0.0
    for token in _TOKEN.findall(text.lower()):
        if _stem(token) == stem:
            return _WHOLE_WORD
        if len(stem) >= _MIN_BEGIN_CHARS and (token.startswith(stem) or f"_{stem}" in token):
            best = _WORD_BEGIN
    return best


def _stem(token: str) -> str:
    """Return a word without the end of a plural."""
    if len(token) > 4 and token.endswith("ies"):
        return token[:-3] + "y"
    return token[:-1] if len(token) > 3 and token.endswith("s") and token[-2] != "s" else token


def _cut_end(stem: str) -> str:
    for end in ("ing", "ed"):
        if stem.endswith(end) and len(stem) - len(end) >= _MIN_BEGIN_CHARS:
            return stem.removesuffix(end)
    return stem


def _join_paragraphs(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Return paragraphs and items of lists as one line each, and whether a line is prose."""
    paragraph: list[str] = []
    is_code = False
    for line in lines:
        if _FENCE.match(line):
            is_code = not is_code
        is_own = is_code or _FENCE.match(line) or not line.strip() or line.lstrip()[0] in "|-*"
        if is_own and paragraph:
            yield " ".join(paragraph), True
            paragraph = []
        if not is_own or (not is_code and line.lstrip().startswith(("- ", "* "))):
            paragraph.append(line.strip())
        elif not _FENCE.match(line):
            yield line, not is_code
    if paragraph:
        yield " ".join(paragraph), True


def _find_excerpt(section: _Section, stems: Sequence[str]) -> str:
    """Return the line of a section with most of the words, around the first of them."""

    def rank(entry: tuple[str, bool]) -> tuple[float, bool]:
        line, is_prose = entry
        # A sentence says more than a line of code.
        is_sentence = is_prose and len(line.split()) >= _MIN_SENTENCE_WORDS
        return sum(_match(stem, line) for stem in stems), is_sentence

    line, _ = max(_join_paragraphs(section.lines), key=rank, default=("", False))
    text = " ".join(_MARKUP.sub(r"\1", line).strip("|# ").replace("|", "·").split())
    if len(text) <= _MAX_EXCERPT_CHARS:
        return text
    places = [place for stem in stems if (place := text.lower().find(stem)) >= 0]
    begin = max(0, min(places, default=0) - 40)
    begin = 0 if begin < _MIN_CUT_CHARS else begin
    begin = 0 if not begin else text.find(" ", begin) + 1
    cut = text[begin : begin + _MAX_EXCERPT_CHARS]
    return f"{'…' if begin else ''}{cut}{'…' if begin + len(cut) < len(text) else ''}"
