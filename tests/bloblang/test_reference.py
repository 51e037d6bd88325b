"""The reference pages are those of the declarations."""

import re

import pytest

from streamer.bloblang.catalog import FUNCTIONS, METHODS
from streamer.bloblang.reference import (
    KINDS,
    describe_declarations,
    format_example,
    format_signature,
    render_pages,
)
from streamer.tools.docs_index import strip_docs_footer

BOTH = [("function", FUNCTIONS), ("method", METHODS)]


@pytest.mark.parametrize("sort", KINDS)
def test_the_pages_are_up_to_date(sort):
    for path, text in render_pages(sort).items():
        written = strip_docs_footer(path.read_text(encoding="utf-8"))
        assert written == text, f"{path.name} is stale: run `python -m streamer.bloblang.reference`"


def test_each_category_of_methods_has_a_page_and_deprecated_ones_are_last():
    names = [path.stem for path in render_pages("method")]
    assert names[0] == "bloblang-methods"
    assert names[-1] == "bloblang-methods-deprecated"
    assert len(names) == 1 + len({one.category for one in METHODS.values()})


@pytest.mark.parametrize(("sort", "declared"), BOTH)
def test_each_is_on_a_page_once_with_all_its_examples(sort, declared):
    text = "".join(render_pages(sort).values())
    assert sorted(re.findall(r"^### (.*)$", text, re.M)) == sorted(declared)
    for one in declared.values():
        assert f"`{format_signature(one, sort)}`" in text
        for example in one.examples:
            assert format_example(example.mapping, example.input, example.output) in text


@pytest.mark.parametrize(("sort", "declared"), BOTH)
def test_no_example_ends_its_block(sort, declared):
    text = "".join(render_pages(sort).values())
    assert text.count("```") == 2 * sum(len(one.examples) for one in declared.values())


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
