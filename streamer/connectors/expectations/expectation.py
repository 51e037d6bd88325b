"""Expectations, and what they do to a batch: messages go on, are marked or dropped, or it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from streamer.connectors.expectations.rules import BatchRule, MessageRule
from streamer.core.errors import StreamAbortedError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef, begin_of

PASSED: Final = "expectation_passed_total"
FAILED: Final = "expectation_failed_total"
DROPPED: Final = "expectation_dropped_total"
EXPECTATION: Final = "expectation"
"""The label of these metrics, and the field of a sample, that has an expectation's name."""

FAILED_NAMES: Final = "failed_expectations"
"""The metadata of a marked message: the names of the expectations that have marked it."""

_WINDOW_EMIT: Final = "window_emit"
_EMPTY: Final = "empty"


class OnFail(StrEnum):
    """The effect of a failed expectation."""

    MARK = "mark"
    DROP = "drop"
    FAIL = "fail"
    WARN = "warn"


_FATES: Final = {
    OnFail.MARK: "marked",
    OnFail.DROP: "expectation_dropped",
    OnFail.WARN: "expectation_warned",
}


@dataclass(frozen=True, slots=True)
class Expectation:
    """A named condition.

    Attributes:
        name: its name.
        on_fail: what becomes of messages that fail it, or of all messages of such a batch.
        message_rule: what it demands of each message; None where it is about a batch.
        batch_rule: what it demands of a batch; None where it is about messages.
    """

    name: str
    on_fail: OnFail
    message_rule: MessageRule | None = None
    batch_rule: BatchRule | None = None


@dataclass(slots=True)
class _Effects:
    """The effects of expectations on the messages of a batch.

    Attributes:
        dropped: the places of those that are dropped.
        marks: by place, the names of expectations with the reasons.
    """

    dropped: set[int] = field(default_factory=set)
    marks: dict[int, list[tuple[str, str]]] = field(default_factory=dict)


class ExpectationChecker:
    """Checks messages and batches by expectations: all of them see what came in."""

    def __init__(self, expectations: Sequence[Expectation], origin: ComponentRef) -> None:
        """Take the expectations, in order, and the component in whose name they speak."""
        self._expectations = expectations
        self._origin = origin
        self._has_batch_rules = any(one.batch_rule is not None for one in expectations)

    def check_batch(self, batch: Batch, ex: Execution) -> Batch:
        """Return the messages of a batch that go on, in order, those that failed marked.

        Raises:
            StreamAbortedError: one has failed that ends the stream.
        """
        return self._check(batch, ex, singly=False)

    def check_singles(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Return the same of messages that are batches by themselves.

        Raises:
            StreamAbortedError: as `check_batch`.
        """
        if self._has_batch_rules:
            return [made for message in messages for made in self.check_batch([message], ex)]
        return self._check(messages, ex, singly=True)

    def _check(self, batch: Batch, ex: Execution, *, singly: bool) -> Batch:
        places = [place for place, message in enumerate(batch) if message.error is None]
        judged = batch if len(places) == len(batch) else [batch[place] for place in places]
        if not judged:
            return batch
        is_empty = _is_empty_window(judged)
        effects = _Effects()
        for one in self._expectations:
            if one.message_rule is not None:
                if not is_empty:
                    reasons = one.message_rule.find_failures(judged, ex, singly=singly)
                    self._count(one, len(judged), len(reasons), ex)
                    self._apply(one, judged, reasons, effects, ex)
            elif one.batch_rule is not None:
                reason = one.batch_rule.find_failure(judged, is_empty, ex)
                self._count(one, 1, 0 if reason is None else 1, ex)
                if reason is not None:
                    every = dict.fromkeys(range(len(judged)), reason)
                    self._apply(one, judged, every, effects, ex)
        if not effects.dropped and not effects.marks:
            return batch
        return self._make_results(batch, places, effects, ex)

    def _count(self, one: Expectation, total: int, failed: int, ex: Execution) -> None:
        labels = {EXPECTATION: one.name, **self._origin.fields}
        if total > failed:
            ex.count(PASSED, total - failed, **labels)
        if failed:
            ex.count(FAILED, failed, **labels)

    def _apply(
        self,
        one: Expectation,
        judged: Batch,
        reasons: dict[int, str],
        effects: _Effects,
        ex: Execution,
    ) -> None:
        if not reasons:
            return
        place, reason = next(iter(reasons.items()))
        if one.on_fail == OnFail.FAIL:
            raise self._make_abort(one, reason, judged[place])
        labels = {EXPECTATION: one.name, **self._origin.fields}
        of_batch = one.batch_rule is not None
        scope = f"a batch of {len(judged)}" if of_batch else f"{len(reasons)} of {len(judged)}"
        text = f'expectation "{one.name}" failed for {scope} messages ({one.on_fail}): {reason}'
        ex.log("WARN", text, labels)
        if ex.failures is not None:
            failed = [judged[place] for place in reasons]
            ex.failures.add(_FATES[one.on_fail], labels, _describe(one.name, reason), failed)
        if one.on_fail == OnFail.DROP:
            effects.dropped.update(reasons)
            ex.count(DROPPED, len(reasons), **labels)
        elif one.on_fail == OnFail.MARK:
            for place, reason in reasons.items():
                effects.marks.setdefault(place, []).append((one.name, reason))

    def _make_abort(self, one: Expectation, reason: str, message: Message) -> StreamAbortedError:
        _, label, path = self._origin.key
        text = f"{_describe(one.name, reason)}; message: {begin_of(message)}"
        return StreamAbortedError(text, label, path)

    def _make_results(
        self, batch: Batch, places: Sequence[int], effects: _Effects, ex: Execution
    ) -> Batch:
        results: list[Message | None] = [*batch]
        for judged_place, place in enumerate(places):
            if judged_place in effects.dropped:
                results[place] = None
            elif judged_place in effects.marks:
                marks = effects.marks[judged_place]
                error = "; ".join(_describe(name, reason) for name, reason in marks)
                names = {FAILED_NAMES: [name for name, _ in marks]}
                message = batch[place].with_added_metadata(**names)
                results[place] = self._origin.mark_unsampled(message, error, ex)
        return [message for message in results if message is not None]


def _describe(name: str, reason: str) -> str:
    return f"expectation {name} failed: {reason}"


def _is_empty_window(judged: Batch) -> bool:
    """Return whether a batch stands for a window without messages: one message, null."""
    if len(judged) != 1 or judged[0].meta.get(_WINDOW_EMIT) != _EMPTY:
        return False
    first = judged[0]
    return first.doc is None if first.has_doc() else first.raw == b"null"
