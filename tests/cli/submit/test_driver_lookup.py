"""Which driver `submit --status` and `--kill` mean, by id, name or checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamer.cli.submit import driver
from streamer.cli.submit.driver_lookup import find_driver
from streamer.core.errors import StreamerError
from streamer.spark.cluster.standalone_master import SubmittedDriver

OLD, NEW, OTHER = (f"driver-2026112520483{n}-000{n}" for n in range(3))


def job(tmp_path: Path, checkpoint: str, config: str = "") -> str:
    directory = tmp_path / checkpoint / "submitted" / "20261125T204838-1"
    directory.mkdir(parents=True, exist_ok=True)
    if config:
        text = json.dumps({"arguments": ["run", f"{config}.yaml"], "variables": {}})
        (directory / driver.JOB_FILE).write_text(text)
    return str(directory / "start.py")


@pytest.fixture
def drivers(tmp_path: Path) -> list[SubmittedDriver]:
    """One that has lost its worker and runs under another id, and another stream."""
    lights = job(tmp_path, "lights", "traffic")
    return [
        SubmittedDriver(OTHER, job(tmp_path, "cars"), True),
        SubmittedDriver(NEW, lights, True),
        SubmittedDriver(OLD, lights, False),
    ]


def test_an_id_that_has_changed_is_followed_and_said(drivers: list[SubmittedDriver]) -> None:
    said: list[str] = []
    assert find_driver(OLD, drivers, said.append) == NEW
    assert said == [f"{OLD} has lost its worker, and goes on as {NEW}"]
    assert find_driver(NEW, drivers) == NEW
    assert find_driver("driver-20200101000000-0000", drivers) == "driver-20200101000000-0000"


def test_one_that_has_ended_for_good_keeps_its_id(drivers: list[SubmittedDriver]) -> None:
    assert find_driver(OLD, drivers[2:]) == OLD
    assert find_driver("lights", drivers[2:]) == OLD


@pytest.mark.parametrize("wanted", ["lights", "traffic", "{}/lights", "file://{}/lights"])
def test_a_driver_is_found_by_name_and_by_checkpoint(
    wanted: str, drivers: list[SubmittedDriver], tmp_path: Path
) -> None:
    assert find_driver(wanted.format(tmp_path), drivers) == NEW


def test_what_nobody_runs_is_an_error_with_what_runs(
    drivers: list[SubmittedDriver], tmp_path: Path
) -> None:
    with pytest.raises(StreamerError) as caught:
        find_driver("light", drivers)
    assert str(caught.value) == (
        "the master knows no driver of 'light', expected an id, the name of a stream or its "
        f"checkpoint; those that run have {tmp_path}/cars, {tmp_path}/lights"
    )


def test_a_name_that_two_have_is_refused(drivers: list[SubmittedDriver], tmp_path: Path) -> None:
    more = SubmittedDriver("driver-20261125204840-0003", job(tmp_path, "b/lights"), True)
    with pytest.raises(StreamerError, match=f"several drivers are called 'lights': .*{NEW} "):
        find_driver("lights", [more, *drivers])
