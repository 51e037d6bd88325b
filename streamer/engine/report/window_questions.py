"""Questions about open windows on the driver: passed to the tasks of a micro-batch, and answered.

Shards list their windows in each micro-batch, as far as these are few. Whoever wants to know more
asks; the next micro-batch answers, and one is run for it where the stream has nothing else to do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from streamer.window.inspect.window_query import WindowListing, WindowQuery

MAX_QUESTIONS: Final = 4
"""Questions that are kept; a new one takes the place of the one that was asked least recently."""

_REQUEST_LIFETIME_S: Final = 15.0
_MIN_INTERVAL_S: Final = 2.0
_MIN_WAKE_INTERVAL_S: Final = 2.0


class ShardAnswer(NamedTuple):
    """The answer of a shard.

    Attributes:
        buffer: label of the shard's buffer, where there are several; else empty.
        listing: the windows.
        contents: what is in them, where that was asked; see `engine.stage.window_answers`.
    """

    buffer: str
    listing: WindowListing
    contents: list[dict[str, Any]]


class Answer(NamedTuple):
    """The newest answer to a question.

    Attributes:
        at: when it came, Unix ns.
        shards: by shard that has answered.
    """

    at: int
    shards: list[ShardAnswer]


@dataclass(slots=True)
class _Question:
    requested_at: float
    taken_at: float = -1e9
    answer: Answer | None = field(default=None)


class WindowQuestions:
    """The questions about one stream. Threads may share it.

    Attributes:
        wake: has a micro-batch run soon.
    """

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Begin with none.

        Args:
            now: a clock that never runs backwards, seconds.
            clock: the time, ns.
        """
        self.wake: Callable[[], None] = lambda: None
        self._now = now
        self._clock = clock
        self._lock = threading.Lock()
        self._questions: dict[WindowQuery, _Question] = {}
        self._woken_at = -1e9

    def request(self, query: WindowQuery) -> bool:
        """Request an answer for some seconds; return whether nobody was requesting it before."""
        with self._lock:
            now = self._now()
            question = self._questions.get(query)
            is_new = question is None or now - question.requested_at > _REQUEST_LIFETIME_S
            if question is None:
                while len(self._questions) >= MAX_QUESTIONS:
                    oldest = min(self._questions, key=lambda one: self._questions[one].requested_at)
                    del self._questions[oldest]
                question = self._questions[query] = _Question(now)
            question.requested_at = now
            should_wake = now - self._woken_at >= _MIN_WAKE_INTERVAL_S
            if should_wake:
                self._woken_at = now
        if should_wake:
            self.wake()
        return is_new

    def take(self) -> str:
        """Return what the tasks of the next micro-batch are asked, a question in each line."""
        with self._lock:
            now = self._now()
            taken = []
            for query, question in self._questions.items():
                is_requested = now - question.requested_at <= _REQUEST_LIFETIME_S
                if is_requested and now - question.taken_at >= _MIN_INTERVAL_S:
                    question.taken_at = now
                    taken.append(query.to_json())
            return "\n".join(taken)

    def record(self, statuses: Iterable[Mapping[str, Any]]) -> None:
        """Take the answers in the statuses of all shards, after a micro-batch."""
        answers_by_query: dict[str, list[ShardAnswer]] = {}
        for status in statuses:
            for text, answer in status.get("answers", {}).items():
                listing = WindowListing.from_dict(answer)
                one = ShardAnswer(status.get("buffer", ""), listing, answer.get("contents", []))
                answers_by_query.setdefault(text, []).append(one)
        if not answers_by_query:
            return
        with self._lock:
            for query, question in self._questions.items():
                answers = answers_by_query.get(query.to_json())
                if answers is not None:
                    question.answer = Answer(self._clock(), answers)

    def answer_to(self, query: WindowQuery) -> Answer | None:
        """Return the newest answer to a question; None before there is one."""
        with self._lock:
            question = self._questions.get(query)
            return None if question is None else question.answer
