"""Texts of configs keep their comments and their form while secrets are taken out and put back."""

from __future__ import annotations

import pytest

from streamer.config import parse_config
from streamer.core.redaction import SCRUBBED
from streamer.service.fleet import redacted_document, redacted_text

CONFIG = """\
# The orders.   password: hunter2hunter2
input:
  http_client:
    url: "http://ada:swordfish@localhost:1/a#b"   # where they are
    headers: {Authorization: 'Bearer ${TOKEN:none}'}
    basic_auth: { enabled: true, username: u, password: 'it''s-a-secret' }

output:
    drop: {}   # nowhere
"""
SECRETS = ("swordfish", "it''s", "it's-a-secret", "hunter2")


def shown(text: str) -> str:
    return redacted_text.redact_text(text, parse_config(text, env={}))


def test_secrets_are_taken_out_where_they_stand_and_all_else_stays() -> None:
    found = shown(CONFIG)
    assert not [secret for secret in SECRETS if secret in found]
    assert found.splitlines()[4:] == [
        "    headers: {Authorization: 'Bearer ${TOKEN:none}'}",
        f'    basic_auth: {{ enabled: true, username: u, password: "{SCRUBBED}" }}',
        "",
        "output:",
        "    drop: {}   # nowhere",
    ]
    assert f'    url: "http://ada:{SCRUBBED}@localhost:1/a#b"   # where they are' in found
    assert found.startswith(f"# The orders.   password: {SCRUBBED}\n")


def test_secrets_are_put_back_where_their_marks_stand_and_all_else_stays() -> None:
    edited = shown(CONFIG).replace("drop: {}", "reject: no").replace("# nowhere", "# anywhere")
    found = redacted_text.restore_secrets(edited, CONFIG)
    assert SCRUBBED not in "".join(found.splitlines()[1:])
    assert "    reject: no   # anywhere\n" in found
    assert redacted_document.parse_document(found) == {
        **redacted_document.parse_document(CONFIG),
        "output": {"reject": redacted_document.parse_document("no")},
    }


@pytest.mark.parametrize(
    "password",
    [
        "|\n        uno\n        two",
        ">-\n        folded over\n        lines",
        '"with \\"quotes\\" \\u00e9"',
        "plain over\n       two lines",
        "12345678",
        "&a other-secret",
    ],
)
def test_secrets_in_every_form_that_yaml_has(password: str) -> None:
    text = CONFIG.replace("'it''s-a-secret'", "x").replace(
        "basic_auth: { enabled: true, username: u, password: x }",
        f"basic_auth:\n      enabled: true\n      username: u\n      password: {password}",
    )
    found = shown(text)
    for word in ("uno", "folded", "quotes", "plain over", "12345678", "other-secret"):
        assert word not in found
    assert "# where they are" in found
    assert redacted_document.parse_document(
        redacted_text.restore_secrets(found, text)
    ) == redacted_document.parse_document(text)


def test_a_mark_at_a_place_that_had_no_secret_stays_a_mark() -> None:
    text = f"output: {{ reject: '{SCRUBBED}' }}  # no\n"
    assert redacted_text.restore_secrets(text, "input: {}") == text
