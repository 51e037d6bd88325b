"""Secrets of streams: out of reach of the API, read again at a start, and rotated in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.config import Config, parse_config
from streamer.connectors.secrets.lookup import install_lookup
from streamer.plan.change_impact.judge_changes import judge
from streamer.plan.change_impact.model import Effect
from streamer.service.fleet.api_permissions import ApiPermissions
from streamer.service.fleet.config_reader import ConfigReader
from streamer.service.fleet.deploys import ChangeOptions
from streamer.service.fleet.errors import BadConfigError
from tests.service.fleet.pretending import pretended

GENERATE = "input: { generate: { mapping: root = 1 } }\n"


def reader(allowance: ApiPermissions) -> ConfigReader:
    return ConfigReader(parse_config("http: {address: '127.0.0.1:0'}", "root.yaml"), allowance)


@pytest.mark.parametrize(
    ("reference", "named"),
    [
        ("${file:/etc/passwd}", "the file /etc/passwd"),
        ("${env:HOME}", "the environment variable HOME"),
        ("${secrets.db.password}", "the environment variable secrets.db.password"),
    ],
)
def test_a_config_of_the_api_reaches_no_secret_unless_it_may_reach_files(
    reference: str, named: str
) -> None:
    text = f"{GENERATE}output: {{ http_client: {{ url: 'http://h/{reference}' }} }}\n"
    with install_lookup(["env:"]), pytest.raises(BadConfigError) as error:
        reader(ApiPermissions()).read_api_config(text, "one")
    assert f"{named} is out of reach for configs that come by API" in str(error.value)


def test_a_config_of_the_api_that_may_reach_files_has_secrets(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("v4lue\n")
    text = f"{GENERATE}output: {{ http_client: {{ url: 'http://h/${{file:{tmp_path}/x}}' }} }}\n"
    config = reader(ApiPermissions(local=True)).read_api_config(text, "one")
    assert config.output.config["url"] == "http://h/v4lue" and "v4lue" not in config.text


def kafka(directory: Path, password: str) -> Config:
    (directory / "password").write_text(password)
    return parse_config(
        "input:\n  kafka:\n    addresses: [h:1]\n    topics: [t]\n    consumer_group: g\n"
        f"    sasl: {{mechanism: PLAIN, user: u, password: '${{file:{directory}/password}}'}}\n"
        f"pipeline:\n  processors:\n    - mapping: 'root = ${{file:{directory}/password}}'\n"
    )


def test_a_new_value_of_a_secret_keeps_the_offsets_of_the_input(tmp_path: Path) -> None:
    impact = judge(kafka(tmp_path, "f1rst"), kafka(tmp_path, "s3cond"))
    assert impact.effect == Effect.IN_PLACE and impact.keeps_input and not impact.resets
    assert {one.path for one in impact.changes} == {
        "input.kafka.sasl.password",
        "pipeline.processors.0.mapping",
    }
    shown = str(impact.as_dict())
    assert "f1rst" not in shown and "s3cond" not in shown
    literal = parse_config(
        "input:\n  kafka:\n    addresses: [h:1]\n    topics: [t]\n    consumer_group: g\n"
        "    sasl: {mechanism: PLAIN, user: u, password: other}\n"
    )
    assert judge(kafka(tmp_path, "f1rst"), literal).resets


def test_a_deploy_a_resume_and_a_store_that_is_away_have_the_secrets_of_their_time(
    tmp_path: Path,
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("f1rst-canary\n")
    text = f"{GENERATE}output: {{ http_client: {{ url: 'http://h/${{file:{secret}}}' }} }}\n"
    options = ChangeOptions()
    with pretended(tmp_path / "service", ApiPermissions(local=True)) as service:
        deploys, registry = service.manager.deploys, service.manager.registry

        def url() -> str:
            return str(registry.get("one").config.output.config["url"])

        deploys.create("one", text, options)
        assert url() == "http://h/f1rst-canary"
        secret.write_text("s3cond-canary\n")
        deploys.update("one", text, options)
        assert url() == "http://h/s3cond-canary"
        deploys.pause("one", options)
        secret.write_text("th1rd-canary\n")
        deploys.resume("one", options)
        assert url() == "http://h/th1rd-canary"
        deploys.pause("one", options)
        secret.unlink()
        deploys.resume("one", options)
        assert url() == "http://h/th1rd-canary"
        lines = [*service.log, *registry.get("one").log_tail.lines_after(0)]
        assert "The secrets cannot be read again" in str(lines)
        assert "canary" not in str(lines)
        assert "canary" not in str([one.text for one in registry.store.revisions("one")])
    kept = [path for path in (tmp_path / "service").rglob("*") if path.is_file()]
    assert kept and not any(b"canary" in path.read_bytes() for path in kept)
