"""The words that names in `streamer` are not made of, and what the first line of a docstring is.

The field has a term for nearly everything here. A word that only we use, or that says several
things, hides it: a reader who knows Flink or Kafka Streams must not learn another language first.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "streamer"

INSTEAD: Final = {
    "watermark, closed_until": ("horizon", "horizons"),
    "pre-aggregate, aggregated": ("fold", "folds", "folded", "folding", "folder"),
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
EXCEPTIONS: Final[dict[str, str]] = {}
"""Names with such a word, and the reason."""

DOCSTRING_LIMITS: Final[dict[str, int]] = {}
"""First lines of docstrings that are left from before, by fault: the number may only fall."""

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
"""What the first line of a public docstring must not be, by the name of the fault."""


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


class Docstring(NamedTuple):
    """The first line of a public docstring, and where it stands."""

    line: str
    place: str


def split_words(name: str) -> list[str]:
    """Return the words of a name in snake_case or CamelCase, in small letters."""
    return [word.lower() for word in _WORDS.findall(name)]


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


def _docstrings_of(node: ast.AST, place: str) -> Iterator[Docstring]:
    """Give those of a module or class, and of what is public in it."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        text = ast.get_docstring(node)
        if text:
            yield Docstring(text.partition("\n")[0], f"{place}:{getattr(node, 'lineno', 1)}")
    if isinstance(node, ast.Module | ast.ClassDef):
        for child in node.body:
            name = getattr(child, "name", "_")
            if not name.startswith("_") or name.startswith("__"):
                yield from _docstrings_of(child, place)


@cache
def _definitions() -> tuple[tuple[Name, ...], tuple[Docstring, ...]]:
    names, docstrings = list[Name](), list[Docstring]()
    for path in sorted(PACKAGE.rglob("*.py")):
        place = str(path.relative_to(PACKAGE))
        names += [Name(part, "module", place) for part in Path(place).with_suffix("").parts]
        tree = ast.parse(path.read_text(), place)
        docstrings += _docstrings_of(tree, place)
        for node in ast.walk(tree):
            for text, kind in _names_of(node):
                names.append(Name(text, kind, f"{place}:{getattr(node, 'lineno', 0)}"))
    return tuple(names), tuple(docstrings)


_INSTEAD_OF: Final = {word: instead for instead, words in INSTEAD.items() for word in words}


def find_fault(name: Name) -> str | None:
    """Return what is wrong with a name, in words; None when nothing is."""
    if name.text in EXCEPTIONS:
        return None
    words = split_words(name.text)
    for word in words:
        if word in _INSTEAD_OF:
            return f"{word!r}: {_INSTEAD_OF[word]}"
    joined = f"_{'_'.join(words)}_"
    for instead, phrases in PHRASES.items():
        for phrase in phrases:
            if f"_{phrase}_" in joined:
                return f"{phrase!r}: {instead}"
    is_global = name.kind in ("module", "class", "function") or name.text.strip("_").isupper()
    if is_global and "_".join(words) in ALONE:
        return "does not say of what: add a noun, and the unit"
    return None


def test_no_name_has_a_word_that_is_not_in_the_dictionary() -> None:
    names, _ = _definitions()
    assert len(names) > 20_000
    wrong = [f"{n.place}: {n.kind} {n.text}: {why}" for n in names if (why := find_fault(n))]
    assert sorted(set(wrong)) == []


def test_every_exception_has_a_reason_and_is_needed() -> None:
    names, _ = _definitions()
    assert all(EXCEPTIONS.values())
    assert EXCEPTIONS.keys() - {name.text for name in names} == set()


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


def test_first_lines_of_docstrings_have_no_more_faults_than_before() -> None:
    _, docstrings = _definitions()
    found = [
        (fault, f"{one.place}: {one.line}")
        for one in docstrings
        for fault, form in FAULTS.items()
        if form.match(one.line)
    ]
    counts = Counter(fault for fault, _ in found)
    too_many = {fault for fault in FAULTS if counts[fault] > DOCSTRING_LIMITS.get(fault, 0)}
    listed = [line for fault, line in found if fault in too_many]
    assert not too_many, (
        f"{dict(counts)}, at most {DOCSTRING_LIMITS}: begin with a verb or a noun, and name what "
        f"is meant; lower the limit when fewer are left\n" + "\n".join(listed)
    )
