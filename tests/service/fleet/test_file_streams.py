"""Streams that come, change and go with their files, on runs without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamer.core.errors import StreamerError
from streamer.service.fleet.deploys import ChangeOptions
from streamer.service.fleet.file_streams import FileStreams
from streamer.service.fleet.refused_files import redact_findings
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
        (found,) = here.said(f"Change of {here.path / 'a.yaml'} refused: ")
        (finding,) = found["findings"]
        assert found["stream"] == "a" and "did you mean input" in finding
        assert finding.startswith(str(here.path / "a.yaml(1,1)"))
        # The stream's own log says it, too, and so does the list.
        registry = here.service.manager.registry
        assert "refused" in registry.get("a").log_tail.lines_after(0)[-1].text
        status = registry.list_statuses()["a"]
        assert (status["state"], status["refusal"]["findings"]) == ("running", [finding])
        here.write("a", config_text("two"))
        here.look()
        assert registry.list_statuses()["a"]["refusal"] is None


def test_a_new_file_that_is_wrong_is_an_entry_of_the_list_until_it_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_WORD", "swordfish")
    with folder(tmp_path, "a") as here:
        here.write("b", "input: { stdin: { codec: '${THE_WORD}' } }\noutput: { drop: {} }\n")
        here.look()
        registry = here.service.manager.registry
        listed = registry.list_statuses()
        assert list(listed) == ["a", "b"]
        one = listed["b"]
        assert (one["state"], one["active"], one["condition"]["name"]) == (
            *("refused", False, "refused"),
        )
        assert one["refusal"]["file"] == one["source"] == str(here.path / "b.yaml")
        assert one["refusal"]["text"].endswith("b.yaml refused; its stream does not run")
        assert "b.yaml(1," in one["refusal"]["findings"][0]
        assert "swordfish" not in str(one) + str(here.service.log)
        # Nothing is known of a stream that is not there, so nothing says 0.
        assert (one["messages"], one["errors"], one["open_windows"]) == (None, None, None)
        here.write("b", config_text("fine"))
        here.look()
        assert registry.list_statuses()["b"]["state"] == "running"
        here.write("c", "nothing")
        here.look()
        (here.path / "c.yaml").unlink()
        here.look()
        assert list(registry.list_statuses()) == ["a", "b"]


def test_a_file_that_is_wrong_at_the_start_is_refused_and_the_others_run(tmp_path: Path) -> None:
    path = tmp_path / "configs"
    path.mkdir()
    (path / "a.yaml").write_text(config_text("a"))
    (path / "b.yaml").write_text("input: { generate: { mapping: 'root = ' } }\n")
    with pretended(tmp_path / "state") as service:
        boot = service.manager.startup
        files = file_ids([str(path)], "/benthos")
        with pytest.raises(StreamerError, match="b.yaml"):
            boot.read_files(files, strict=True)
        boot.start_streams(boot.read_files(files))
        assert set(service.stage.on) == {"a"}
        assert service.manager.registry.list_statuses()["b"]["state"] == "refused"
        # Its file is watched from the start.
        here = Folder(service, path, [])
        here.write("b", config_text("b"))
        here.look()
        assert set(here.on) == {"a", "b"}


def test_a_service_of_which_no_file_is_right_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("nothing\n")
    with pretended(tmp_path / "state") as service:
        files = file_ids([str(tmp_path / "b.yaml")], "/benthos")
        with pytest.raises(StreamerError, match="b.yaml"):
            service.manager.startup.read_files(files)
        service.manager.deploys.create("api", config_text("api"), ChangeOptions())
        # What the API has left runs, whatever becomes of the file.
        assert service.manager.startup.read_files(files) == {}


def test_secrets_are_not_quoted_by_what_is_said_of_a_file() -> None:
    text = "a: { password: 'hunter-two', api_key: abcdef-12, user: ${WHO} }\n"
    findings = [f"(1,1) expected a number, got '{one}'" for one in ("hunter-two", "abcdef-12")]
    findings += ["(1,2) got 'annabel' of http://u:word-of-url@host/"]
    redacted = redact_findings(findings, text, {"WHO": "annabel"})
    assert not [one for one in redacted if re.search("hunter|abcdef|annabel|word-of-url", one)]
    assert "${WHO}" in redacted[-1]


def test_a_new_file_that_does_not_start_is_nothing_to_the_others(tmp_path: Path) -> None:
    with folder(tmp_path, "a") as here:
        here.service.stage.fails.add("broken")
        here.write("a", config_text("broken"))
        here.look()
        assert "broken" not in here.on["a"]
        assert here.said("a.yaml refused: ")
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
        assert "api" in here.on["b"] and here.said("b.yaml refused: there is a stream")


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
        (found,) = here.said("refused: ")
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
        assert {one["stream"] for one in here.said("refused: ")} >= {"b"}
        assert all("marked.yaml" in one["findings"][0] for one in here.said("refused: "))
