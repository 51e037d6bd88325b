"""Secrets in Vault: both versions of KV, three logins, tokens that end, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamer.config import parse_config
from streamer.connectors.secrets.lookup import install_lookup, parse_urns
from streamer.core.errors import ConfigError
from tests.servers.vault import Vault, vault_server

TOKEN = "hvs.token-canary"


@pytest.fixture
def vault() -> Iterator[Vault]:
    with vault_server() as made:
        made.tokens.add(TOKEN)
        made.secrets |= {
            "secret/prod/db": {"user": "ann", "password": 'p"w: canary', "ports": [5432, {"a": 1}]},
            "secret/prod/one": {"key": "only-field"},
            "secret/prod/several": {"value": "the-value", "other": "x"},
            "secret/prod/gone": None,
            "old/db": {"password": "old-password"},
        }
        yield made


def find(vault: Vault, name: str, environ: dict[str, str], urn: str = "secret/prod/") -> str | None:
    place = vault.url.replace("http://", "vault+http://")
    lookup = parse_urns([f"{place}/{urn}"], environ)
    result = lookup.find(name, {})
    if result.failures:
        raise AssertionError(result.failures)
    return result.value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("secrets.db.password", 'p"w: canary'),
        ("secrets.db.ports.0", "5432"),
        ("secrets.db.ports.1", '{"a":1}'),
        ("secrets.db.nothing", None),
        ("secrets.one", "only-field"),
        ("secrets.several", "the-value"),
        ("secrets.gone", None),
        ("secrets.unknown", None),
        ("secrets.", None),
        ("HOME", None),
    ],
)
def test_a_field_of_a_secret_is_found_by_its_name(
    vault: Vault, name: str, value: str | None
) -> None:
    assert find(vault, name, {"VAULT_TOKEN": TOKEN}) == value
    # No name of a variable is sent to a server.
    assert (vault.requests == []) == (not name.removeprefix("secrets.") or name == "HOME")


def test_the_version_of_the_engine_is_that_of_the_server_or_of_the_urn(vault: Vault) -> None:
    environ = {"VAULT_TOKEN": TOKEN}
    assert find(vault, "secrets.db", environ, "old") == "old-password"
    assert vault.requests == ["GET sys/internal/ui/mounts/old/db", "GET old/db"]
    vault.requests.clear()
    assert find(vault, "secrets.one", environ, "secret/prod/?kv=2") == "only-field"
    assert vault.requests == ["GET secret/data/prod/one"]


def test_a_role_logs_in_with_its_id_and_again_when_its_token_has_ended(vault: Vault) -> None:
    vault.logins["approle"] = {"role_id": "r1", "secret_id": "s1"}
    environ = {"VAULT_ROLE_ID": "r1", "VAULT_SECRET_ID": "s1"}
    place = vault.url.replace("http://", "vault+http://")
    lookup = parse_urns([f"{place}/secret/prod/?auth=approle"], environ)
    assert lookup.find("secrets.one", {}).value == "only-field"
    vault.tokens.clear()
    assert lookup.find("secrets.one", {}).value == "only-field"
    assert vault.requests.count("POST auth/approle/login") == 2


def test_a_pod_logs_in_with_the_token_of_its_service_account(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "jwt").write_text("jwt-of-pod\n")
    vault.logins["k8s"] = {"role": "streamer", "jwt": "jwt-of-pod"}
    environ = {"VAULT_K8S_TOKEN_FILE": str(tmp_path / "jwt")}
    urn = "secret/prod/?auth=kubernetes&role=streamer&auth_mount=k8s"
    assert find(vault, "secrets.one", environ, urn) == "only-field"


def test_a_token_comes_from_a_file_too(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert find(vault, "secrets.one", {"VAULT_TOKEN_FILE": str(tmp_path / "token")}) == "only-field"
    lookup = parse_urns(["vault:///secret/prod/"], {"VAULT_ADDR": vault.url, "VAULT_TOKEN": TOKEN})
    assert lookup.find("secrets.one", {}).value == "only-field"


@pytest.mark.parametrize(
    ("environ", "urn", "problem"),
    [
        ({"VAULT_TOKEN": "hvs.wrong-canary"}, "", "answers 403"),
        ({"VAULT_TOKEN_FILE": "/nowhere"}, "", "the file /nowhere cannot be read"),
        ({}, "?auth=approle", "VAULT_ROLE_ID is not set"),
        ({"VAULT_ROLE_ID": "x-canary"}, "?auth=approle", "refuses the login"),
    ],
)
def test_a_refusal_is_named_and_shows_no_secret(
    vault: Vault, environ: dict[str, str], urn: str, problem: str
) -> None:
    place = vault.url.replace("http://", "vault+http://")
    lookup = parse_urns([f"{place}/secret/prod/{urn}"], environ)
    (failure,) = lookup.find("secrets.one", {}).failures
    assert problem in failure and "canary" not in failure


def test_lint_names_a_vault_that_is_away_and_a_secret_that_is_not_there(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VAULT_TOKEN", TOKEN)
    text = "output: {http_client: {url: 'http://h/${secrets.unknown}'}}"
    with (
        install_lookup(["vault+http://127.0.0.1:1/secret"]),
        pytest.raises(ConfigError, match="secrets.unknown: Vault at http://127.0.0.1:1 does not"),
    ):
        parse_config(text)
    urn = f"{vault.url.replace('http', 'vault+http', 1)}/secret/prod/"
    with (
        install_lookup(["env:", urn]),
        pytest.raises(ConfigError, match=r"not set: \[secrets.unknown\]"),
    ):
        parse_config(text)
    with install_lookup(["vault+http://127.0.0.1:1/secret", urn]):
        config = parse_config(text.replace("unknown", "db.password"))
    assert config.output.config["url"] == 'http://h/p"w: canary'
    assert config.secrets['p"w: canary'] == "${secrets.db.password}"
