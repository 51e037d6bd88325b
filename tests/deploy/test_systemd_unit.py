"""The systemd units: their command lines are ones that the program takes, their stops patient."""

import shlex
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import click
import pytest

from streamer.cli.main import cli
from streamer.config import parse_config
from streamer.core.durations import SECOND, parse_duration

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
PAGE = ROOT / "streamer" / "docs" / "systemd.md"

Settings = dict[str, dict[str, list[str]]]


@pytest.fixture(scope="module", params=UNITS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture
def many(path: Path) -> bool:
    """Whether it is the unit of many streams."""
    return "@" not in path.name


@pytest.fixture(scope="module")
def unit(path: Path) -> Settings:
    """Sections, their settings, and the values of each: a setting may be repeated."""
    found: Settings = defaultdict(lambda: defaultdict(list))
    section = ""
    for line in path.read_text().splitlines():
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
    if arguments[0] != "streams":
        return cli.make_context("streamer", arguments).params
    command = cli.get_command(click.Context(cli), arguments[0])
    assert command is not None
    return command.make_context("streams", arguments[1:]).params


def test_a_broker_that_is_away_at_boot_does_not_use_the_tries_up(service, many):
    # A service waits without being told to; one stream would end with 1, and stay down after five.
    assert many or options(service)["wait_for_inputs"]


def test_it_runs_its_config(service, unit, many):
    given = options(service)
    if many:
        assert given["root"] == "/etc/streamer/service.yaml"
        assert given["paths"] == ("/etc/streamer/streams",) and given["watcher"]
        assert unit["Unit"]["AssertPathIsDirectory"] == ["/etc/streamer/streams"]
        assert unit["Unit"]["AssertFileNotEmpty"] == ["/etc/streamer/service.yaml"]
    else:
        assert given["config"] == "/etc/streamer/cars.yaml"
        assert unit["Unit"]["AssertFileNotEmpty"] == ["/etc/streamer/%i.yaml"]


def test_the_checkpoint_is_in_the_directory_that_the_service_may_write(service, many):
    state = f"/var/lib/{service['StateDirectory']}"
    given = options(service)
    kept = given["checkpoints" if many else "checkpoint"]
    assert kept == f"{state}/checkpoint{'s' if many else ''}"
    assert service["WorkingDirectory"] == state
    assert service["ProtectSystem"] == "strict"


def test_both_are_alike_but_for_what_they_run():
    def rest(path: Path) -> set[str]:
        told = ("ExecStart=", "StateDirectory=", "WorkingDirectory=", "EnvironmentFile=")
        lines = path.read_text().partition("[Service]")[2].splitlines()
        return {line for line in lines if not line.startswith(told)}

    one, other = UNITS
    assert rest(one) == rest(other)


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


def test_the_page_names_what_the_unit_has(service, many):
    page = PAGE.read_text()
    given = options(service)
    for fact in (
        *((given["root"], *given["paths"]) if many else (given["config"],)),
        service["EnvironmentFile"].removeprefix("-"),
        given["checkpoints" if many else "checkpoint"],
        f"after {service['RestartSec']} s",
        f"--home-dir /var/lib/streamer --shell /usr/sbin/nologin {service['User']}",
    ):
        assert fact in page


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_understands_it(path, tmp_path):
    copy = tmp_path / path.name
    copy.write_text(path.read_text().replace("/opt/streamer/bin/streamer", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", copy], capture_output=True, text=True, timeout=60
    )
    said = [line for line in done.stderr.splitlines() if path.stem in line or "cars" in line]
    assert (done.returncode, said) == (0, [])
