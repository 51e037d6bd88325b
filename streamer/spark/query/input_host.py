"""Makes the context in which a stream's input runs: see `engine.driver.input_host`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from streamer.core.log_format import LogLine
from streamer.engine.driver.input_host import AddCount, InputHost
from streamer.plan import Plan
from streamer.plan.uses_sync_response import gives_replies, is_answered
from streamer.sdk.sync_response import PendingRequests
from streamer.spark.checkpoint.checkpoint import Checkpoint


def make_input_host(
    plan: Plan,
    checkpoint: Checkpoint,
    log: LogLine,
    count: AddCount,
    answers: PendingRequests,
    read_stdin: Callable[[int], bytes] | None,
    endpoints: Any,
) -> InputHost:
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
    remembered = checkpoint.read_record().get("inputs", {})
    input_host = InputHost(checkpoint.spool, remembered, log, count, threading.Event(), read_stdin)
    input_host.spool_limit, input_host.limits = plan.spool_limit, plan.limits
    input_host.local = plan.master.startswith("local")
    input_host.endpoints = endpoints
    answers.needs_replies = gives_replies(plan)
    input_host.answers = answers if is_answered(plan) else None
    return input_host
