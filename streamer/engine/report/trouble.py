"""The trouble of a stream: why it does not get on, since when, how often it was tried, and of what.

Counters count what is committed; a person who looks at a stream that fails has to see what fails
now, so this is kept beside them, on the driver.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from streamer.engine.report.metric_labels import Labels
from streamer.sdk.component_ref import MAX_SAMPLE_CHARACTERS


@dataclass(frozen=True, slots=True)
class Trouble:
    """A reason for which a stream does not get on.

    Attributes:
        text: the newest error, in a line.
        place: label and path of the component that it is of; empty when it is none's.
        since: when the stream last got on, or the first of these errors came, Unix s.
        is_failure: whether the micro-batch failed; else a component waits.
        tries: how often it was tried; 0 when nobody counts.
        next_try: when it is tried again, Unix s; None when that is not known, or it is tried now.
        messages: how many messages wait; None when nobody knows.
        sample: the beginning of the message in question; empty when it is none's.
    """

    text: str
    place: Labels = field(default_factory=dict)
    since: float = 0.0
    is_failure: bool = False
    tries: int = 0
    next_try: float | None = None
    messages: int | None = None
    sample: str = ""


class TroubleTracker:
    """Keeps the trouble of a stream from its first error until it gets on, for many threads."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Begin with none; `clock` gives Unix s."""
        self._clock = clock
        self._lock = threading.Lock()
        self._current: Trouble | None = None

    @property
    def current(self) -> Trouble | None:
        """The trouble; None while the stream gets on."""
        return self._current

    def note(self, text: str, place: Labels) -> None:
        """Note what a component waits for, or that it waits for nothing (an empty text)."""
        with self._lock:
            before = self._current
            if not text:
                self._current = None
            elif before is None:
                self._current = Trouble(text, place, self._clock())
            elif before.place.get("path") == place.get("path"):
                self._current = replace(before, text=text, is_failure=False)
            else:
                # The stream has not got on meanwhile: the beginning stays.
                self._current = Trouble(text, place, before.since)

    def note_failure(self, tries: int, pause: float | None) -> None:
        """Note that what was noted last made the micro-batch fail.

        Args:
            tries: how often it has failed.
            pause: seconds until the next try; None when there is none.
        """
        next_try = None if pause is None else self._clock() + pause
        self._change(is_failure=True, tries=tries, next_try=next_try)

    def note_wait(self, tries: int, pause: float, messages: int, sample: str) -> None:
        """Note what is known of the messages that wait for an output.

        Args:
            tries: how often they have been sent.
            pause: seconds until the next try.
            messages: how many wait.
            sample: the first of them.
        """
        next_try = self._clock() + pause
        self._change(tries=tries, next_try=next_try, messages=messages, sample=sample)

    def _change(self, **changes: object) -> None:
        with self._lock:
            if self._current is not None:
                self._current = replace(self._current, **changes)  # type: ignore[arg-type]


def take_sample(raw: bytes) -> str:
    """Return the beginning of a payload as text, for a log line or a person who looks."""
    text = raw[: MAX_SAMPLE_CHARACTERS * 4 + 4].decode(errors="replace")
    more = len(text) > MAX_SAMPLE_CHARACTERS
    return text[:MAX_SAMPLE_CHARACTERS] + "…" * more
