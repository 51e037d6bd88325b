"""Answers to shells: the protocol that the scripts of all three share."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import click
import pytest

from streamer.cli.completion.answer import answer_shell, format_answer
from streamer.cli.completion.scripts import SCRIPTS, VARIABLE
from streamer.cli.main import _COMMANDS, cli, invoke
from streamer.components import catalog
from streamer.sdk.spec import Kind

STREAMS = {"cars": {"state": "running"}, "carts": {"state": "failed"}, "$(rm)": {"state": "x"}}


def answer(line: str, shell: str = "bash") -> list[tuple[str, str]]:
    """Return types and values of the completions of a command line."""
    environment = {"COMP_LINE": line, "COMP_COMMAND": "streamer", "COMP_WORDBREAKS": " :="}
    parts = (one.split("\t") for one in format_answer(cli, shell, environment))
    return [(kind, value) for kind, value, _ in parts]


def values(line: str) -> list[str]:
    return [value for _, value in answer(line)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STREAMER_URL", "http://127.0.0.1:9")


@pytest.fixture
def service() -> Iterator[str]:
    """A server that answers as a service with streams does."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = {
                "/streams": STREAMS,
                "/streams/cars/revisions": [{"revision": 12}, {"revision": 2}],
            }
            known = self.headers["Authorization"] == "Bearer t"
            self.send_response(200 if known else 401)
            self.end_headers()
            self.wfile.write(json.dumps(found[self.path]).encode() if known else b"no")

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "line",
    [
        *("streamer -c con", "streamer run con", "streamer lint a.yaml con", "streamer tap con"),
        *("streamer --config=con", "streamer diff a.yaml con", "streamer query con"),
        *("streamer streams -o con", "streamer deploy con", "streamer blobl -f con"),
        *("streamer lint -r con", "streamer lint -e con", "streamer template lint con"),
        *("sudo streamer -c con", "A=1 streamer -c con"),
    ],
)
def test_files_are_completed_by_the_shell(line: str) -> None:
    assert answer(line) == [("file", "con")]


def test_directories_are_completed_by_the_shell() -> None:
    assert answer("streamer --checkpoint sta") == [("dir", "sta")]
    assert answer("streamer docs --write sta") == [("dir", "sta")]


def test_no_argument_that_names_a_file_or_a_stream_is_left_out() -> None:
    shown: dict[str, object] = {"FILE": "file", "DIR": "dir", "PATH…": "file", "[PATH]…": "file"}
    for name in _COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        with click.Context(command, info_name=name) as context:
            for param in command.params:
                kind = shown.get(param.metavar or "")
                if kind is None and param.name in ("file", "paths", "old", "new"):
                    kind = "file"
                if kind is not None:
                    items = param.shell_complete(context, "x")
                    assert [item.type for item in items] == [kind], (name, param.name)
                if param.metavar == "ID" and param.name == "stream_id":
                    assert param.shell_complete.__self__._custom_shell_complete is not None


def test_commands_and_options_are_completed() -> None:
    assert values("streamer li") == ["list", "lint", "list-streams"]
    assert values("streamer tap --inp") == ["--input"]
    assert values("streamer tap --format j") == ["json"]
    assert values("streamer completion ") == ["bash", "zsh", "fish"]


def test_names_of_components_are_completed_with_their_summaries() -> None:
    assert values("streamer list out") == ["outputs"]
    assert values("streamer list outputs ") == [
        *(name for name in values("streamer list ") if name != "outputs"),
        *sorted(catalog.component_names(Kind.OUTPUT)),
    ]
    assert values("streamer list bloblang-methods upperc") == ["uppercase"]
    environment = {"COMP_LINE": "streamer docs processors mapping", "COMP_COMMAND": "streamer"}
    spec = catalog.find_spec(Kind.PROCESSOR, "mapping")
    assert spec is not None
    assert list(format_answer(cli, "zsh", environment)) == [f"plain\tmapping\t{spec.summary}"]


def test_pages_kinds_and_recipes_are_completed() -> None:
    assert values("streamer docs choosing") == ["choosing-a-window"]
    assert values("streamer docs sea") == ["search"]
    assert values("streamer docs cookbook/live_c") == ["cookbook/live_counts"]
    assert values("streamer docs windows wi") == []


def test_the_part_of_a_new_config_in_hand_is_completed() -> None:
    assert ("part", "stdin/mapping") in answer("streamer create stdin/map")
    assert ("part", "stdin/noop,mapping") in answer("streamer create stdin/noop,map")
    assert ("part", "stdin//stdout") in answer("streamer create stdin//stdo")
    assert ("part", "stdin/tumbling_window") in answer("streamer create stdin/tumb")
    whole = "stdin/tumbling_window/mapping/stdout"
    assert ("part", whole) in answer(f"streamer create {whole[:-2]}")
    assert values("streamer create a/b/c/d/e") == []


def test_bash_gets_what_stands_behind_its_last_word_break() -> None:
    assert values("streamer -c example:traffic_light_h") == ["traffic_light_hourly"]
    assert ("plain", "example:traffic_light") in answer("streamer -c exam", "zsh")
    Path("example.yaml").touch()
    assert answer("streamer -c exam") == [("file", "exam")]


def test_labels_of_buffers_are_those_of_the_config() -> None:
    window = "tumbling_window: {size: 1m, timestamp_mapping: root = 1}, output: {drop: {}}"
    Path("c.yaml").write_text(f"buffers: [{{label: minutes, {window}}}, {{label: all, {window}}}]")
    assert values("streamer timeline c.yaml --buffer ") == ["minutes", "all"]
    assert values("streamer -c c.yaml timeline --buffer m") == ["minutes"]
    Path("c.yaml").write_text("buffer: [")
    assert values("streamer timeline c.yaml --buffer ") == []


def test_streams_are_those_of_the_service(
    service: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # A name that a shell would run is none.
    assert values(f"streamer logs --url {service} --token t ") == ["cars", "carts"]
    monkeypatch.setenv("STREAMER_URL", service)
    monkeypatch.setenv("STREAMER_TOKEN", "t")
    assert values("streamer windows cart") == ["carts"]
    assert values("streamer rollback cars 1") == ["12"]
    monkeypatch.setenv("STREAMER_TOKEN", "another")
    assert values("streamer windows cart") == []
    monkeypatch.setenv("STREAMER_URL", "http://127.0.0.1:9")
    assert values("streamer windows cart") == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("line", ["streamer bogus x ", "streamer list --format cue ", "streamer '"])
def test_a_line_that_is_wrong_has_no_completions_and_no_error(
    line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    answer(line)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_script_is_printed_by_the_command_and_as_other_programs_do(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert answer_shell(cli, {VARIABLE: f"{shell}_source"}) == 0
    assert capsys.readouterr().out == script
    assert answer_shell(cli, {VARIABLE: "tcsh_source"}) == 1


def test_completing_reads_no_config_and_starts_no_spark() -> None:
    lines = ("-c con", "list outputs k", "docs win", "create stdin/ma", "tap --in", "logs x")
    code = (
        "import sys\nfrom streamer.cli.main import cli\n"
        "from streamer.cli.completion.answer import format_answer\n"
        f"for line in {lines!r}:\n"
        "    env = {'COMP_LINE': 'streamer ' + line, 'COMP_COMMAND': 'streamer'}\n"
        "    assert line.startswith('logs') or list(format_answer(cli, 'zsh', env)), line\n"
        "heavy = 'streamer.plan', 'streamer.config', 'streamer.components.catalog', 'pyspark'\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_shell_is_that_of_the_user(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert invoke(["completion"]) == 0
    assert capsys.readouterr().out == SCRIPTS["zsh"]
    monkeypatch.setenv("SHELL", "/bin/csh")
    assert invoke(["completion"]) == 1
    assert "name the shell: bash, zsh, fish" in capsys.readouterr().err
