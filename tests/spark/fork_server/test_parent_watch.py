"""A process that was forked ends with the one that has forked it, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.processes import runs

FORKS = """
import os, sys, time
from streamer.spark.fork_server.parent_watch import end_children_with_this_process
end_children_with_this_process()
pid = os.fork()
if pid == 0:
    # What a fork forks for a while lives on its own.
    if os.fork() == 0:
        os._exit(7)
    if os.waitstatus_to_exitcode(os.wait()[1]) != 7:
        os._exit(1)
    time.sleep(60)
print(pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_a_fork_ends_when_what_has_forked_it_is_killed(how: int, platform: str) -> None:
    # Elsewhere the kernel tells nobody, and the fork looks itself.
    program = f"import sys; sys.platform = {platform!r}\n{FORKS}"
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    try:
        time.sleep(0.3)
        assert runs(pid)
        parent.send_signal(how)
        parent.wait()
        until = time.monotonic() + 10
        while runs(pid) and time.monotonic() < until:
            time.sleep(0.05)
        assert not runs(pid)
    finally:
        parent.kill()
        parent.stdout.close()
        if runs(pid):
            os.kill(pid, signal.SIGKILL)


def test_a_fork_of_a_fork_does_its_work() -> None:
    program = """
import os
from streamer.spark.fork_server.parent_watch import end_children_with_this_process
end_children_with_this_process()
def forked(work):
    pid = os.fork()
    if pid == 0:
        os._exit(work())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(forked(lambda: forked(lambda: 7)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "7\n"
