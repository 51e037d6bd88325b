"""Secrets of a config: `${file:…}`, `${env:…}`, and names that stores of `--secrets` have."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from streamer.bloblang import compile_mapping
from streamer.config import Config, LintOptions, lint_config, parse_config
from streamer.config.echo import echo_config
from streamer.config.resources import ResourceText
from streamer.config.secrets import list_references
from streamer.connectors.secrets.lookup import install_lookup
from streamer.core.errors import ConfigError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.core.permissions import NONE, limit_permissions
from streamer.core.redaction import SCRUBBED
from streamer.core.secret_reference import SecretReference

AWKWARD = (
    'a: "b"',
    "- x\n- y: [",
    "'; root = deleted() #",
    "${HOME} ${{A}} ${file:/etc/passwd}",
    "true",
    "null",
    "0x10",
    "*alias &anchor !tag",
    "\ufdd20\ufdd3",
    "-----BEGIN KEY-----\nMIIB\n-----END KEY-----",
    "tab\tand \\ backslash",
    "#",
)
ENV = {"HOME": "/srv", "A": "a"}


def file_reference(directory: Path, text: str) -> str:
    path = directory / "secret"
    path.write_text(text, newline="")
    path.chmod(0o600)
    return f"${{file:{path}}}"


def read_output(text: str, env: dict[str, str] = ENV) -> Config:
    return parse_config(f"output:\n  http_client:\n    url: http://h\n{text}", env=env)


@pytest.mark.parametrize("value", AWKWARD)
def test_a_secret_is_a_text_whatever_it_is_made_of(value: str, tmp_path: Path) -> None:
    reference = file_reference(tmp_path, value)
    config = read_output(
        f'    headers:\n      Plain: {reference}\n      Quoted: "<{reference}>"\n'
        f"      Single: '<{reference}>'\n      Block: |-\n        {reference}\n      After: x\n"
    )
    assert config.output.config["headers"] == {
        "Plain": value,
        "Quoted": f"<{value}>",
        "Single": f"<{value}>",
        "Block": value,
        "After": "x",
    }


@pytest.mark.parametrize("value", AWKWARD)
def test_a_secret_in_a_mapping_is_a_literal(value: str, tmp_path: Path) -> None:
    reference = file_reference(tmp_path, value)
    config = parse_config(
        f"pipeline:\n  processors:\n    - mapping: |\n        root.bare = {reference}\n"
        f'        root.quoted = "<{reference}>"\n',
        env=ENV,
    )
    mapping = compile_mapping(config.processors[0].config)
    made = mapping.apply([Message(b"{}")], 0, Execution(lambda: 0))
    assert made is not None and json.loads(made.raw) == {"bare": value, "quoted": f"<{value}>"}


@pytest.mark.parametrize(
    ("text", "value"),
    [("x\n", "x"), ("x\r\n", "x"), ("x\n\n", "x\n"), ("x", "x"), ("x\r", "x\r"), (" x ", " x ")],
)
def test_one_line_end_of_a_file_is_taken_away(text: str, value: str, tmp_path: Path) -> None:
    config = read_output(f'    headers: {{X: "{file_reference(tmp_path, text)}"}}')
    assert config.output.config["headers"]["X"] == value


def test_numbers_and_yes_or_no_come_out_of_secrets_where_fields_take_them() -> None:
    config = parse_config(
        "input: {generate: {mapping: 'root = 1', count: '${env:N}'}}\n"
        "output: {http_client: {url: http://h, tls: {enabled: '${env:B}'}, verb: '${env:V:PUT}'}}",
        env={"N": "3", "B": "true"},
    )
    assert config.input.config["count"] == 3
    assert config.output.config["tls"]["enabled"] is True and config.output.config["verb"] == "PUT"


def test_the_escape_and_base64_work_as_for_variables(tmp_path: Path) -> None:
    reference = file_reference(tmp_path, "aGk=\n")
    config = read_output(
        f'    headers: {{X: "{reference[:-1]}|base64decode}}", Y: "${{{{file:/x}}}}", '
        'Z: "${{env:A}}", W: "$${env:A}"}'
    )
    assert config.output.config["headers"] == {
        "X": "hi",
        "Y": "${file:/x}",
        "Z": "${env:A}",
        "W": "$a",
    }


def test_what_is_missing_is_named_at_its_place_and_no_value_is_shown(tmp_path: Path) -> None:
    broken = file_reference(tmp_path, "not-base64-canary")[:-1] + "|base64decode}"
    with pytest.raises(ConfigError) as error:
        read_output(
            "    verb: ${file:/nowhere/x}\n    headers:\n      # ${file:/comment} ${env:COMMENT}\n"
            f"      A: ${{env:UNSET}}\n      B: {broken}\n      C: ${{file:}}\n"
            f"      D: ${{file:{tmp_path}}}\n"
        )
    lints = [(one.line, one.code, one.message) for one in error.value.lints]
    assert lints == [
        (4, "missing_secret", "there is no file /nowhere/x"),
        (7, "missing_variable", "required environment variables were not set: [UNSET]"),
        (8, "bad_variable", f"file {tmp_path}/secret: its value is not the base64 of UTF-8 text"),
        (9, "missing_secret", "there is no path"),
        (10, "missing_secret", f"the file {tmp_path} cannot be read: Is a directory"),
    ]


def test_a_file_that_is_too_large_or_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large"
    for content, problem in ((b"x" * 70_000, "has over 65,536 bytes"), (b"\xff", "is not UTF-8")):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=problem):
            read_output(f"    verb: ${{file:{path}}}")


def test_lint_warns_of_a_file_that_everybody_may_read_and_a_run_does_not(tmp_path: Path) -> None:
    reference = file_reference(tmp_path, "s3cret-value\n")
    (tmp_path / "secret").chmod(0o644)
    text = f"output:\n  http_client:\n    url: http://h\n    headers: {{X: '{reference}'}}\n"
    config = tmp_path / "config.yaml"
    config.write_text(text)
    (lint,) = lint_config(config, options=LintOptions(thorough=True))
    assert (lint.code, lint.line) == ("readable_secret", 4)
    assert lint.message == f"every user of this machine may read the file {tmp_path}/secret"
    assert parse_config(text).lints == ()


def test_what_interpolates_takes_no_secret_with_an_expression(tmp_path: Path) -> None:
    reference = file_reference(tmp_path, '${! file("/etc/passwd") }')
    with pytest.raises(ConfigError, match="which begins an expression there"):
        parse_config(f"output: {{http_client: {{url: 'http://h/{reference}'}}}}", env=ENV)


def test_secrets_are_known_by_their_references_and_echo_shows_these(tmp_path: Path) -> None:
    reference = file_reference(tmp_path, "first-l1ne\nsecond-l1ne\n")
    config = read_output(
        f"    headers: {{X: 'Bearer {reference}', Y: '${{env:TOKEN}}', Z: '${{PLAIN}}'}}",
        {"TOKEN": "t0ken-canary", "PLAIN": "plain-value"},
    )
    references = list_references(config)
    assert references["second-l1ne"] == reference and references["t0ken-canary"] == "${env:TOKEN}"
    assert "plain-value" not in references and config.secrets["plain-value"] == "${PLAIN}"
    for shown in (
        echo_config(config, {"TOKEN": "t0ken-canary", "PLAIN": "plain-value"}),
        echo_config(config, {}, show_env=True),
    ):
        assert "l1ne" not in shown and "canary" not in shown
        assert f"Bearer {reference}" in shown or f"Bearer {SCRUBBED}" in shown


def test_a_variable_in_the_place_of_a_secret_is_one_and_others_are_not() -> None:
    config = parse_config(
        "input: {file: {paths: ['${DATA}/x']}}\n"
        "output: {http_client: {url: 'http://u:${PASS}@h/${API_KEY_TOKEN}'}}",
        env={"DATA": "/srv/data", "PASS": "pa55word", "API_KEY_TOKEN": "t0ken"},
    )
    assert isinstance(config.secrets["pa55word"], SecretReference)
    assert isinstance(config.secrets["t0ken"], SecretReference)
    assert not isinstance(config.secrets["/srv/data"], SecretReference)


def test_nothing_of_the_machine_is_in_reach_of_a_config_without_an_environment(
    tmp_path: Path,
) -> None:
    reference = file_reference(tmp_path, "canary-of-file")
    text = f"output: {{http_client: {{url: http://h, headers: {{X: '{reference}'}}}}}}"
    with pytest.raises(ConfigError, match="out of reach") as error:
        parse_config(text, env={})
    assert "canary" not in str(error.value)
    with pytest.raises(ConfigError, match="out of reach"), limit_permissions(NONE):
        parse_config(text, env=dict(os.environ))


def test_resources_of_the_service_have_secrets_where_the_config_may_not(tmp_path: Path) -> None:
    reference = file_reference(tmp_path, "canary-of-file")
    resource = ResourceText(
        "(service)",
        f"output_resources: [{{label: o, http_client: {{url: http://h, headers: "
        f"{{X: '{reference}'}}}}}}]",
        {"A": "b"},
    )
    with limit_permissions(NONE):
        config = parse_config("output: {resource: o}", env={}, resources=[resource])
    (component,) = config.resources.values()
    assert component.config["headers"] == {"X": "canary-of-file"}


def test_names_are_looked_up_in_order_and_values_cannot_change_the_structure() -> None:
    with install_lookup(["none:"]), pytest.raises(ConfigError, match=r"not set: \[A\]"):
        parse_config("output: {http_client: {url: 'http://${A}'}}", env={"A": "a"})
    with install_lookup(["none:", "env:"]):
        config = parse_config("output: {http_client: {url: 'http://${A}'}}", env={"A": "a"})
    assert config.output.config["url"] == "http://a"


@pytest.mark.parametrize(
    ("urn", "problem"),
    [
        ("foo://u:pw-canary@h", "the scheme 'foo' is not known; expected env:, none:, vault:"),
        ("secret", "it has no scheme; expected env:"),
        ("gcp://project", "Google Secret Manager is not available"),
        ("vault://h", "it has no mount"),
        ("vault://tok3n@h/secret", "it has credentials"),
        ("vault://h/secret?auth=ldap", "auth is 'ldap'; expected one of token, approle"),
        ("vault://h/secret?auth=kubernetes", "needs a role"),
        ("vault://h/secret?kv=3", "kv is '3'"),
        ("vault://h/secret?x=1", "the parameter x"),
    ],
)
def test_a_urn_that_is_none_is_named(urn: str, problem: str) -> None:
    with pytest.raises(StreamerError) as error, install_lookup([urn]):
        pass
    assert problem in str(error.value) and "pw-canary" not in str(error.value)


def test_a_urn_whose_package_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamer.connectors.secrets.lookup.is_installed", lambda _: False)
    for urn, extra in (("redis://h", "redis"), ("aws-secretsmanager://eu-west-1", "aws")):
        with (
            pytest.raises(StreamerError, match=rf"spark-streamer\[{extra}\]"),
            install_lookup([urn]),
        ):
            pass


def test_urns_come_from_a_variable_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMER_SECRETS", "none:")
    with pytest.raises(ConfigError, match=r"not set: \[A\]"):
        parse_config("output: {http_client: {url: 'http://${A}'}}", env={"A": "a"})


def test_json_of_a_config_shows_no_secret(tmp_path: Path) -> None:
    reference = file_reference(tmp_path, 'can"ary\\42')
    config = read_output(f"    headers: {{X: '{reference}'}}")
    from streamer.cli.redact_output import build_redactor

    shown = build_redactor(config)(json.dumps({"url": "http://h/?k=can%22ary%5C42"}))
    assert "can" not in shown and reference in shown
