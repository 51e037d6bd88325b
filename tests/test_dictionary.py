"""The words that names in `streamer` are not made of, and what the first line of a docstring is.

The field has a term for nearly everything here. A word that only we use, or that says several
things, hides it: a reader who knows Flink or Kafka Streams must not learn another language first.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "streamer"

INSTEAD: Final = {
    "watermark, closed_until": ("horizon", "horizons"),
    "pre-aggregate, aggregated": ("fold", "folds", "folded", "folding"),
    "spool, write": ("land", "lands", "landed", "landing", "lander"),
    "poll, inspect, query, request": (
        *("look", "looks", "looked", "looking", "glance", "ask", "asks", "asked", "asking"),
    ),
    "metadata, report, message, sender, receiver": (
        *("tell", "tells", "told", "say", "says", "said", "hear", "hears", "heard"),
        *("voice", "voices", "ear", "ears"),
    ),
    "commit, finish, resolve, ended": ("settle", "settles", "settled"),
    "bucket, message store, pack, cache": (
        *("drawer", "drawers", "ledger", "sheet", "sheets", "shelf"),
    ),
    "host, context, middleware, thread pool": (
        *("house", "room", "rooms", "door", "doors", "lane", "lanes"),
    ),
    "a noun for a class, verb and noun for a function": (
        *("wanted", "found", "held", "came", "chosen", "parted", "spoilt"),
    ),
    "of what, and the unit": ("patience",),
}
"""Words that no name has in it, by what stands in their place."""

PHRASES: Final = {
    "release, free, emit, flush": ("let_go", "let_out", "give_back", "give_away", "put_out"),
    "resolve, finish": ("come_to", "comes_to"),
    "batch time, max event time": ("stream_clock",),
}
"""Words that no name has one after the other."""

ALONE: Final = frozenset(
    {
        *("newest", "most", "least", "longest", "shortest", "at_once", "together", "moment"),
        *("over", "is_over", "apart", "aside", "beside", "anew"),
    }
)
"""Names of which no module, class, function or constant consists: they do not say of what."""

_COMPILERS: Final = "constant folding, the term of compilers"
_YAML: Final = "folded text, the term of YAML and of HTTP's headers"
_NOT_FOUND: Final = "not found, the term of Benthos, HTTP and Java"
_STATE: Final = "the name of a field in the state, which stays as it is"
_STATUS: Final = "`held` is a field of a shard's status, and so of the service's API"
EXCEPTIONS: Final[dict[str, str]] = {
    **dict.fromkeys(("fold_constants", "_fold_constants", "_fold_method"), _COMPILERS),
    "_MAX_FOLDED_CHARS": _COMPILERS,
    "fold": "a method of Bloblang, and YAML's folded text",
    "_FOLD": _YAML,
    **dict.fromkeys(("KeyNotFoundError", "_NOT_FOUND", "_FILE_NOT_FOUND"), _NOT_FOUND),
    **dict.fromkeys(("_NOT_FOUND_CLASSES", "_NOT_FOUND_LINE"), _NOT_FOUND),
    "horizon": _STATE,
    **dict.fromkeys(("held", "held_bytes", "held_count"), _STATUS),
}
"""Names with such a word, and the reason."""

_TEXT_OR_COMMENT: Final = re.compile(
    r'"""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|#[^\n]*'
)
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PRONOUNS: Final = r"(?:it|them|they|itself|themselves)"
_LEADING: Final = r"(?:\w+)(?: (?:at|of|to|with|from|up|on|in|for|all|both|out|down|over|by))*"
FAULTS: Final = {
    "see": re.compile(r"See\b"),
    "clause": re.compile(r"(What|Who|Whom|Whose|How|Which|Where|Why|When|Since|If|That)\b"),
    "pronoun": re.compile(rf"(?:{_PRONOUNS}\b|{_LEADING} {_PRONOUNS}\b)", re.I),
    "dictionary": re.compile(
        r"(?i:.*\b(told|said|hears?|heard|horizons?|drawers?|ledger|lanes?|house|lander|landed"
        r"|settled?|let go|lets go|give back|given back|fold(s|ed|ing)?)\b)"
        r"|(Tell|Tells|Say|Says|Look|Looks|Ask|Asks)\b"
    ),
}
"""What the first line of a docstring must not be, by the name of the fault."""


class Name(NamedTuple):
    """A name that is defined in `streamer`.

    Attributes:
        text: the name.
        kind: module, class, function, parameter, attribute, or variable.
        place: the file, and the line.
    """

    text: str
    kind: str
    place: str


def split_words(name: str) -> list[str]:
    """Return the words of a name in snake_case or CamelCase, in small letters."""
    return [word.lower() for word in _WORDS.findall(name)]


@cache
def _sources() -> dict[str, str]:
    return {
        str(path.relative_to(PACKAGE)): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))
    }


def _names_of(node: ast.AST) -> Iterator[tuple[str, str]]:
    match node:
        case ast.ClassDef():
            yield node.name, "class"
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield node.name, "function"
        case ast.arg():
            yield node.arg, "parameter"
        case ast.Attribute(ctx=ast.Store()):
            yield node.attr, "attribute"
        case ast.Name(ctx=ast.Store()):
            yield node.id, "variable"


def _definitions(place: str, text: str) -> Iterator[Name]:
    """Give the names that a file defines; none when it surely has none of interest.

    To parse all files takes many seconds. A file is parsed when a name in it, defined here or not,
    has a fault.
    """
    for part in Path(place).with_suffix("").parts:
        yield Name(part, "module", place)
    names = set(_IDENTIFIER.findall(_TEXT_OR_COMMENT.sub("", text)))
    if any(find_fault(Name(name, "class", place)) for name in names):
        for node in ast.walk(ast.parse(text, place)):
            for name, kind in _names_of(node):
                yield Name(name, kind, f"{place}:{getattr(node, 'lineno', 0)}")


def _first_lines(place: str, text: str) -> Iterator[tuple[str, str]]:
    """Give the first line of each docstring, and its place."""
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(('"""', 'r"""')) and (number == 1 or before.endswith(":")):
            yield line.strip().lstrip("r").strip('"'), f"{place}:{number}"
        if line.strip():
            before = line.rstrip()


_INSTEAD_OF: Final = {word: instead for instead, words in INSTEAD.items() for word in words}


@cache
def _word_fault(text: str) -> str | None:
    """Return what is wrong with the words of a name."""
    words = split_words(text)
    for word in words:
        if word in _INSTEAD_OF:
            return f"{word!r}: {_INSTEAD_OF[word]}"
    joined = f"_{'_'.join(words)}_"
    for instead, phrases in PHRASES.items():
        for phrase in phrases:
            if f"_{phrase}_" in joined:
                return f"{phrase!r}: {instead}"
    return None


def find_fault(name: Name) -> str | None:
    """Return what is wrong with a name, in words; None when nothing is."""
    if name.text in EXCEPTIONS:
        return None
    if fault := _word_fault(name.text):
        return fault
    is_global = name.kind in ("module", "class", "function") or name.text.strip("_").isupper()
    if is_global and name.text.strip("_").lower() in ALONE:
        return "does not say of what: add a noun, and the unit"
    return None


def test_no_name_has_a_word_that_is_not_in_the_dictionary() -> None:
    wrong = {
        f"{name.place}: {name.kind} {name.text}: {why}"
        for place, text in _sources().items()
        for name in _definitions(place, text)
        if (why := find_fault(name))
    }
    assert sorted(wrong) == []


def test_every_exception_has_a_reason_and_is_needed() -> None:
    assert all(EXCEPTIONS.values())
    text = "\n".join(_TEXT_OR_COMMENT.sub("", text) for text in _sources().values())
    assert EXCEPTIONS.keys() - set(_IDENTIFIER.findall(text)) == set()


@pytest.mark.parametrize(
    ("name", "kind", "is_wrong"),
    [
        ("HorizonMark", "class", True),
        ("_foldWindows", "function", True),
        ("let_go", "function", True),
        ("LetGoQueue", "class", True),
        ("_MOST", "variable", True),
        ("newest", "function", True),
        ("newest", "variable", False),
        ("newest_batch", "function", False),
        ("manifold", "variable", False),
        ("early", "variable", False),
    ],
)
def test_words_are_found_in_names_and_not_in_parts_of_words(
    name: str, kind: str, is_wrong: bool
) -> None:
    assert (find_fault(Name(name, kind, "here")) is not None) == is_wrong


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("See `Shard`.", "see"),
        ("What a shard knows.", "clause"),
        ("Do it.", "pronoun"),
        ("Look at them.", "pronoun"),
        ("Return it as JSON.", "pronoun"),
        ("Tell whether a window is due.", "dictionary"),
        ("Return the horizon of a shard.", "dictionary"),
        ("Return a pack with the messages in it.", ""),
        ("The state of a shard, and the packs of it.", ""),
        ("Whether a window is due.", ""),
    ],
)
def test_faults_of_first_lines_are_found(line: str, fault: str) -> None:
    assert next((name for name, form in FAULTS.items() if form.match(line)), "") == fault


def test_first_lines_of_docstrings_begin_with_a_verb_or_a_noun_and_name_what_is_meant() -> None:
    lines = [one for place, text in _sources().items() for one in _first_lines(place, text)]
    assert len(lines) > 6_000
    wrong = [
        f"{place}: {fault}: {line}"
        for line, place in lines
        for fault, form in FAULTS.items()
        if form.match(line)
    ]
    assert wrong == []
