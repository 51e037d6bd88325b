"""The language is Benthos's: the same result, the same error, at the same place.

Each row of data/as_benthos/*.jsonl is a text, the name of a document (documents.json), and what
Benthos 4.76 answers to both: `out`, `deleted`, `error`, or `parse` for a text that it cannot read;
and the metadata after it, by Go type and value, where the mapping changed it. The rows of
`generated` and `layout` were drawn at random. Where Benthos says `expected  or x`, for one thing
that it names twice, the rows have `expected x`. What differs on purpose is listed in
streamer/docs/bloblang-differences.md.
"""

import json
import re
from pathlib import Path

import pytest

from streamer.bloblang import BloblangError, compile_interpolation, compile_mapping, refusal
from streamer.bloblang.runtime.text import go_text, go_type
from streamer.errors import MessageError
from streamer.message import Message
from tests.bloblang.running import execution

DATA = Path(__file__).parent / "data" / "as_benthos"
DOCUMENTS = json.loads((DATA / "documents.json").read_text())
META = {"k": "v", "num": "5"}
_NUMBERS = re.compile(r"^(json\.Number|int64|float64) ")


def rows(name):
    lines = (DATA / f"{name}.jsonl").read_text().splitlines()
    return [
        pytest.param(*json.loads(line), id=f"{name}-{number}")
        for number, line in enumerate(lines, 1)
    ]


def unread(error):
    return {"parse": f"line {error.line} char {error.column}: {error.message}"}


def typed(meta):
    # A number of a document is told from others by its text only.
    return {k: _NUMBERS.sub("number ", f"{go_type(v)} {go_text(v)}") for k, v in meta.items()}


def answer(text, document, *, onto=False):
    batch = [Message(DOCUMENTS[document].encode(), META)]
    try:
        mapping = compile_mapping(text)
        result = (mapping.overlay if onto else mapping.apply)(batch, 0, execution())
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


@pytest.mark.parametrize(
    ("text", "document", "wanted"), rows("mappings") + rows("layout") + rows("generated")
)
def test_a_mapping_does_what_benthos_does(text, document, wanted):
    assert answer(text, document) == wanted


@pytest.mark.parametrize(("text", "document", "wanted"), rows("mutations"))
def test_a_mutation_does_what_benthos_does(text, document, wanted):
    assert answer(text, document, onto=True) == wanted


@pytest.mark.parametrize(("text", "document", "wanted"), rows("interpolations"))
def test_an_interpolated_string_is_what_benthos_makes_of_it(text, document, wanted):
    assert string(text, document) == wanted


@pytest.mark.parametrize("name", ["mappings", "layout", "generated", "mutations"])
def test_what_is_read_is_not_refused_by_the_reader_that_explains_refusals(name):
    for row in rows(name):
        text, _, wanted = row.values
        if "parse" not in wanted:
            assert refusal.mapping_error(text) is None, text
