"""Outages of brokers, as the process that plans micro-batches notes them.

While no broker answers, no micro-batch is planned: nobody knows what one would have, and nothing
has begun that could fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from streamer.connectors.kafka.input.data_loss import DataLostError, UnknownLossError
from streamer.core.errors import StreamerError
from streamer.engine.planner.planner_channels import PlannerChannel

T = TypeVar("T")

_FIRST_PAUSE_S: Final = 0.25
_MAX_PAUSE_S: Final = 5.0


class KafkaOutage:
    """Reports to the driver why no micro-batch starts.

    Attributes:
        pause_s: seconds until brokers are asked again; 0 while they answer.
    """

    def __init__(self, signals: PlannerChannel) -> None:
        """Take the planner's channel."""
        self._signals = signals
        self.pause_s = 0.0

    def watch(self, poll: Callable[[], T]) -> T | None:
        """Return what a poll of the input finds; None when no broker answers.

        Raises:
            DataLostError: something that is to be read is gone.
        """
        try:
            result = poll()
        except DataLostError as e:
            self._signals.planner.update(trouble=str(e), is_lost=True)
            raise
        except UnknownLossError:
            self.pause_s = _FIRST_PAUSE_S
            return None
        except StreamerError as e:
            self._signals.planner.update(trouble=str(e), is_lost=False)
            self.pause_s = min(max(self.pause_s * 2, _FIRST_PAUSE_S), _MAX_PAUSE_S)
            return None
        if self.pause_s:
            self._signals.planner.update(trouble="", is_lost=False)
            self.pause_s = 0.0
        return result
