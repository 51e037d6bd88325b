"""What is shown of secrets."""

from __future__ import annotations

import pytest

from streamer.spec.secrets import SCRUBBED, scrub_secret, scrub_urls


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
    assert scrub_secret(value) == shown


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
    assert scrub_urls(text) == shown
