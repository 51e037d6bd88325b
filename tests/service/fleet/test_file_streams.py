"""Streams that come, change and go with their files, on runs without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamer.core.errors import StreamerError
from streamer.service.fleet.deploys import ChangeOptions
from streamer.service.fleet.file_streams import FileStreams
from streamer.service.fleet.stream_ids import file_ids
from streamer.service.run.file_watcher import FileStates
from tests.service.fleet.pretending import GENERATE, Pretended, config_text, pretended

TEMPLATE = """\
name: marked
type: processor
fields: []
mapping: |
  root.mapping = "root = \\"%s\\""
"""


class Folder:
    """A folder of configs, and a service that looks at it when the test says so."""

    def __init__(self, service: Pretended, path: Path, shared: list[str]) -> None:
        self.service = service
        self.path = path
        self.streams = FileStreams(
            service.manager, [str(path)], lambda: shared, ChangeOptions("file")
        )
        self.looks = FileStates(self.streams.files)

    def write(self, name: str, text: str) -> None:
        (self.path / f"{name}.yaml").write_text(text)

    def look(self) -> None:
        self.streams.apply_changes(self.looks.commit_changes())

    def said(self, text: str) -> list[dict]:
        return [dict(fields) for _, line, fields in self.service.log if text in line]

    @property
    def on(self) -> dict[str, str]:
        return self.service.stage.on


@contextmanager
def folder(
    tmp_path: Path, *names: str, shared: str = "", templates: tuple[str, ...] = ()
) -> Iterator[Folder]:
    path = tmp_path / "configs"
    path.mkdir()
    for name in names:
        (path / f"{name}.yaml").write_text(config_text(name))
    with pretended(tmp_path / "state", templates=templates) as service:
        boot = service.manager.startup
        boot.start_streams(boot.read_files(file_ids([str(path)], "/benthos")))
        yield Folder(service, path, [shared] if shared else [])


def test_a_file_that_changes_changes_its_stream_alone(tmp_path: Path) -> None:
    with folder(tmp_path, "a", "b") as here:
        here.write("a", config_text("two"))
        here.look()
        assert "two" in here.on["a"]
        assert [one for one, _ in here.service.stage.started] in (["a", "b", "a"], ["b", "a", "a"])
        assert here.service.manager.registry.get("a").revision.number == 2


def test_a_new_file_is_a_new_stream_and_one_that_is_gone_stops(tmp_path: Path) -> None:
    with folder(tmp_path, "a") as here:
        here.write("b", config_text("new"))
        here.look()
        assert "new" in here.on["b"]
        (here.path / "a.yaml").unlink()
        here.look()
        assert set(here.on) == {"b"}
        assert set(here.service.manager.registry.streams()) == {"b"}
        assert (tmp_path / "state" / "a").exists(), "the checkpoint stays"
        here.write("a", config_text("again"))
        here.look()
        assert "again" in here.on["a"]


def test_a_file_that_is_wrong_leaves_its_stream_as_it_is_and_says_so_once(tmp_path: Path) -> None:
    with folder(tmp_path, "a") as here:
        here.write("a", "inptu: {}\n")
        here.look()
        here.look()
        assert "a" in here.on["a"] and here.service.state("a") == "running"
        (found,) = here.said("cannot run so")
        assert found["stream"] == "a" and "did you mean input" in found["lint"]
        assert found["lint"].startswith(str(here.path / "a.yaml(1,1)"))


def test_a_new_file_that_does_not_start_is_nothing_to_the_others(tmp_path: Path) -> None:
    with folder(tmp_path, "a") as here:
        here.service.stage.fails.add("broken")
        here.write("a", config_text("broken"))
        here.look()
        assert "broken" not in here.on["a"]
        assert here.said("does not run so")
        here.write("b", config_text("fine"))
        here.look()
        assert "fine" in here.on["b"]


def test_names_that_are_wrong_are_said_once_and_leave_the_streams(tmp_path: Path) -> None:
    with folder(tmp_path, "a") as here:
        (here.path / "b c.yaml").write_text(config_text("b"))
        here.look()
        here.look()
        assert len(here.said("cannot be taken")) == 1 and set(here.on) == {"a"}
        (here.path / "b c.yaml").unlink()
        here.write("a", config_text("two"))
        here.look()
        assert "two" in here.on["a"]


@pytest.mark.parametrize("name", ["metrics", "benthos"])
def test_a_file_of_the_name_of_a_path_of_the_service_is_refused(name: str, tmp_path: Path) -> None:
    with folder(tmp_path, "a") as here:
        here.write(name, config_text("b"))
        here.look()
        (found,) = (line for _, line, _ in here.service.log if "cannot be taken" in line)
        assert f"{name}.yaml: {name!r} cannot be the id of a stream" in found
        assert "rename the file" in found and set(here.on) == {"a"}
        with pytest.raises(StreamerError, match=f"own at /{name}"):
            file_ids([str(here.path)], "/benthos")


def test_the_stream_of_the_api_is_not_a_files(tmp_path: Path) -> None:
    with folder(tmp_path, "a") as here:
        here.service.manager.deploys.create("b", config_text("api"), ChangeOptions())
        here.write("b", config_text("file"))
        here.look()
        assert "api" in here.on["b"] and here.said("does not run so")


def test_files_that_mappings_read_change_the_streams_that_read_them(tmp_path: Path) -> None:
    more = tmp_path / "more.blobl"
    more.write_text('map mark { root = "first" }\n')
    imports = (
        "input: { generate: { mapping: root = 1 } }\noutput: { drop: {} }\npipeline:\n"
        f'  processors:\n    - mapping: |\n        import "{more}"\n'
        '        root = this.apply("mark")\n'
    )
    with folder(tmp_path, "a", "b") as here:
        here.write("b", imports)
        here.look()
        started = here.service.stage.started
        before = len(started)
        here.look()
        assert len(started) == before, "what it reads is no change of it"
        more.write_text('map mark { root = "second" }\n')
        here.look()
        assert [one for one, _ in started[before:]] == ["b"]
        more.write_text("map mark {\n")
        here.look()
        (found,) = here.said("cannot run so")
        assert found["stream"] == "b"


def test_templates_are_there_for_files_and_for_the_api_and_are_watched(tmp_path: Path) -> None:
    template = tmp_path / "marked.yaml"
    template.write_text(TEMPLATE % "first")
    with folder(tmp_path, "a", shared=str(template), templates=(str(template),)) as here:
        marked = f"{GENERATE}pipeline: {{ processors: [ {{ marked: {{}} }} ] }}\n"
        here.write("b", marked)
        here.look()
        deploys = here.service.manager.deploys
        with ThreadPoolExecutor(1) as thread:
            thread.submit(deploys.create, "c", marked, ChangeOptions()).result()
        assert set(here.on) == {"a", "b", "c"}
        before = here.service.manager.registry.get("b").revision.number
        template.write_text(TEMPLATE % "second")
        here.look()
        assert here.service.manager.registry.get("b").revision.number > before
        template.write_text("name: marked\n")
        here.look()
        assert {one["stream"] for one in here.said("cannot run so")} >= {"b"}
        assert all("marked.yaml" in one["lint"] for one in here.said("cannot run so"))
