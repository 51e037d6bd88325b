"""Interpolated strings."""

import pytest

from streamer.bloblang import BloblangError, compile_interpolation
from streamer.core.errors import MessageError
from streamer.core.message import Message
from tests.bloblang.running import execution

DOCUMENT = b'{"a":5,"b":"x","d":[1,2],"e":1.50}'


def text(template, raw=DOCUMENT):
    return compile_interpolation(template).text_of([Message(raw, {"k": "v"})], 0, execution())


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("plain", "plain"),
        ("", ""),
        ('a ${! json("a") } b', "a 5 b"),
        ("${!this.b}", "x"),
        ("${! this.e }", "1.50"),
        ("${! this.d }", "[1,2]"),
        ("${! this.nope }", "null"),
        ("${! deleted() }", "null"),
        ('${! meta("k") }-${!batch_index()}', "v-0"),
        ("${{!x}} $ {!x} $5", "${!x} $ {!x} $5"),
        ('${! "}" }', "}"),
        ('${! {"a":"}"} }', '{"a":"}"}'),
        ("$$${!1}$", "$$1$"),
        ("  ${! true }\n", "  true\n"),
    ],
)
def test_a_template_is_filled(template, result):
    assert text(template) == result


def test_a_template_without_queries_is_known_at_once():
    assert compile_interpolation("a ${{!b}} $c").static == "a ${!b} $c"
    assert compile_interpolation("${!1}").static is None


def test_bytes_come_through_as_they_are():
    batch = [Message(b"\xff")]
    assert compile_interpolation("<${!content()}>").bytes_of(batch, 0, execution()) == b"<\xff>"


def test_a_template_of_the_document_alone_is_a_plain_function():
    assert compile_interpolation('${! json("b") }').doc_fn({"b": "x"}) == "x"
    assert compile_interpolation('<${! this.a }>${! json("b") }').doc_fn({"a": 1.0, "b": None}) == (
        "<1>null"
    )
    assert compile_interpolation("${! @k }").doc_fn is None


def test_a_query_that_fails_says_so_without_a_line():
    with pytest.raises(MessageError, match="^expected string value, got number from field"):
        text("${! this.a.uppercase() }")
    with pytest.raises(MessageError, match="context was undefined, unable to reference `a`"):
        text("${! this.a }", b"no")


@pytest.mark.parametrize(
    ("template", "column", "message"),
    [
        ("a ${! } b", 7, "required: expected query"),
        ("x ${! this.a", 13, "required: expected end of expression"),
        ("${! nope() }", 11, "unrecognised function 'nope'"),
    ],
)
def test_a_template_that_cannot_be_read_says_where(template, column, message):
    with pytest.raises(BloblangError) as caught:
        compile_interpolation(template)
    assert (caught.value.line, caught.value.column) == (1, column)
    assert caught.value.message == message
