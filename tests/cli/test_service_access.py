"""What the log of the service says about who reaches it."""

from __future__ import annotations

import pytest

from streamer.cli.service import describe_access
from streamer.config import parse_config

TOKEN = "{ name: ci, token_hash: n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg= }"
WORDS = {"Benthos would listen on all addresses", "Whoever reaches this address can deploy"}


@pytest.mark.parametrize(
    ("http", "api", "said"),
    [
        ("", True, "INFO Benthos would listen on all addresses"),
        ("address: '127.0.0.1:1'", True, ""),
        ("address: 'localhost:1'", True, ""),
        ("address: '[::1]:1'", True, ""),
        ("address: '0.0.0.0:1'", True, "WARN Whoever reaches this address can deploy"),
        ("address: ':1'", True, "WARN Whoever reaches this address can deploy"),
        ("address: '0.0.0.0:1'", False, ""),
        (f"address: ':1', bearer_auth: {{ enabled: true, tokens: [ {TOKEN} ] }}", True, ""),
    ],
)
def test_one_is_told_who_reaches_the_service(http: str, api: bool, said: str) -> None:
    section = parse_config(f"http: {{ {http} }}\n", env={}).http
    found = [
        f"{level} {words}"
        for level, text in describe_access(section, api)
        for words in WORDS
        if words in text
    ]
    assert found == ([said] if said else [])
