"""The checkpoint's place: one for each config's path, in the user's state directory."""

from pathlib import Path

import pytest

from streamer.plan.checkpoint_dir import default_checkpoint


def test_it_lies_in_the_state_directory_under_the_configs_name(tmp_path):
    place = default_checkpoint("conf/cars.yaml", {"XDG_STATE_HOME": str(tmp_path)})
    assert place.parent == tmp_path / "streamer"
    assert place.name.startswith("cars-")


def test_without_a_state_directory_it_lies_in_the_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for env in ({}, {"XDG_STATE_HOME": ""}):
        place = default_checkpoint("cars.yaml", env)
        assert place.parent == tmp_path / ".local" / "state" / "streamer"


def test_it_is_the_same_however_the_path_is_written(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    env = {"XDG_STATE_HOME": "/state"}
    ways = ("cars.yaml", "./cars.yaml", "x/../cars.yaml", str(tmp_path / "cars.yaml"))
    assert len({default_checkpoint(way, env) for way in ways}) == 1


def test_configs_of_one_name_in_two_directories_have_two():
    env = {"XDG_STATE_HOME": "/state"}
    assert default_checkpoint("/a/cars.yaml", env) != default_checkpoint("/b/cars.yaml", env)


def test_without_a_config_it_belongs_to_the_working_directory(monkeypatch, tmp_path):
    env = {"XDG_STATE_HOME": "/state"}
    places: set[Path] = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        places.add(default_checkpoint("", env))
    assert len(places) == 2 and all(place.name.startswith("stdin-") for place in places)


def test_a_config_by_url_has_its_checkpoint_wherever_the_program_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"XDG_STATE_HOME": "/state"}
    here = default_checkpoint("s3://configs/rows.yaml", env)
    monkeypatch.chdir(tmp_path)
    assert default_checkpoint("s3://configs/rows.yaml", env) == here
    assert default_checkpoint("rows.yaml", env) != here
