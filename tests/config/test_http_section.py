"""What is wrong with the `http` section is found before anything listens."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streamer.connectors.http_server.address import split_address


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1:4195", ("127.0.0.1", 4195)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        (":80", (None, 80)),
        ("[::1]:8080", ("::1", 8080)),
        ("some.host:65535", ("some.host", 65535)),
    ],
)
def test_an_address_is_a_host_and_a_port(address: str, expected: tuple[str | None, int]) -> None:
    assert split_address(address) == expected


@pytest.mark.parametrize("address", ["", "4195", "host", "host:", "host:x", "h:65536", "::1:80"])
def test_anything_else_is_no_address(address: str) -> None:
    with pytest.raises(ValueError, match="expected host:port"):
        split_address(address)


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (
            "address: here",
            "(1,18) field address is 'here'; expected host:port, such as 127.0.0.1:4195, "
            "0.0.0.0:4195 or [::1]:4195",
        ),
        ("root_path: x", "(1,20) field root_path is 'x'; expected a path that begins with /"),
        ("cert_file: c.pem", "(1,7) field http needs both cert_file and key_file, or neither"),
        (
            "cors: { enabled: true }",
            "(1,15) field cors is enabled; name at least one origin in allowed_origins",
        ),
        (
            "basic_auth: { enabled: true, username: me }",
            "(1,21) field basic_auth is enabled; expected both username and password_hash",
        ),
        (
            "basic_auth: { enabled: true, username: me, password_hash: aGk=, algorithm: scrypt }",
            "(1,21) field basic_auth has algorithm scrypt; expected a salt",
        ),
        (
            "basic_auth: { enabled: true, username: me, password_hash: s3cret! }",
            "(1,21) field basic_auth has a password_hash that is not base64",
        ),
        (
            "bearer_auth: { enabled: true }",
            "(1,22) field bearer_auth is enabled; expected at least one token in tokens",
        ),
        (
            "bearer_auth: { enabled: true, tokens: [ { name: a, token_hash: s3cret } ] }",
            "(1,22) field bearer_auth has a token without a name, or whose token_hash is no base64 "
            "of a SHA-256 hash",
        ),
        (
            "basic_auth: { algorithm: sha1 }",
            "(1,34) field algorithm: value 'sha1' is not one of md5, sha256, bcrypt, scrypt, "
            "argon2",
        ),
    ],
)
def test_what_is_wrong_is_placed(
    findings: Callable[[str], list[str]], section: str, expected: str
) -> None:
    [found] = findings(f"http: {{ {section} }}\n")
    assert found.startswith(expected)
    assert "s3cret" not in found


def test_basic_auth_that_is_off_is_not_looked_at(findings: Callable[[str], list[str]]) -> None:
    assert findings("http: { basic_auth: { username: me, password_hash: '!' } }\n") == []
