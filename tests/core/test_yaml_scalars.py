"""Scalars as Go's yaml.v3 (3.0.1) resolves them; the table was read from its resolver."""

from __future__ import annotations

import math
from typing import Any

import pytest

from streamer.core.yaml_scalars import parse_bool, resolve_scalar

INT = "tag:yaml.org,2002:int"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("Null", None),
        ("nULL", "nULL"),
        ("true", True),
        ("TRUE", True),
        ("tRue", "tRue"),
        ("yes", "yes"),
        ("on", "on"),
        ("n", "n"),
        ("0", 0),
        ("-0", 0),
        ("+12", 12),
        ("1_000", 1000),
        ("0x_0A_74_AE", 685230),
        ("0XfF", 255),
        ("0b1010", 10),
        ("-0b101010", -42),
        ("0o14", 12),
        ("014", 12),
        ("-0o2472256", -685230),
        ("08", 8.0),
        ("9223372036854775808", 2**63),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 18446744073709551616.0),
        ("+9223372036854775808", 9223372036854775808.0),
        ("0xFFFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFFFF"),
        ("1e3", 1000.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5", -0.5),
        (".", "."),
        (".e1", ".e1"),
        ("685.230_15e+03", 685230.15),
        ("1e999", "1e999"),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("+.inf", math.inf),
        ("-.iNF", "-.iNF"),
        ("1:30", "1:30"),
        ("190:20:30.15", "190:20:30.15"),
        ("2026-11-21", "2026-11-21"),
        ("2026-11-21T10:00:00Z", "2026-11-21T10:00:00Z"),
        ("1٢", "1٢"),
        ("_1", "_1"),
        ("-", "-"),
        ("10s", "10s"),
    ],
)
def test_plain_scalars(text: str, value: Any) -> None:
    found = resolve_scalar(text)
    assert (found, type(found)) == (value, type(value))


def test_nan() -> None:
    assert math.isnan(resolve_scalar(".nan"))


@pytest.mark.parametrize("style", ["'", '"', "|", ">"])
@pytest.mark.parametrize("text", ["", "true", "12", "null", ".inf"])
def test_quoted_and_block_scalars_are_strings(text: str, style: str) -> None:
    assert resolve_scalar(text, style) == text


def test_tags_say_what_a_scalar_is() -> None:
    assert resolve_scalar("12", tag="tag:yaml.org,2002:str") == "12"
    assert resolve_scalar("12", '"', INT) == 12
    assert resolve_scalar("12", tag="tag:yaml.org,2002:float") == 12.0
    assert resolve_scalar("aGk=", tag="tag:yaml.org,2002:binary") == "hi"
    assert resolve_scalar("12", tag="!") == "12"


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("x", INT),
        ("1.5", INT),
        ("1", "tag:yaml.org,2002:bool"),
        ("%", "tag:yaml.org,2002:binary"),
        ("x", "!custom"),
        ("x", "tag:yaml.org,2002:set"),
    ],
)
def test_tags_that_do_not_fit_are_refused(text: str, tag: str) -> None:
    with pytest.raises(ValueError, match="tag"):
        resolve_scalar(text, "", tag)


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (True, True),
        ("yes", True),
        ("On", True),
        ("y", True),
        ("OFF", False),
        ("n", False),
        ("oN", None),
        ("true ", None),
        (1, None),
        (None, None),
    ],
)
def test_words_of_yaml_1_1_count_where_a_bool_is_expected(value: Any, meant: bool | None) -> None:
    assert parse_bool(value) is meant
