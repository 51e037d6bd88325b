"""What a secret field or an environment variable holds is in no message."""

from __future__ import annotations

import pytest

from streamer.config import parse_config
from streamer.core.errors import ConfigError

SECRET = "hunter2-hunter2"


def messages(text: str, env: dict[str, str] | None = None, *sets: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "c.yaml", env=env or {}, sets=sets)
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"http: {{basic_auth: {{password_hash: [{SECRET}]}}}}",
        f"http: {{basic_auth: {{password_hash: {{{SECRET}: 1}}}}}}",
        f"metrics: {{prometheus: {{push_basic_auth: {{password: [{SECRET}]}}}}}}",
        f"spark: {{conf: {SECRET}}}",
        f"spark: {{conf: {{spark.password: [{SECRET}]}}}}",
        f"output: {{http_client: {{url: x, headers: {{Cookie: '{SECRET} ${{! expected( }}'}}}}}}",
    ],
)
def test_a_secret_field_is_not_shown(text: str) -> None:
    assert "expected" in messages(text)
    assert SECRET not in messages(text)


@pytest.mark.parametrize(
    "text",
    [
        "logger: {level: '${X}'}",
        "pipeline: {threads: '${X}'}",
        "shutdown_timeout: ${X}",
        "input: ${X}",
        "input: {'${X}': {}}",
        "${X}: 1",
        "input: {generate: {mapping: root = 1, interval: '${X}'}}",
        "input: {generate: {mapping: 'root = ${X} ('}}",
        "input: {label: 'A ${X}', stdin: {}}",
    ],
)
@pytest.mark.parametrize("value", [SECRET, "pw12345"])
def test_the_value_of_a_variable_is_not_shown(text: str, value: str) -> None:
    assert value not in messages(text, {"X": value})


def test_the_variable_stands_instead_of_its_value() -> None:
    assert messages("logger: {level: '${X}'}", {"X": SECRET}).startswith(
        "c.yaml(1,17) field level: value '${X}' is not one of OFF, "
    )


def test_a_default_is_shown_since_the_file_holds_it() -> None:
    assert "'loud'" in messages("logger: {level: '${X:loud}'}")


def test_the_value_of_a_set_is_not_shown_when_its_field_is_secret() -> None:
    text = messages("{}", {}, f"spark.conf={SECRET}", f"http.basic_auth.salt=[{SECRET}]")
    assert text.count("--set ") == 2
    assert SECRET not in text
