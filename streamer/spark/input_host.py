"""What a stream's input runs in: see `engine.house`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from streamer.answering import Answers
from streamer.engine.delivery import LogLine
from streamer.engine.house import Count, House
from streamer.plan import Plan
from streamer.plan.answered import is_answered, replies
from streamer.spark.checkpoint import Checkpoint


def make_input_host(
    plan: Plan,
    checkpoint: Checkpoint,
    log: LogLine,
    count: Count,
    answers: Answers,
    read_stdin: Callable[[int], bytes] | None,
    endpoints: Any,
) -> House:
    """Return what the input of a stream runs in.

    Args:
        plan: the stream's plan.
        checkpoint: keeps what the input has received, and what it remembers.
        log: takes log lines.
        count: counts what the input does.
        answers: answer the requests that wait for their messages, where some do.
        read_stdin: reads up to so many bytes of the standard input, b"" at its end.
        endpoints: the stream's HTTP server, for components that are served there.
    """
    known = checkpoint.record().get("inputs", {})
    house = House(checkpoint.spool, known, log, count, threading.Event(), read_stdin)
    house.spool_limit, house.limits = plan.spool_limit, plan.limits
    house.local = plan.master.startswith("local")
    house.endpoints = endpoints
    answers.replies = replies(plan)
    house.answers = answers if is_answered(plan) else None
    return house
