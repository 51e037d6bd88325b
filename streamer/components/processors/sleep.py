"""`sleep`: waits for a while at each message.

It will "sleep for a period of time specified as a duration string for each message". The worker
waits, and its task with it; a stop that cannot wait for it abandons the micro-batch, which is
replayed at the next start.
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.core.durations import parse_duration
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec

DURATION: Final = "duration"


def _duration_problem(text: str) -> str | None:
    if "${" in text:
        return None
    try:
        parse_duration(text)
    except ValueError as error:
        return str(error)
    return None


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "sleep",
    "Waits for a while at each message.",
    description=(
        "A missing or invalid duration is logged as an error, and the message passes at once. "
        "The pause delays a task's whole part of the micro-batch."
    ),
    fields=(
        Field(
            DURATION,
            "string",
            "Duration of the pause.",
            interpolated=True,
            check=_duration_problem,
            examples=("100ms", '${! json("pause") }'),
        ),
    ),
    categories=("Utility",),
)


class SleepProcessor:
    """Waits once for each message of a batch, and passes the batch on."""

    def __init__(self, duration: Interpolation, origin: ComponentRef) -> None:
        """Take the duration, and who speaks."""
        self._duration = duration
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the batch, later."""
        for index in range(len(batch)):
            self._wait(batch, index, ex)
        return [batch]

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Wait at messages that are batches by themselves, and return them."""
        for message in messages:
            self._wait([message], 0, ex)
        return messages

    def _wait(self, batch: Batch, index: int, ex: Execution) -> None:
        try:
            period = parse_duration(self._duration.text_of(batch, index, ex))
        except MessageError as error:
            self._origin.log(ex, "ERROR", f"Period interpolation error: {error}")
        except ValueError as error:
            self._origin.log(ex, "ERROR", f"Failed to parse duration: {error}")
        else:
            if period > 0:
                ex.sleep(period)


def build(parsed: ParsedFields, context: BuildContext) -> SleepProcessor:
    """Compile the duration."""
    duration = compile_interpolation(parsed[DURATION])
    return SleepProcessor(duration, ComponentRef(context.component))
