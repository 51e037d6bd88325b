"""The systemd unit: its command line is one that the program takes, and its stop is patient."""

import shlex
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from streamer.cli.main import cli
from streamer.config import parse_config
from streamer.durations import SECOND, parse_duration

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "systemd" / "streamer@.service"
OPERATIONS = ROOT / "streamer" / "docs" / "operations.md"

Settings = dict[str, dict[str, list[str]]]


@pytest.fixture(scope="module")
def unit() -> Settings:
    """Sections, their settings, and the values of each: a setting may be repeated."""
    found: Settings = defaultdict(lambda: defaultdict(list))
    section = ""
    for line in UNIT.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith(("#", ";")):
            name, equals, value = line.partition("=")
            assert equals and section, line
            found[section][name].append(value)
    return found


@pytest.fixture
def service(unit) -> dict[str, str]:
    """The last value of each setting of the service, with the specifiers of an instance."""
    specifiers = {"%i": "cars", "%S": "/var/lib"}
    values = {name: values[-1] for name, values in unit["Service"].items()}
    for name, value in values.items():
        for specifier, meaning in specifiers.items():
            value = value.replace(specifier, meaning)
        assert "%" not in value, f"{name} has a specifier that is not known here"
        values[name] = value
    return values


def options(service: dict[str, str]) -> dict[str, object]:
    """Return the options of ExecStart as the command line reads them; unknown ones are an error."""
    program, *arguments = shlex.split(service["ExecStart"])
    assert program == "/opt/streamer/bin/streamer"
    return cli.make_context("streamer", arguments).params


def test_it_runs_the_instances_config(service, unit):
    given = options(service)
    assert given["config"] == "/etc/streamer/cars.yaml"
    assert unit["Unit"]["AssertFileNotEmpty"] == ["/etc/streamer/%i.yaml"]


def test_the_checkpoint_is_in_the_directory_that_the_service_may_write(service):
    state = f"/var/lib/{service['StateDirectory']}"
    assert options(service)["checkpoint"] == f"{state}/checkpoint"
    assert service["WorkingDirectory"] == state
    assert service["ProtectSystem"] == "strict"


def test_a_stop_is_asked_of_the_program_alone_and_takes_longer_than_its_own_patience(service):
    assert (service["KillSignal"], service["KillMode"]) == ("SIGTERM", "mixed")
    default = parse_config("{}").shutdown_timeout
    assert int(service["TimeoutStopSec"]) * SECOND >= default + 30 * SECOND


def test_failures_are_tried_again_but_not_for_ever(service, unit):
    assert service["Restart"] == "on-failure"
    limits = unit["Unit"]
    tries, within = int(limits["StartLimitBurst"][0]), limits["StartLimitIntervalSec"][0]
    # A config that is wrong fails at once, so that the tries fit into the interval.
    assert tries * int(service["RestartSec"]) * SECOND < parse_duration(within.replace("min", "m"))


def test_java_may_compile_as_it_runs(service):
    assert "MemoryDenyWriteExecute" not in service


def test_it_has_no_privileges(service):
    assert service["User"] == "streamer"
    assert service["CapabilityBoundingSet"] == ""
    assert service["NoNewPrivileges"] == "yes"


def test_the_page_names_what_the_unit_has(service):
    page = OPERATIONS.read_text().partition("## Running as a service")[2]
    for fact in (
        "/etc/streamer/cars.yaml",
        "/etc/streamer/cars.env",
        "/var/lib/streamer/cars/checkpoint",
        f"after {service['RestartSec']} s",
        f"--home-dir /var/lib/streamer --shell /usr/sbin/nologin {service['User']}",
    ):
        assert fact in page


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_understands_it(tmp_path):
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/streamer/bin/streamer", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", copy], capture_output=True, text=True, timeout=60
    )
    said = [line for line in done.stderr.splitlines() if UNIT.stem in line or "cars" in line]
    assert (done.returncode, said) == (0, [])
