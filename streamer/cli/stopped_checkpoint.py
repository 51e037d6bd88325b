"""The checkpoint of a stream that does not run, as commands take it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

from streamer.config import Config
from streamer.plan import Plan
from streamer.plan.checkpoint_dir import is_remote

if TYPE_CHECKING:
    from streamer.spark.checkpoint.checkpoint import Checkpoint

_LOCAL_SETTINGS: Final = ("spark.driver.",)
_REMOTE_SETTINGS: Final = ("spark.driver.", "spark.hadoop.", "spark.jars")
"""Settings that reading and writing a checkpoint takes, wherever the stream runs."""

_MAX_WAIT_S: Final = 1.0
"""Seconds to wait for who holds a checkpoint; the JVM of a program that has ended gets more."""


@contextmanager
def open_stopped_checkpoint(
    config: Config, plan: Plan, named: str, command: str
) -> Iterator[tuple[Checkpoint, Callable[[], Any]]]:
    """Take a checkpoint, and give what starts Spark if that is needed.

    Args:
        config: of the stream.
        plan: of the config.
        named: where the checkpoint is.
        command: the command, after which Spark is named.

    Raises:
        StreamerError: it is in use, or cannot be reached.
    """
    from streamer.plan.plan import count_cores
    from streamer.spark.checkpoint.checkpoint import Checkpoint
    from streamer.spark.checkpoint.remote_checkpoint import file_manager_settings, start_and_acquire
    from streamer.spark.jars.spark_settings import with_checkpoint_jars
    from streamer.spark.session.session_start import start_session

    sessions: list[Any] = []

    def start(lock: int) -> Any:
        if not sessions:
            # What is read is read here, wherever the stream runs.
            given: Mapping[str, str] = {
                key: str(value)
                for key, value in config.spark["conf"].items()
                if key.startswith(_REMOTE_SETTINGS if is_remote(named) else _LOCAL_SETTINGS)
            }
            given = with_checkpoint_jars(
                given, os.environ, _ignore_log, config.spark["jars_directory"], named
            )
            conf = {**(file_manager_settings(named) if is_remote(named) else {}), **given}
            name = f"streamer {command} {plan.name}"
            master = f"local[{count_cores('')}]"
            sessions.append(start_session(name, master, conf, _ignore_log, "OFF", (lock,)))
        return sessions[0]

    with ExitStack() as open_:
        open_.callback(lambda: [one.stop() for one in sessions])
        if is_remote(named):
            checkpoint = Checkpoint(
                start_and_acquire(named, os.environ, start, _ignore_log, only_if_last_here=True)[0]
            )
        else:
            checkpoint = Checkpoint(named, wait=_MAX_WAIT_S)
        # Spark, which reaches it, ends after that.
        open_.callback(checkpoint.close)
        yield checkpoint, lambda: start(checkpoint.lock)


def _ignore_log(*_: Any) -> None:
    """Take a log line."""
