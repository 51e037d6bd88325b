"""The language is Benthos's: the same result, the same error, at the same place.

Each row of data/as_benthos/*.jsonl is a text, the name of a document (documents.json), and what
Benthos 4.76 answers to both: `out`, `deleted`, `error`, or `parse` for a text that it cannot read;
and the metadata after it, by Go type and value, where the mapping changed it. The rows of
`generated` and `make_layout` were drawn at random. Where Benthos says `expected  or x`, for one
thing that it names twice, the rows have `expected x`. What differs on purpose is listed in
streamer/docs/bloblang-differences.md.
"""

import json
import re
from pathlib import Path

import pytest

from streamer.bloblang import BloblangError, compile_interpolation, compile_mapping, error_parser
from streamer.bloblang.golib.text import go_text, go_type
from streamer.core.errors import MessageError
from streamer.core.message import Message
from tests.bloblang.running import execution

DATA = Path(__file__).parent / "data" / "as_benthos"
DOCUMENTS = json.loads((DATA / "documents.json").read_text())
META = {"k": "v", "num": "5"}
_NUMBERS = re.compile(r"^(json\.Number|int64|float64) ")


MOST = 50
"""Rows of a test: one for each of thousands would take longer than what it looks at."""


def rows(name):
    """Return the rows of a file, with the numbers of their lines."""
    lines = (DATA / f"{name}.jsonl").read_text().splitlines()
    return [(number, *json.loads(line)) for number, line in enumerate(lines, 1)]


def groups(*names):
    return [
        pytest.param(name, found[at : at + MOST], id=f"{name}-{at + 1}")
        for name in names
        for found in [rows(name)]
        for at in range(0, len(found), MOST)
    ]


def differing(name, group, found):
    """Return the rows of a group for which something else is found, by the places of their lines.

    Args:
        name: of the file.
        group: its rows.
        found: makes an answer of a text and a document's name.
    """
    different = {}
    for number, text, document, wanted in group:
        answered = found(text, document)
        if answered != wanted:
            where = f"{name}.jsonl:{number}"
            different[where] = {"text": text, "wanted": wanted, "found": answered}
    return different


def unread(error):
    return {"parse": f"line {error.line} char {error.column}: {error.message}"}


def typed(meta):
    # A number of a document is told from others by its text only.
    return {k: _NUMBERS.sub("number ", f"{go_type(v)} {go_text(v)}") for k, v in meta.items()}


def answer(text, document, *, onto=False):
    batch = [Message(DOCUMENTS[document].encode(), META)]
    try:
        mapping = compile_mapping(text)
        result = (mapping.mutate if onto else mapping.apply)(batch, 0, execution())
    except BloblangError as e:
        return unread(e)
    except MessageError as e:
        return {"error": str(e)}
    if result is None:
        return {"deleted": True}
    # The answers came as JSON, which has no other form for what is no text.
    found = {"out": result.raw.decode(errors="replace")}
    meta = typed(result.meta)
    return found if meta == typed(META) else {**found, "meta": meta}


def string(text, document):
    batch = [Message(DOCUMENTS[document].encode(), META)]
    try:
        return {"out": compile_interpolation(text).text_of(batch, 0, execution())}
    except BloblangError as e:
        return unread(e)
    except MessageError as e:
        return {"error": str(e)}


@pytest.mark.parametrize(("name", "group"), groups("mappings", "layout", "generated"))
def test_a_mapping_does_what_benthos_does(name, group):
    assert differing(name, group, answer) == {}


@pytest.mark.parametrize(("name", "group"), groups("mutations"))
def test_a_mutation_does_what_benthos_does(name, group):
    assert differing(name, group, lambda text, doc: answer(text, doc, onto=True)) == {}


@pytest.mark.parametrize(("name", "group"), groups("interpolations"))
def test_an_interpolated_string_is_what_benthos_makes_of_it(name, group):
    assert differing(name, group, string) == {}


@pytest.mark.parametrize("name", ["mappings", "layout", "generated", "mutations"])
def test_what_is_read_is_not_refused_by_the_reader_that_explains_refusals(name):
    for _, text, _, wanted in rows(name):
        if "parse" not in wanted:
            assert error_parser.find_mapping_error(text) is None, text
