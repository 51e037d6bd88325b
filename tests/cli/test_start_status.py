"""A real start on a terminal: each phase shows in its order, and no second passes without a change.

The input is read slowly, so that the first micro-batch shows how far it is too.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.slowness import wall_slowness

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
CONFIG = """\
input: { label: cars, file: { paths: [cars.jsonl] } }
pipeline: { processors: [ { sleep: { duration: 10ms } } ] }
output: { drop: {} }
spark: { master: 'local[2]' }
"""
LINES = 500
_PHASE = re.compile(r"[⠀-⣿] (.+?)  \d+\.\d s")
_CLEAR = "\r\x1b[2K"


class Drawn(NamedTuple):
    """What a terminal has shown: when, in seconds, and the text of the line."""

    at: float
    text: str


def drawn_by(*arguments: str) -> list[Drawn]:
    """Run the program on a terminal; return what its last line was, time after time."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
    env = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "streamer.cli.main", *arguments]
    found = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs, env=env
    ) as process:
        os.close(theirs)
        # A terminal whose other side has been closed cannot be read.
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            now = time.monotonic()
            found += [Drawn(now, text.strip()) for text in part.decode().split(_CLEAR)]
    os.close(ours)
    assert process.returncode == 0, found
    return [one for one in found if one.text]


def test_a_start_shows_each_phase_and_changes_every_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("start.yaml").write_text(CONFIG)
    Path("cars.jsonl").write_text("".join(f'{{"id":{n:06d}}}\n' for n in range(LINES)))
    drawn = drawn_by("-c", "start.yaml", "--checkpoint", "checkpoint")
    phases = [found[1] for _, text in drawn if (found := _PHASE.match(text))]
    order = [name for name, _ in itertools.groupby(phases)]
    expected = [
        "planning",
        "opening the checkpoint",
        "connecting to cars",
        "starting Java",
        "starting Spark",
        "starting the query",
        "first micro-batch",
    ]
    # What is over within a fifth of a second may not show at all.
    assert order == [name for name in expected if name in order], order
    assert {"starting Java", "starting Spark", "first micro-batch"} <= set(order)
    shown = [one.text for one in drawn]
    assert not any("Opening the checkpoint" in text for text in shown), "it is drawn, not logged"
    # Half of the messages take more than two seconds: reports come twice a second.
    reading = [text for text in shown if text.endswith(" messages read")]
    shares = [int(found[1]) for text in reading if (found := re.search(r"(\d+) % of cars", text))]
    assert shares == sorted(shares) and len(set(shares)) >= 3, shown
    assert any(" s left, " in text for text in reading), reading
    # Until the first micro-batch is delivered; what comes then is not the start's.
    last = max(number for number, one in enumerate(drawn) if _PHASE.match(one.text))
    changes = [
        one for one, before in zip(drawn[1:], drawn, strict=False) if one.text != before.text
    ]
    gaps = [
        (later.at - earlier.at, earlier.text)
        for earlier, later in itertools.pairwise(changes)
        if later.at <= drawn[last].at
    ]
    # A machine that others keep busy may stop all of its processes for a moment.
    assert max(gaps)[0] < wall_slowness(), max(gaps)
