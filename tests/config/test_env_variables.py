from __future__ import annotations

import time

import pytest

from streamer.config.env_variables import replace_variables
from streamer.config.findings import Findings
from streamer.config.source_map import Source

ENV = {"A": "x", "EMPTY": "", "LINES": "1\n2", "B64": "aGk=", "a.b": "dotted", "ESC": "${{A}}"}


def replaced(text: str) -> tuple[str, list[str]]:
    source, findings = Source("f", text), Findings()
    replace_variables(source, ENV, findings)
    return source.text, [str(lint) for lint in findings.to_sorted()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${A}", "x"),
        ("-${A}-${A}-", "-x-x-"),
        ("${A:y}", "x"),
        ("${NONE:y}", "y"),
        ("${NONE:}", ""),
        ("${EMPTY}", ""),
        ("${EMPTY:y}", "y"),
        ("${NONE:http://h:1/p}", "http://h:1/p"),
        ("${NONE:${A}}", "${A}"),
        ("${LINES}", "1\\n2"),
        ("${NONE:1\n2}", "1\\n2"),
        ("${B64|base64decode}", "hi"),
        ("${NONE:aGk=|base64decode}", "hi"),
        ("${a.b}", "dotted"),
        ("${{A}}", "${A}"),
        ("${{A:y}}", "${A:y}"),
        ("${ESC}", "${A}"),
        ("${! json() }", "${! json() }"),
        ("${!A}", "${!A}"),
        ("$A ${-} ${", "$A ${-} ${"),
    ],
)
def test_what_a_variable_becomes(text: str, expected: str) -> None:
    assert replaced(text) == (expected, [])


def test_a_variable_without_value_and_default_is_reported_at_its_place() -> None:
    assert replaced("a: 1\nb: x ${NONE} ${A}") == (
        "a: 1\nb: x  x",
        [
            "f(2,6) required environment variables were not set: [NONE]; "
            "set it, or write ${NONE:some default}"
        ],
    )


def test_a_comment_line_may_name_any_variable() -> None:
    assert replaced("  # set ${NONE}\na: 1 # ${ALSO_NONE}")[1] == [
        "f(2,8) required environment variables were not set: [ALSO_NONE]; "
        "set it, or write ${ALSO_NONE:some default}"
    ]


def test_a_bad_function_or_value_is_reported_without_the_value() -> None:
    assert replaced("${A|rot13}${A|base64decode}")[1] == [
        "f(1,1) variable A: there is no function 'rot13'; expected base64decode",
        "f(1,11) variable A: its value is not the base64 of UTF-8 text",
    ]


@pytest.mark.parametrize("piece", ["${A:", "${{A:", "${", "${A", "${A:${", "${{A:${A}"])
@pytest.mark.parametrize("end", ["", "}", "}}", "} }}"])
def test_unclosed_variables_take_no_more_than_linear_time(piece: str, end: str) -> None:
    started = time.process_time()
    replaced(piece * 9_000 + end)
    replaced(piece * 100_000 + end)
    assert time.process_time() - started < 5


def test_places_are_those_of_the_text_before() -> None:
    text = "k: ${NONE:a\nb}c\r\nl: ${{A}}d ${A}e"
    source = Source("f", text)
    replace_variables(source, ENV, Findings())
    assert source.text == "k: a\\nbc\r\nl: ${A}d xe"
    for mark, place in (("c", (2, 3)), ("l", (3, 1)), ("d", (3, 10)), ("e", (3, 16))):
        assert source.locate(source.text.index(mark)) == place
    assert source.locate(len(source.text)) == (3, 17)
