"""Start of a run on a Spark that several streams share: a service's, or that of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from streamer.service.run.revision_switch import OnReset
from streamer.service.run.stream_run import StreamRun

if TYPE_CHECKING:
    from streamer.spark.session.shared_spark import SharedSpark


def open_run(run: StreamRun, spark: SharedSpark, on_reset: OnReset | None = None) -> None:
    """Open the inputs and outputs of a run; after an error, all that was begun is undone.

    Args:
        run: the run, which has its checkpoint.
        spark: the Spark on which it starts next.
        on_reset: the treatment of open windows that the config cannot continue; see
            `StreamRun.open`.

    Raises:
        StreamerError: the checkpoint does not fit, or an input or output cannot be opened.
    """
    try:
        if run.needs_shards:
            run.choose_shards(spark.base_session)
        run.open(on_reset=on_reset)
    except BaseException:
        run.close()
        raise


def start_run(
    run: StreamRun, spark: SharedSpark, on_started: Callable[[], None] = lambda: None
) -> None:
    """Start an opened run in a session of its own; after an error, all that was begun is undone.

    Args:
        run: the run.
        spark: the Spark.
        on_started: called when it has started; the run stops when that fails.

    Raises:
        StreamerError: it does not start.
    """
    share = spark.acquire_share()
    run.on_close = lambda: spark.release_share(share)
    try:
        run.start(spark.new_session(share))
        on_started()
    except BaseException:
        run.stop(0.0)
        raise
