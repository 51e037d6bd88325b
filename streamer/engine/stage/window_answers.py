"""Open windows in the report of a shard: those of every micro-batch, and answers to questions."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.report.message_sampler import MAX_PAYLOAD_CHARS, sample_message
from streamer.window import StateStore, Status
from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.aggregate.partial_aggregates import aggregation_for
from streamer.window.contract import Emission
from streamer.window.inspect.inspect_shard import (
    answer_query,
    list_usual_windows,
    read_contents,
)
from streamer.window.inspect.window_query import WINDOW_QUERIES, WindowQuery
from streamer.window.settings.window import Window

_MAX_CONTENTS: Final = 4
_MAX_MESSAGES: Final = 5
_MAX_MEASURED_MESSAGES: Final = 20_000


def report_windows(
    window: Window, store: StateStore, status: Status, ex: Execution
) -> dict[str, Any]:
    """Return what the status of a shard says of its open windows, as plain values.

    Args:
        window: the windows' settings.
        store: the shard's state, written.
        status: of the shard, after its step.
        ex: the run; nothing is counted or logged in it.
    """
    report: dict[str, Any] = {}
    usual = list_usual_windows(window, store, status)
    if usual is not None:
        report["listing"] = usual.to_dict()
        if window.count_based:
            # A step does not count the windows that are being filled.
            report["open_windows"] = usual.total
    if queries := WINDOW_QUERIES.get():
        answers = report["answers"] = {}
        for query in queries:
            answer = answer_query(window, store, query).to_dict()
            if query.has_content and answer["rows"]:
                answer["contents"] = _describe_contents(window, store, query, ex)
            answers[query.to_json()] = answer
    return report


def _describe_contents(
    window: Window, store: StateStore, query: WindowQuery, ex: Execution
) -> list[dict[str, Any]]:
    try:
        contents = islice(read_contents(window, store, query), _MAX_CONTENTS)
        return [describe_content(one, ex) for one in contents]
    except Exception as e:  # The stream must not end since somebody looks into a window.
        text = f"{type(e).__name__}: {e}"
        return [{"start": query.start, "end": None, "messages": None, "error": text}]


def describe_content(emission: Emission, ex: Execution) -> dict[str, Any]:
    """Return what a window holds: its last messages, or the result of its mapping so far."""
    messages = emission.messages
    bounds = {"start": emission.start, "end": emission.end}
    if isinstance(messages, AggregatedGroup):
        mapping = aggregation_for(messages.text).mapping
        # Counters and log lines of the mapping are those of no real run.
        apart = Execution(ex.now)
        (result,) = mapping.apply_firsts([messages], apart, _mark_failed)
        return {
            **bounds,
            "messages": messages.size,
            "bytes": None,
            "first": sample_message(messages[0]),
            "mapping": messages.text[:MAX_PAYLOAD_CHARS],
            "result": None if result is None else sample_message(result),
        }
    count = len(messages)
    is_small = count <= _MAX_MEASURED_MESSAGES
    return {
        **bounds,
        "messages": count,
        "bytes": sum(len(one.raw) for one in messages) if is_small else None,
        "last": [
            sample_message(messages[at]) for at in range(max(count - _MAX_MESSAGES, 0), count)
        ],
    }


def _mark_failed(message: Message, error: str, ex: Execution) -> Message:
    return message.with_error(error)
