"""The page from zero to Kafka: its commands run in order, and print what it says.

`sh kafka` blocks are one session, as its reader has it: a broker, a stream, and its results.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.docs.test_docs import ROOT, blocks
from tests.servers import lasting_port, listens
from tests.servers.kafka.jars import broker_jars

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PAGE = ROOT / "streamer/docs/kafka.md"
CONFIG = ROOT / "configs/kafka_traffic_lights.yaml"


@dataclass(frozen=True)
class Shell:
    """Runs commands of the page with a broker, a port and files of their own."""

    home: Path
    port: int
    controller: int

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        streamer = self.home / "streamer"
        streamer.write_text(f'#!/bin/sh\nexec {sys.executable} -m streamer.cli.main "$@"\n')
        streamer.chmod(0o755)
        own = {"KAFKA_HOME": f"{self.home}/kafka", "KAFKA_PORT": str(self.port)}
        own["KAFKA_CONTROLLER_PORT"] = str(self.controller)
        own |= {"STREAMER": str(streamer), "STREAMER_BROKER_JARS": str(broker_jars())}
        shell = ["sh", "-euc", command]
        return subprocess.run(
            shell,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path, lasting_port(), lasting_port())
    yield shell
    shell.run("deploy/dev/kafka.sh clean")


def _shown(text: str, shell: Shell) -> str:
    return text.replace(str(shell.port), "9092").replace(
        f"{shell.home}/kafka", "~/.local/state/streamer/kafka"
    )


def test_the_commands_of_the_page_run_in_order_and_print_what_it_says(shell: Shell) -> None:
    whole, *steps = [block for block in blocks(PAGE) if block.info == "sh kafka"]
    for step in steps:
        ran = shell.run(step.text)
        assert (ran.returncode, _shown(ran.stdout, shell)) == (0, step.prints), step.text
    assert not listens(shell.port)
    # Every step may be repeated: this goes on with the cars and the checkpoint that are there.
    assert whole.text == "deploy/dev/kafka.sh\n"
    ran = shell.run(whole.text)
    (results,) = (step.prints for step in steps if "consume" in step.text)
    lines = [line for line in ran.stdout.splitlines(keepends=True) if line.startswith("{")]
    assert (ran.returncode, "".join(lines)) == (0, results), ran.stdout
    assert not listens(shell.port)


def test_the_page_shows_the_config_as_it_is() -> None:
    (shown,) = (b for b in blocks(PAGE) if b.name == "kafka_traffic_lights.yaml")
    whole, page = (yaml.safe_load(text) for text in (CONFIG.read_text(), shown.text))
    assert {name: whole[name] for name in page} == page
    assert set(whole) == {*page, "tests"}
