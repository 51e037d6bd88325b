"""What a message brings into the path of a URL does not lead out of it."""

from __future__ import annotations

import pytest

from streamer.bloblang import compile_interpolation
from streamer.connectors.http_client.url_text import UrlTemplate
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Message

TENANT = 'http://h:1/p/${! json("v") }'


def url(text: str, value: str) -> str:
    return UrlTemplate(compile_interpolation(text)).text_of(
        [Message.from_value({"v": value})], 0, Execution(lambda: 0)
    )


@pytest.mark.parametrize(
    "value",
    [
        *("..", ".", "../../pwned", "a/../../b", "/../x", "x/..", "../x?q", "..#f", "a/./b"),
        *("%2e%2e/x", ".%2E/x", "..\\x", "..%2fx", "..%5Cx"),
    ],
)
@pytest.mark.parametrize("text", [TENANT, TENANT + "/orders", TENANT + "?a=b"])
def test_segments_that_lead_elsewhere_are_refused(text: str, value: str) -> None:
    with pytest.raises(MessageError, match="a segment '.' or '..' that the message has brought"):
        url(text, value)


def test_a_segment_is_not_put_together_of_two() -> None:
    with pytest.raises(MessageError):
        url('http://h/p/.${! json("v") }/x', ".")
    with pytest.raises(MessageError):
        url('http://h/p/${! json("v") }${! json("v") }/x', ".")


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        (TENANT, "a/b.c/..d/e..", "http://h:1/p/a/b.c/..d/e.."),
        (TENANT, "...", "http://h:1/p/..."),
        (TENANT, "a?x=../..", "http://h:1/p/a?x=../.."),
        ('http://h/p?x=${! json("v") }', "../../y", "http://h/p?x=../../y"),
        ('http://h/p/../${! json("v") }', "y", "http://h/p/../y"),
        ('${! json("v") }', "http://h/a/../b", "http://h/a/../b"),
        ('${! "http://h/p/" + json("v") }', "../b", "http://h/p/../b"),
        ("http://h/a/../b", "", "http://h/a/../b"),
        ('http://${! json("v") }/x', "1.2.3.4:80", "http://1.2.3.4:80/x"),
        ('${! json("v") }/x', "http://h.e.x", "http://h.e.x/x"),
    ],
)
def test_all_else_is_taken_as_it_is(text: str, value: str, found: str) -> None:
    assert url(text, value) == found


def test_the_error_shows_no_password() -> None:
    with pytest.raises(MessageError) as caught:
        url('http://me:hunter2@h/${! json("v") }', "..")
    assert "hunter2" not in str(caught.value)
