"""Checks of a stream's environment: a Java, a checkpoint that fits and is free, and Spark."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamer.connectors.files.writable import check_writable_file
from streamer.core.durations import format_duration
from streamer.core.errors import StreamerError
from streamer.plan import Plan
from streamer.plan.checkpoint_dir import is_remote
from streamer.sdk.spec import ParsedFields


def check_java(env: Mapping[str, str]) -> str:
    """Find a Java.

    Raises:
        StreamerError: there is none.
    """
    from streamer.spark.jvm.java import find_java

    java_home = find_java(env)
    return f"Java {java_home.version} at {java_home.runtime}, from {java_home.source}"


def check_log_file(name: str) -> str:
    """Check the log's file, whose folder must exist.

    Raises:
        StreamerError: it cannot be written; the text says why.
    """
    path = Path(name)
    state = check_writable_file(path)
    if not path.parent.is_dir():
        raise StreamerError(f"{path} cannot be made: there is no folder {path.parent}")
    return f"{path} {state}"


def check_checkpoint(plan: Plan, directory: str) -> str:
    """Check that a checkpoint fits a plan and is not in use. A new one is not made.

    Raises:
        StreamerError: it cannot be used; the text says why.
    """
    from streamer.spark.checkpoint.checkpoint import Checkpoint

    if is_remote(directory):
        from streamer.spark.checkpoint.remote_checkpoint import validate_url

        return f"{validate_url(directory)}: checked when Spark has started, with the stream"
    path = Path(directory.removeprefix("file://"))
    if not path.exists():
        check_writable_file(path / "streamer.json")
        return f"{path}: new"
    existing = Checkpoint(directory, wait=0.0)
    try:
        record = existing.read_record()
        if record.get("finished"):
            return f"{existing.directory}: of a run that has finished; the next one begins anew"
        existing.check_fingerprint(plan.fingerprint)
        if not os.access(existing.directory, os.W_OK):
            raise StreamerError(f"the checkpoint directory {existing.directory} cannot be written")
        return f"{existing.directory}: {'goes on where it was' if existing.is_resumable else 'new'}"
    finally:
        existing.close()


def check_spark(plan: Plan, section: ParsedFields, env: Mapping[str, str]) -> str:
    """Start a Spark session as the config's `spark` section says, and stop it.

    Raises:
        StreamerError: it does not start; the text has its last words.
    """
    from streamer.spark.jars.spark_settings import stream_spark_settings
    from streamer.spark.session.session_start import start_session

    def log(level: str, text: str, fields: Mapping[str, Any]) -> None:
        pass

    conf = stream_spark_settings(section, env, log)
    began = time.monotonic_ns()
    session = start_session(f"streamer dry-run {plan.name}", plan.master, conf, log, "OFF")
    elapsed = time.monotonic_ns() - began
    version = session.version
    session.stop()
    return (
        f"Spark {version} on {plan.master}, started in {format_duration(elapsed // 10**8 * 10**8)}"
    )
