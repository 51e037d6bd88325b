"""Knows whether the brokers of a stream's Kafka inputs answer, whatever else waits for them.

Who plans, commits or measures learns of an outage when its question is given up, after ten seconds
and more. This asks by itself, so that `/ready`, the metrics and the alerts change within five.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from streamer.engine.planner.kafka_inputs import StreamKafkaInput

_INTERVAL_S: Final = 1.0

CountConnection = Callable[[str], None]
"""Adds one to a counter of the input's connections, by its name."""


class KafkaConnections:
    """Pings the brokers of all Kafka inputs of one stream, in a thread of its own.

    Attributes:
        problem: why brokers do not answer now, in one line; empty while they do.
    """

    def __init__(
        self,
        children: Sequence[StreamKafkaInput],
        count: CountConnection,
        interval: float = _INTERVAL_S,
    ) -> None:
        """Begin.

        Args:
            children: the inputs.
            count: counts `input_connection_lost` when an outage begins, `input_connection_failed`
                for each ping in it that fails, and `input_connection_up` when it is over.
            interval: seconds between two pings.
        """
        self.problem = ""
        self._children = children
        self._count = count
        self._interval = interval
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="kafka-ping")
        self._thread.start()

    def close(self) -> None:
        """Ping no more; does not wait for the one that is under way."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            problems = [child.input.connection_problem() for child in self._children]
            if self._stopped.is_set():
                return
            self._note_problem(next((text for text in problems if text is not None), ""))

    def _note_problem(self, problem: str) -> None:
        if problem:
            # Before the text is there: whoever sees it sees it counted.
            self._count("input_connection_failed" if self.problem else "input_connection_lost")
        elif self.problem:
            self._count("input_connection_up")
        self.problem = problem
