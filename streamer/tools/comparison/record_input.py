"""A recording of a config's own input: nothing is marked as read, and no offset is committed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from streamer.config.yaml_writer import format_yaml
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.engine.offline.sample_input import read_input_sample
from streamer.plan import Plan
from streamer.sdk.spec.children import walk_components
from streamer.tools.comparison.programs import this_program
from streamer.tools.comparison.recording import RecordedMessage, make_recorded, read_envelope
from streamer.tools.comparison.run_sides import Side
from streamer.tools.comparison.side_config import Exchange, SideConfig, make_side_config

_KAFKA: Final = ("kafka", "kafka_franz", "redpanda", "redpanda_common")
_REPEATABLE: Final = frozenset(
    (*_KAFKA, "file", "csv", "parquet", "generate", "broker", "sequence")
)
"""Inputs whose messages are there for the stream after they were read for a recording."""

_SAMPLED: Final = frozenset(("stdin", "file", "csv", "parquet", "generate"))
"""Inputs that are read without Spark."""

_POLL_S: Final = 0.2
_GROUP: Final = "consumer_group"
_DELETE: Final = "delete_on_finish"


def record_input(
    plan: Plan,
    document: Mapping[str, Any],
    *,
    max_messages: int,
    seconds: float | None,
    within: float,
    directory: Path,
    report: Callable[[str], None],
) -> list[RecordedMessage]:
    """Return messages of a config's input, before its processors.

    Args:
        plan: of the config.
        document: the config's sections.
        max_messages: how many there are at most.
        seconds: how long the input is read for; None until it has given so many.
        within: how long it may take in all.
        directory: an empty one, for files on the way.
        report: gets a line before the input is read.

    Raises:
        StreamerError: the input would not give its messages again, cannot be read, or has none.
    """
    names = {one.name for one in walk_components([plan.input]) if one.kind == plan.input.kind}
    refused = sorted(names - _REPEATABLE - _SAMPLED)
    if refused:
        raise StreamerError(
            f"--record: a recording would take messages from the input {', '.join(refused)}, which "
            "the stream then misses; give recorded messages with --input"
        )
    report(f"recording the input {plan.input.name}")
    if seconds is None and names <= _SAMPLED:
        sample = read_input_sample(plan, max_messages, Execution(time.time_ns))
        messages = [make_recorded(message) for batch in sample for message in batch]
    else:
        messages = _record_by_stream(document, max_messages, seconds, within, directory)
    if not messages:
        raise StreamerError(
            f"--record: the input {plan.input.name} has given no message; allow more time, or give "
            "recorded messages with --input"
        )
    return messages


def _record_by_stream(
    document: Mapping[str, Any],
    max_messages: int,
    seconds: float | None,
    within: float,
    directory: Path,
) -> list[RecordedMessage]:
    """Run a stream of the input alone, and take what it gives."""
    config = make_recording_config(document, directory)
    file = directory / "config.yaml"
    file.touch(0o600)
    file.write_text(format_yaml(config.values), encoding="utf-8")
    program = this_program()
    command = (*program.run, str(file), "--checkpoint", str(directory / "checkpoint"))
    side = Side("the recording", program, config, directory, command)
    (rows,) = config.rows.values()
    deadline, first_at = time.monotonic() + within, None
    try:
        side.start(has_pipe=False)
        while not side.check():
            now = time.monotonic()
            count = _count_lines(rows)
            first_at = first_at or (now if count else None)
            if count >= max_messages or now > deadline:
                break
            if seconds is not None and first_at is not None and now - first_at > seconds:
                break
            time.sleep(_POLL_S)
    finally:
        side.stop()
    if not rows.exists():
        return []
    with rows.open("rb") as lines:
        # The last line is cut where the stream was stopped while it wrote.
        whole = (line for line in lines if line.endswith(b"\n"))
        return [read_envelope(line)[0] for line, _ in zip(whole, range(max_messages), strict=False)]


def make_recording_config(document: Mapping[str, Any], directory: Path) -> SideConfig:
    """Return a config that writes what the input gives, and commits no offset.

    Args:
        document: the sections of the user's config.
        directory: gets the file of rows.
    """
    own = {name: one for name, one in document.items() if name in ("spark", "input")}
    side = make_side_config({"spark": own.get("spark")}, Exchange(directory, None))
    given = deepcopy(own.get("input") or {"stdin": {}})
    if isinstance(given, dict):
        given.pop("processors", None)
    side.values["input"] = _quiet(given)
    if resources := document.get("input_resources"):
        side.values["input_resources"] = _quiet(deepcopy(resources))
    for name in ("cache_resources", "rate_limit_resources", "processor_resources"):
        if document.get(name):
            side.values[name] = deepcopy(document[name])
    return side


def _quiet(value: Any) -> Any:
    """Return a part of a config without consumer groups, and without files' deletion."""
    if isinstance(value, dict):
        return {name: _quiet(one) for name, one in value.items() if name not in (_GROUP, _DELETE)}
    return [_quiet(one) for one in value] if isinstance(value, list) else value


def _count_lines(path: Path) -> int:
    if not path.exists():
        return 0
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
