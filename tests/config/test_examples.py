"""`example:NAME` in the place of a config's path."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamer.cli.main import invoke
from streamer.config.examples import examples_directory, list_example_names, resolve_examples
from streamer.core.errors import StreamerError

ROOT = Path(__file__).parents[2]


def test_all_configs_of_the_repository_are_examples_and_their_tests_are_none() -> None:
    root = ROOT / "configs"
    paths = {path.relative_to(root).as_posix()[:-5] for path in root.rglob("*.yaml")}
    assert set(list_example_names()) == {
        path for path in paths if not path.endswith("_streamer_test")
    }
    assert "recipes/ksqldb_sessions" in list_example_names()


def test_an_example_stands_for_its_file_wherever_a_config_may_be_named() -> None:
    file = str(examples_directory() / "traffic_light.yaml")
    assert resolve_examples(["-c", "example:traffic_light"]) == ["-c", file]
    assert resolve_examples(["--config=example:traffic_light.yaml"]) == [f"--config={file}"]
    assert resolve_examples(["blobl", "root = example:x", "a.yaml"]) == [
        *("blobl", "root = example:x", "a.yaml")
    ]


@pytest.mark.parametrize("name", ["", "no", "../pyproject", "traffic_light_hourly_streamer_test"])
def test_one_that_there_is_not_is_told_which_there_are(name: str) -> None:
    with pytest.raises(StreamerError, match=r"there are event_time_late, .*, traffic_light, "):
        resolve_examples([f"example:{name}"])


def test_commands_take_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["lint", "example:traffic_light"]) == 0
    assert invoke(["lint", "example:traffic"]) == 1
    assert capsys.readouterr().err.startswith("error: there is no example 'traffic'; there are ")


def test_the_documentation_names_examples_that_there_are() -> None:
    pages = [ROOT / "README.md", *(ROOT / "streamer" / "docs").glob("*.md")]
    named = {
        name for page in pages for name in re.findall(r"example:([a-z][\w/]*)", page.read_text())
    }
    assert named and named <= set(list_example_names())
