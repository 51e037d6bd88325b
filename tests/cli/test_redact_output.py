"""Secrets in what commands print: none is left, however JSON spells it."""

from __future__ import annotations

import json

import pytest

from streamer.cli.redact_output import redact_document
from streamer.config import parse_config

CONFIG = """
input:
  http_client:
    url: http://localhost/
    basic_auth: {enabled: true, username: ada, password: %s}
"""


@pytest.mark.parametrize("secret", ["correct-horse", 'pä"ss\\wörd', "ключ-ключ", "a/b c&d-e"])
def test_a_secret_is_taken_out_of_keys_and_texts(secret: str) -> None:
    config = parse_config(CONFIG % json.dumps(secret), "a.yaml")
    document = {"n": 1, f"key {secret}": [None, {"text": f"before {secret} after"}, secret]}
    redacted = redact_document(config, document)
    assert secret not in json.dumps(redacted, ensure_ascii=False)
    assert json.dumps(secret)[1:-1] not in json.dumps(redacted)
    key, items = list(redacted.items())[1]
    assert redacted["n"] == 1 and key.startswith("key ") and items[0] is None
    assert items[1]["text"].startswith("before ") and items[1]["text"].endswith(" after")
