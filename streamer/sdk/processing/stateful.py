"""The base of processors that decide about each message by the state of its key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from streamer.bloblang import compile_interpolation
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.keyed_state import UNAVAILABLE_TEXT, KeyedState
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import Field

KEY: Final = "key"
KEY_FIELD: Final = Field(
    KEY,
    "string",
    "A key within the key that the buffer gives: each has state of its own. Left out, there is one "
    "state for each key of the buffer.",
    default="",
    interpolated=True,
    examples=("${! this.id }", '${! meta("kafka_key") }'),
)


class StatefulProcessor(ABC):
    """Decides about every message by itself; one that cannot be decided about is marked."""

    def __init__(self, key: str, origin: ComponentRef) -> None:
        """Take the text of the key within the key, and the component that speaks."""
        self._key = compile_interpolation(key) if key else None
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the messages that go on, in one batch."""
        made = []
        for index, message in enumerate(batch):
            try:
                result = self._decide_one(batch, index, ex)
            except MessageError as error:
                result = self._origin.fail(message, str(error), ex)
            if result is not None:
                made.append(result)
        return [made] if made else []

    @abstractmethod
    def decide(
        self, batch: Batch, index: int, ex: Execution, state: KeyedState, part: str
    ) -> Message | None:
        """Return what becomes of a message; None drops it.

        Args:
            batch: its batch.
            index: its place there.
            ex: the run.
            state: of the buffer's key.
            part: the key within that.

        Raises:
            MessageError: it cannot be decided about.
        """

    def _decide_one(self, batch: Batch, index: int, ex: Execution) -> Message | None:
        state = ex.keyed_state
        if state is None:
            raise MessageError(f"{self._origin.name} {UNAVAILABLE_TEXT}")
        part = "" if self._key is None else self._key.text_of(batch, index, ex)
        return self.decide(batch, index, ex, state, part)
