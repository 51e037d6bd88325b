"""Work at the end of a process: of a program, of a worker that leaves, and of one left alone."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import os, sys, time
from streamer.core.process_end import mark_worker_process, run_at_process_end

path, how = sys.argv[1:]

def begin():
    run_at_process_end(lambda: open(path, "a").write("done\\n"))

if how == "program":
    begin()
elif os.fork() == 0:
    mark_worker_process()
    begin()
    if how == "leaves":
        os._exit(0)
    if how == "falls":
        sys.exit("the loop of the daemon has failed")
    if how == "forks":
        if os.fork() == 0:
            os._exit(0)
        time.sleep(1)
        os._exit(0)
    time.sleep(60)
else:
    time.sleep(1)
    if how == "killed":
        os.kill(0, 1)  # SIGHUP, for the whole group
"""


@pytest.mark.parametrize("how", ["program", "leaves", "falls", "alone", "forks", "killed"])
def test_work_is_done_once_however_a_process_ends(how: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), how], timeout=60, start_new_session=True
    )
    deadline = time.monotonic() + 30
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    assert path.read_text() == "done\n"


def test_two_ends_of_a_worker_do_the_work_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    program = (
        "import os, sys, threading, time\n"
        "from streamer.core.process_end import mark_worker_process, run_at_process_end\n"
        "def work():\n"
        "    time.sleep(1)\n"
        f"    open({str(path)!r}, 'a').write('done\\n')\n"
        "mark_worker_process()\n"
        "run_at_process_end(work)\n"
        "threading.Thread(target=os._exit, args=(0,)).start()\n"
        "time.sleep(0.3)\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", program], timeout=60, start_new_session=True)
    assert path.read_text() == "done\n"


@pytest.mark.parametrize("leaving", ["os._exit(0)", "sys.exit(0)"])
def test_work_that_does_not_come_back_ends_with_the_worker(leaving: str) -> None:
    program = (
        "import os, sys, threading\n"
        "from streamer.core import process_end\n"
        "process_end.__dict__['_GRACE_S'] = 0.5\n"
        "process_end.mark_worker_process()\n"
        "process_end.run_at_process_end(threading.Event().wait)\n"
        f"{leaving}\n"
    )
    run = subprocess.run([sys.executable, "-c", program], timeout=60, start_new_session=True)
    assert run.returncode == 1
