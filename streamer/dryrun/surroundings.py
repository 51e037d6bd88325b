"""What a stream needs around it: a Java, a checkpoint that fits and is free, and Spark."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from streamer.dryrun.check import Check
from streamer.durations import format_duration
from streamer.errors import StreamerError
from streamer.plan import Plan
from streamer.plan.place import is_remote
from streamer.source.places import writable_place
from streamer.spec import Parsed

_KAFKA_JARS: Final = "kafka jars"


def java(env: Mapping[str, str]) -> str:
    """Find a Java.

    Raises:
        StreamerError: there is none.
    """
    from streamer.spark.java import find_java

    found = find_java(env)
    return f"Java {found.version} at {found.runtime}, from {found.source}"


def log_file(name: str) -> str:
    """Look at the log's file, whose folder must exist.

    Raises:
        StreamerError: it cannot be written; the text says why.
    """
    path = Path(name)
    found = writable_place(path)
    if not path.parent.is_dir():
        raise StreamerError(f"{path} cannot be made: there is no folder {path.parent}")
    return f"{path} {found}"


def checkpoint(plan: Plan, directory: str) -> str:
    """Look whether a checkpoint fits a plan and is not in use. A new one is not made.

    Raises:
        StreamerError: it cannot be used; the text says why.
    """
    from streamer.spark.checkpoint import Checkpoint

    if is_remote(directory):
        from streamer.spark.elsewhere import checked

        return f"{checked(directory)}: looked at when Spark has started, with the stream"
    path = Path(directory.removeprefix("file://"))
    if not path.exists():
        writable_place(path / "streamer.json")
        return f"{path}: new"
    held = Checkpoint(directory, wait=0.0)
    try:
        record = held.record()
        if record.get("finished"):
            return f"{held.directory}: of a run that has finished; the next one begins anew"
        held.check(plan.fingerprint)
        if not os.access(held.directory, os.W_OK):
            raise StreamerError(f"the checkpoint directory {held.directory} cannot be written")
        return f"{held.directory}: {'goes on where it was' if held.resumes else 'new'}"
    finally:
        held.close()


def kafka_jars(plan: Plan, section: Parsed, env: Mapping[str, str]) -> Check | None:
    """Look for the jars with which Spark reads Kafka; None for an input that takes none.

    Nothing is fetched: where they are not there, whether a start can fetch them is not known.
    """
    from streamer.spark.jars import connector_jars, names_connector, reads_kafka

    if not reads_kafka(plan.input):
        return None
    if names_connector(section["conf"]):
        return Check(_KAFKA_JARS, None, "spark.conf names them: Spark finds them when it starts")
    try:
        found = connector_jars(env, section["jars_directory"])
    except StreamerError as e:
        return Check(_KAFKA_JARS, False, str(e))
    if found:
        return Check(_KAFKA_JARS, True, str(found[0].parent))
    text = "not on this machine: a start fetches them from Maven Central, and ends where it cannot"
    return Check(_KAFKA_JARS, None, f"{text}; STREAMER_JARS names a directory that has them")


def spark(plan: Plan, section: Parsed, env: Mapping[str, str]) -> str:
    """Start a Spark session as the config's `spark` section says, and stop it.

    Raises:
        StreamerError: it does not start; the text has its last words.
    """
    from streamer.spark.jars import spark_conf
    from streamer.spark.session import start_session

    def log(level: str, text: str, fields: Mapping[str, Any]) -> None:
        pass

    conf = spark_conf(plan, section, env, log)
    began = time.monotonic_ns()
    session = start_session(f"streamer dry-run {plan.name}", plan.master, conf, log, "OFF")
    took = time.monotonic_ns() - began
    version = session.version
    session.stop()
    return f"Spark {version} on {plan.master}, started in {format_duration(took // 10**8 * 10**8)}"
