"""The local rate limit: so many in an interval, for all processes together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from streamer.components.catalog import build_context
from streamer.components.rate_limits.local import LocalRateLimit
from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.plan import make_plan
from streamer.sdk.rate_limit import RateLimit, RateLimitError, wait_for_access
from streamer.sdk.spec import Kind

SECOND = 10**9


class Run:
    """An execution whose clock moves only while it sleeps."""

    def __init__(self) -> None:
        self.now = 5 * SECOND
        self.slept: list[int] = []
        self.counted: list[str] = []
        self.logged: list[str] = []
        self.ex = Execution(
            lambda: 0,
            lambda level, text, fields: self.logged.append(text),
            lambda name, by=1, **labels: self.counted.append(name),
            elapsed=lambda: self.now,
            sleep=self._sleep,
        )

    def _sleep(self, ns: int) -> None:
        self.slept.append(ns)
        self.now += ns


CONFIG = """
input: {{generate: {{mapping: root = 1}}}}
pipeline: {{processors: [{{rate_limit: {{resource: slow}}}}]}}
rate_limit_resources:
  - label: slow
    local: {{{fields}}}
"""


def limit(fields: str) -> RateLimit:
    config = parse_config(CONFIG.format(fields=fields), env={})
    found: RateLimit = build_context(config.resources).resource(Kind.RATE_LIMIT, "slow")
    return found


def test_what_is_too_much_waits_until_the_interval_is_over() -> None:
    slow, run = limit("count: 2, interval: 10s"), Run()
    assert [slow.access(run.ex), slow.access(run.ex)] == [0, 0]
    run.now += 4 * SECOND
    assert slow.access(run.ex) == 6 * SECOND
    run.now += 6 * SECOND
    assert [slow.access(run.ex) for _ in range(3)] == [0, 0, 10 * SECOND]


def test_accesses_are_counted_by_their_answer() -> None:
    slow, run = limit("count: 1, interval: 10s"), Run()
    slow.access(run.ex)
    slow.access(run.ex)
    checked = "rate_limit_checked"
    assert run.counted == [checked, checked, "rate_limit_triggered"]


def test_messages_wait_for_the_limit_in_order() -> None:
    config = parse_config(CONFIG.format(fields="count: 2, interval: 10s"), env={})
    (processor,) = build_context(config.resources).build_all(config.processors)
    run, batch = Run(), [Message(str(n).encode()) for n in range(5)]
    assert processor.process(batch, run.ex) == [batch]
    assert run.slept == [10 * SECOND, 10 * SECOND]


def test_a_limit_that_cannot_be_asked_is_asked_again_after_a_second() -> None:
    class Away:
        asked = 0

        def access(self, ex: Execution) -> int:
            self.asked += 1
            if self.asked < 3:
                raise RateLimitError("nobody is there")
            return 0

    run = Run()
    wait_for_access(Away(), run.ex)
    assert run.slept == [SECOND, SECOND]
    assert run.logged == ["Failed to access rate limit: nobody is there"] * 2


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    run = Run()
    with pytest.raises(OSError, match="none"):
        LocalRateLimit(1, SECOND, lambda: tmp_path / "none" / "file").access(run.ex)


ASKING = """
import sys
from pathlib import Path
from streamer.core.execution import Execution
from streamer.components.rate_limits.local import LocalRateLimit
limit, ex = LocalRateLimit(100, 10**15, lambda: Path(sys.argv[1])), Execution(lambda: 0)
print("ready", flush=True)
sys.stdin.readline()
print(sum(limit.access(ex) == 0 for _ in range(80)))
"""


def test_processes_share_a_limit(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ASKING, str(tmp_path / "limit")]
    pipe = subprocess.PIPE
    asking = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(3)]
    for one in asking:
        assert one.stdout is not None and one.stdout.readline() == "ready\n"
    granted = [int(one.communicate("go\n")[0]) for one in asking]
    assert sum(granted) == 100


def test_workers_of_one_run_find_one_file_and_other_runs_another() -> None:
    config = parse_config(CONFIG.format(fields="count: 1"), env={})
    one, other = make_plan(config), make_plan(config)
    directory = one.context().shared_directory()
    try:
        assert one.context().shared_directory() == directory
        assert other.context().shared_directory() != directory
        assert directory.stat().st_mode & 0o077 == 0
    finally:
        one.forget()
        other.forget()
    assert not directory.exists()
