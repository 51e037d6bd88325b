"""The Compose file: valid, its mounts are there, and streamer takes what it is started with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import compose_spec
import pytest
import yaml

from streamer.config import lint_config
from tests.deploy.image import ROOT

COMPOSE = ROOT / "deploy" / "compose.yaml"
STREAMS = sorted((ROOT / "deploy" / "compose" / "streams").glob("*.yaml"))


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]
    return found


def read(text: str) -> list[str]:
    compose = compose_spec.PyCompose.from_yaml(text)
    compose.validate()
    return sorted(compose.service_names())


def test_it_is_as_the_specification_says() -> None:
    text = COMPOSE.read_text()
    assert read(text) == ["broker", "grafana", "prometheus", "streamer", "topics"]
    for wrong in (text.replace("condition: service_healthy", "condition: well"), text + "nets: {}"):
        with pytest.raises(Exception, match="unknown|nets|well"):
            read(wrong)


def test_what_is_mounted_is_there(services: dict[str, Any]) -> None:
    volumes = yaml.safe_load(COMPOSE.read_text())["volumes"]
    for service in services.values():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            if source.startswith("./"):
                assert (COMPOSE.parent / source).exists(), mount
                assert mount.endswith(":ro")
            else:
                assert source in volumes


def test_ports_are_open_to_this_machine_alone(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert len(ports) == 4
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_program_takes_its_command_line(services: dict[str, Any]) -> None:
    import click

    from streamer.cli.main import cli

    service = services["streamer"]
    name, *arguments = service["command"]
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    given = command.make_context(name, list(arguments)).params
    targets = [mount.split(":")[1] for mount in service["volumes"]]
    assert {given["root"], *given["paths"]} <= set(targets)
    assert given["checkpoints"].startswith("/data/") and "/data" in targets
    assert service["read_only"] and service["cap_drop"] == ["ALL"]


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_the_streams_have_no_findings_and_read_topics_that_are_made(path: Path) -> None:
    assert [str(lint) for lint in lint_config(str(path))] == []
    text = path.read_text()
    assert "${KAFKA:" in text
    made = yaml.safe_load(COMPOSE.read_text())["services"]["topics"]["command"][0]
    for end in ("input", "output"):
        kafka = yaml.safe_load(text)[end].get("redpanda", {})
        for topic in kafka.get("topics", [kafka["topic"]] if "topic" in kafka else []):
            assert topic in made


def test_prometheus_asks_the_service_and_knows_its_alerts(services: dict[str, Any]) -> None:
    config = yaml.safe_load((COMPOSE.parent / "compose" / "prometheus.yaml").read_text())
    (target,) = config["scrape_configs"][0]["static_configs"][0]["targets"]
    host, port = target.split(":")
    assert host in services and port == "4195"
    (rules,) = config["rule_files"]
    mounted = {
        mount.split(":")[1]: mount.split(":")[0] for mount in services["prometheus"]["volumes"]
    }
    folder = COMPOSE.parent / mounted[str(Path(rules).parent)]
    assert (folder / Path(rules).name).exists()
