"""Send again what tasks could not deliver, without a task slot in between."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from streamer.engine.frame import Frame
from streamer.engine.undelivered import Undelivered
from streamer.plan import Plan


class Redelivery:
    """Sends batches from the driver through outputs in workers, by a small job of Spark's."""

    def __init__(self, plan: Plan, session: SparkSession) -> None:
        """Take the stream's plan, and the session that its micro-batches run in."""
        self._plan = plan
        self._session = session

    def send(self, undelivered: Sequence[Undelivered], batch: int) -> list[Frame]:
        """Try once to send batches, in order, from the thread that delivers the micro-batch.

        Args:
            undelivered: what to send.
            batch: the micro-batch's number.

        Returns:
            What the tasks of a micro-batch return, without `STATUS`; what is still not sent is in
            frames of kind `UNDELIVERED`.
        """
        raise NotImplementedError
