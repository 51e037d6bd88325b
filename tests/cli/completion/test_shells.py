"""Completion in real shells, on a terminal of tmux."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import installed
from tests.slowness import wall_slowness

SHELLS = {
    "bash": ("bash --norc --noprofile -i", 'eval "$(streamer completion bash)"'),
    "zsh": ("zsh -f -i", 'eval "$(streamer completion zsh)"'),
    "fish": ("fish --no-config", "streamer completion fish | source"),
}
SECONDS = 30.0

pytestmark = pytest.mark.slow


class Terminal:
    """A shell that a test types into."""

    def __init__(self, folder: Path, tmux: str, command: str) -> None:
        self._tmux = [tmux, "-S", str(folder / "tmux.socket"), "-f", os.devnull]
        self._patience = SECONDS * wall_slowness()
        bin_directory = folder / "bin"
        bin_directory.mkdir()
        program = bin_directory / "streamer"
        root = Path(__file__).parents[3]
        program.write_text(
            f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(root))} exec {shlex.quote(sys.executable)} "
            '-m streamer.cli.main "$@"\n'
        )
        program.chmod(0o755)
        (folder / "home").mkdir()
        env = {**os.environ, "PATH": f"{bin_directory}:{os.environ['PATH']}", "PS1": "READY "}
        env |= {"HOME": str(folder / "home"), "TERM": "xterm", "STREAMER_URL": "http://127.0.0.1:9"}
        subprocess.run(
            [*self._tmux, "new-session", "-d", "-x", "160", "-y", "50", command],
            env=env,
            cwd=folder,
            check=True,
        )

    def type(self, *keys: str) -> None:
        for key in keys:
            subprocess.run([*self._tmux, "send-keys", key], check=True)

    def see(self, text: str) -> None:
        """Wait until a text is on the screen.

        Raises:
            AssertionError: it does not come.
        """
        end = time.monotonic() + self._patience
        while text not in (screen := self._read_screen()):
            assert time.monotonic() < end, f"no {text!r} on the screen:\n{screen}"
            time.sleep(0.05)

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False)

    def _read_screen(self) -> str:
        done = subprocess.run(
            [*self._tmux, "capture-pane", "-p"], capture_output=True, text=True, check=True
        )
        return done.stdout


@pytest.fixture(params=SHELLS)
def terminal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Terminal]:
    command, load = SHELLS[request.param]
    tmux = installed("tmux", "tmux")
    installed(request.param, request.param)
    (tmp_path / "config_of_cars.yaml").touch()
    shell = Terminal(tmp_path, tmux, command)
    try:
        # What is typed before the shell reads is echoed as it is, and so proves nothing.
        shell.type("echo at_the_$((1 + 1))_prompt", "Enter") if request.param != "fish" else (
            shell.type("echo at_the_(math 1 + 1)_prompt", "Enter")
        )
        shell.see("at_the_2_prompt")
        shell.type(f"{load}; echo load''ed", "Enter")
        shell.see("loaded")
        yield shell
    finally:
        shell.close()


def test_a_shell_completes_files_commands_and_names(terminal: Terminal) -> None:
    terminal.type("streamer -c config_of", "Tab")
    terminal.see("streamer -c config_of_cars.yaml")
    terminal.type("C-u", "streamer list outputs kafka_", "Tab")
    terminal.see("streamer list outputs kafka_franz")
    terminal.type("C-u", "streamer -c example:traffic_light_h", "Tab")
    terminal.see("streamer -c example:traffic_light_hourly")
    terminal.type("C-u", "streamer create stdin/bounds", "Tab")
    terminal.see("streamer create stdin/bounds_check")
    terminal.type("C-u", "streamer docs choosing", "Tab")
    terminal.see("streamer docs choosing-a-window")
    terminal.type("C-u", "streamer tap --show", "Tab")
    terminal.see("streamer tap --show-env")
