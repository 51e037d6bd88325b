"""The reference pages are those of the declarations."""

import re

import pytest

from streamer.bloblang.catalog import FUNCTIONS, METHODS
from streamer.bloblang.reference import (
    PAGES,
    describe_declarations,
    format_example,
    format_signature,
    render_page,
)
from streamer.tools.docs_index import strip_docs_footer

BOTH = [("function", FUNCTIONS), ("method", METHODS)]


@pytest.mark.parametrize("sort", list(PAGES))
def test_the_page_is_up_to_date(sort):
    written = PAGES[sort].read_text(encoding="utf-8")
    text = strip_docs_footer(written)
    assert text == render_page(sort), "stale: run `python -m streamer.bloblang.reference`"


@pytest.mark.parametrize(("sort", "declared"), BOTH)
def test_each_is_on_the_page_once_with_all_its_examples(sort, declared):
    text = render_page(sort)
    assert sorted(re.findall(r"^### (.*)$", text, re.M)) == sorted(declared)
    for one in declared.values():
        assert f"`{format_signature(one, sort)}`" in text
        for example in one.examples:
            assert format_example(example.mapping, example.input, example.output) in text


@pytest.mark.parametrize(("sort", "declared"), BOTH)
def test_no_example_ends_its_block(sort, declared):
    assert render_page(sort).count("```") == 2 * sum(len(one.examples) for one in declared.values())


def test_examples_show_what_goes_in_and_what_comes_out():
    assert (
        format_example("root = this", "1", "[\n1]")
        == "root = this\n\n# In:  1\n# Out: [\n#      1]"
    )


def test_names_choose():
    assert [one["name"] for one in describe_declarations("method", ["trim", "join"])] == [
        "join",
        "trim",
    ]
