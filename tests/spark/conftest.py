"""One Spark session for the whole run of the suite, and streams that run in it to their end."""

import io
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.engine.report.stream_metrics import Counts, Snapshot
from streamer.plan import make_plan


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    from streamer.spark.jars.spark_settings import with_checkpoint_jars
    from streamer.spark.session.session_start import start_session

    def log(*line: object) -> None: ...

    conf = with_checkpoint_jars({}, os.environ, log, None, "s3a://of/tests")
    spark = start_session("tests", "local[2]", conf, log, "INFO")
    yield spark
    spark.stop()


@dataclass
class Ran:
    """What a stream did."""

    out: bytes
    log: list[tuple[str, str, dict]] = field(default_factory=list)
    last: Snapshot = field(default_factory=Snapshot)
    counts: Counts = field(default_factory=dict)

    @property
    def lines(self) -> list[bytes]:
        return self.out.split(b"\n")[:-1]

    def said(self, text: str) -> list[str]:
        return [line for _, line, _ in self.log if text in line]


class _Stdout:
    """Stands for `sys.stdout`: what the driver prints is kept."""

    def __init__(self) -> None:
        self.buffer = io.BytesIO()


Runner = Callable[..., Ran]


@pytest.fixture
def run_stream(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Run a config's text until its input ends, or until `until` says so; `watch` looks on."""
    from streamer.spark.checkpoint.checkpoint import Checkpoint
    from streamer.spark.query.input_session import ProcessEnds
    from streamer.spark.query.stream import Stream

    def run(
        text: str,
        stdin: bytes = b"",
        checkpoint: str = "checkpoint",
        seconds: float = 300,
        until: Callable[[Snapshot], bool] = lambda snapshot: False,
        watch: Callable[[Any], None] = lambda stream: None,
    ) -> Ran:
        stdout = _Stdout()
        ran = Ran(b"")
        held = Checkpoint(tmp_path / checkpoint)
        pipe = io.BytesIO(stdin)
        monkeypatch.setattr("streamer.spark.query.query_run.sys.stdout", stdout)
        try:
            plan = make_plan(parse_config(text, "test.yaml"))
            ends = ProcessEnds(read_stdin=pipe.read)
            stream = Stream(plan, held, lambda *line: ran.log.append(line), ends)
            stream.start(session)
        except BaseException:
            held.close()  # so that the next may be started on it
            raise
        end = time.monotonic() + seconds
        try:
            while not stream.poll() and not until(stream.snapshot()):
                watch(stream)
                assert time.monotonic() < end, f"did not end: {stream.snapshot()} {ran.log[-5:]}"
                time.sleep(0.05)
            ran.last = stream.snapshot()
        finally:
            assert stream.stop(120)
            held.close()
        ran.counts = dict(stream.meters.counts)
        ran.out = stdout.buffer.getvalue()
        return ran

    return run
