"""What is shown of secrets."""

from __future__ import annotations

import pickle

import pytest

from streamer.core.redaction import (
    SCRUBBED,
    Redaction,
    redact_credential,
    redact_secret,
    redact_urls,
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("hunter2", SCRUBBED),
        (4711, SCRUBBED),
        ("", ""),
        (None, None),
        ("${PASSWORD}", "${PASSWORD}"),
        (" ${PASSWORD:${OTHER}} ", " ${PASSWORD:${OTHER}} "),
        ("${A}${B}", SCRUBBED),
        ("x${A}", SCRUBBED),
        (["a", ""], [SCRUBBED, ""]),
        ({"user": {"password": "a"}}, {"user": {"password": SCRUBBED}}),
    ],
)
def test_a_secret_is_shown_only_when_it_is_but_a_variable(value: object, shown: object) -> None:
    assert redact_secret(value) == shown


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("Authorization", "Bearer abc.def", f"Bearer {SCRUBBED}"),
        ("authorization", "Basic dXNlcjpwYXNz", f"Basic {SCRUBBED}"),
        ("Proxy-Authorization", "abc", SCRUBBED),
        ("Cookie", "session=1; x=2", SCRUBBED),
        ("X-Api-Key", "abc", SCRUBBED),
        ("apikey", "abc${! @more }", SCRUBBED),
        ("Ocp-Apim-Subscription-Key", "abc", SCRUBBED),
        ("client_secret", ["abc"], [SCRUBBED]),
        ("Authorization", "Bearer ${TOKEN}", "Bearer ${TOKEN}"),
        ("Authorization", "Bearer ${! @token }", "Bearer ${! @token }"),
        ("Authorization", "", ""),
        ("X-Author", "Joe", "Joe"),
        ("Idempotency-Key", "abc", "abc"),
        ("Content-Type", "text/plain", "text/plain"),
        ("X-Token", 5, 5),
    ],
)
def test_a_header_that_says_who_asks_is_shown_without_that(
    name: str, value: object, shown: object
) -> None:
    assert redact_credential(name, value) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://host/a", "http://host/a"),
        ("http://user@host", "http://user@host"),
        ("amqp://user:pw@host:1/x", f"amqp://user:{SCRUBBED}@host:1/x"),
        ("http://u:p@w@host", f"http://u:{SCRUBBED}@host"),
        ("http://u:${PW}@host", "http://u:${PW}@host"),
        ("http://:pw@host", f"http://:{SCRUBBED}@host"),
        ("a http://u:p@h, b redis://v:q@i", f"a http://u:{SCRUBBED}@h, b redis://v:{SCRUBBED}@i"),
        ("http://host:80/a@b", "http://host:80/a@b"),
    ],
)
def test_a_url_is_shown_without_its_password(text: str, shown: str) -> None:
    assert redact_urls(text) == shown


@pytest.mark.parametrize(
    ("secrets", "text", "shown"),
    [
        ([], "nothing", "nothing"),
        ([""], "nothing", "nothing"),
        (["hunter2"], "a hunter2b", f"a {SCRUBBED}b"),
        ({"hunter2": "${PW}"}, "a hunter2", "a ${PW}"),
        (["a.b+c"], "a.b+c aXb+c", f"{SCRUBBED} aXb+c"),
        (["hunter", "hunter2"], "hunter2 hunter", f"{SCRUBBED} {SCRUBBED}"),
        (["abc"], "abc, abcd, (abc)", f"{SCRUBBED}, abcd, ({SCRUBBED})"),
        (["-x-"], "a -x- b", f"a {SCRUBBED} b"),
        ({"abc": "${X}"}, "abc, 'abc', \"abc\"", "abc, '${X}', \"${X}\""),
        (["a'b\\c\n"], "a'b\\c\n", SCRUBBED),
        (["a'b\\c\n"], repr("a'b\\c\n"), f'"{SCRUBBED}"'),
        (["very-long-secret"], "'x very-lon...' very-long…", f"'x {SCRUBBED}...' {SCRUBBED}…"),
        (["other"], "http://u:p@h other", f"http://u:{SCRUBBED}@h {SCRUBBED}"),
    ],
)
def test_known_secrets_are_taken_out_of_a_text(secrets: list[str], text: str, shown: str) -> None:
    assert Redaction(secrets).redact_text(text) == shown


def test_known_secrets_are_taken_out_of_values_however_deep() -> None:
    value = {"a": ["hunter2", 1, None, {"b": ("x hunter2",)}]}
    shown = {"a": [SCRUBBED, 1, None, {"b": [f"x {SCRUBBED}"]}]}
    assert Redaction(["hunter2"]).redact_value(value) == shown


def test_a_redaction_goes_to_workers() -> None:
    assert pickle.loads(pickle.dumps(Redaction(["hunter2"]))).redact_text("hunter2") == SCRUBBED
