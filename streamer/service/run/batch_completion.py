"""The micro-batch in hand is finished by the plan that has begun it, and nothing after it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from streamer.core.errors import StreamerError
from streamer.plan import Plan
from streamer.service.run.stream_host import StreamHost

if TYPE_CHECKING:
    from streamer.spark.query.input_session import InputSession

_POLL_INTERVAL_S: Final = 0.05


class BatchUnfinishedError(StreamerError):
    """The micro-batch in hand cannot be finished now."""


def finish_batch(
    host: StreamHost,
    plan: Plan,
    timeout: float,
    give_up: Callable[[], str],
    input_session: InputSession | None = None,
) -> InputSession | None:
    """Finish the micro-batch in hand, if a table has it already.

    Args:
        host: where the stream runs.
        plan: what has begun it.
        timeout: seconds that a micro-batch may take that is planned meanwhile.
        give_up: returns why to wait no longer; empty to wait.
        input_session: the input; None to open it.

    Returns:
        The input, as it is open now.

    Raises:
        BatchUnfinishedError: it was given up.
        StreamerError: it fails too often.
    """
    from streamer.spark.checkpoint.unfinished_batch import find_table_ahead, find_unfinished
    from streamer.spark.query.drain_source import DrainLimit

    checkpoint = host.checkpoint
    while table := find_table_ahead(checkpoint, plan):
        batch = find_unfinished(checkpoint)
        stream = host.make_stream(plan, input_session, DrainLimit(ends=False))
        input_session = stream.input
        host.start_query(stream)
        while find_unfinished(checkpoint) == batch and not stream.poll():
            if reason := give_up():
                stream.retire(0.0)
                raise BatchUnfinishedError(
                    f"{table} has the newest micro-batch, which other outputs do not take, and "
                    f"its rows would come twice: {reason}"
                )
            time.sleep(_POLL_INTERVAL_S)
        stream.retire(timeout)
    return input_session
