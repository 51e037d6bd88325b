"""Rules of expectations: what they find wrong with messages, or with a batch as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from streamer.bloblang import Mapping
from streamer.connectors.expectations.history import History, check_finite
from streamer.connectors.expectations.value_tests import ValueTest
from streamer.connectors.expectations.values import (
    find_duplicates,
    name_group,
    query_batch,
    query_once,
    show_value,
)
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.keyed_state import UNAVAILABLE_TEXT
from streamer.core.message import Batch, IndexedMessage
from streamer.core.value import type_name
from streamer.sdk.processing import Processor, run_processor


class MessageRule(Protocol):
    """A rule for messages."""

    def find_failures(self, batch: Batch, ex: Execution, *, singly: bool) -> dict[int, str]:
        """Return why messages fail, by their places in the batch, in order.

        Args:
            batch: the messages, none of which has failed before.
            ex: the run.
            singly: whether each message is a batch by itself.
        """


class BatchRule(Protocol):
    """A rule for a batch."""

    def find_failure(self, batch: Batch, is_empty: bool, ex: Execution) -> str | None:
        """Return why a batch fails; None if it passes.

        Args:
            batch: its messages, at least one; none of them has failed before.
            is_empty: whether it is a window without messages, for which one stands, null.
            ex: the run.
        """


def explain_no_truth(value: object) -> str:
    """Return why the value of a condition fails, which is not true."""
    if value is False:
        return "check is false"
    if value is None:
        return "check gives null, not true"
    return f"check gives {show_value(value)}, a {type_name(value)}, not true"


def _show_with_type(value: object) -> str:
    return "it is null" if value is None else f"{show_value(value)} is a {type_name(value)}"


@dataclass(frozen=True, slots=True)
class CheckRule:
    """A query that gives true: for a message, or once for a batch. All else fails."""

    check: Mapping

    def find_failures(self, batch: Batch, ex: Execution, *, singly: bool) -> dict[int, str]:
        """Return why messages fail; see `MessageRule`."""
        values = query_batch(self.check, batch, ex, singly=singly)
        return {
            place: _explain_error(value)
            if isinstance(value, MessageError)
            else explain_no_truth(value)
            for place, value in enumerate(values)
            if value is not True
        }

    def find_failure(self, batch: Batch, is_empty: bool, ex: Execution) -> str | None:
        """Return why a batch fails; see `BatchRule`."""
        try:
            value = query_once(self.check, batch, ex)
        except MessageError as error:
            return _explain_error(error)
        return None if value is True else explain_no_truth(value)


@dataclass(frozen=True, slots=True)
class ValueRule:
    """A query whose value passes tests; null passes all but the one for null.

    Attributes:
        value: the query.
        tests: the tests, in order.
        is_required: whether null fails.
        is_unique: whether a value fails that a message before it in the batch has.
    """

    value: Mapping
    tests: Sequence[ValueTest]
    is_required: bool
    is_unique: bool

    def find_failures(self, batch: Batch, ex: Execution, *, singly: bool) -> dict[int, str]:
        """Return why messages fail; see `MessageRule`."""
        values = query_batch(self.value, batch, ex, singly=singly)
        failed: dict[int, str] = {}
        for place, value in enumerate(values):
            reason = self._find_reason(value)
            if reason is not None:
                failed[place] = reason
        if self.is_unique and not singly:
            for place in find_duplicates(values):
                failed.setdefault(place, f"{show_value(values[place])} is there more than once")
            failed = dict(sorted(failed.items()))
        return failed

    def _find_reason(self, value: object) -> str | None:
        if value is None:
            return "the value is null" if self.is_required else None
        if isinstance(value, MessageError):
            return _explain_error(value)
        try:
            for test in self.tests:
                reason = test(value)
                if reason is not None:
                    return reason
        except RecursionError:
            return "the value is nested too deep"
        return None


@dataclass(frozen=True, slots=True)
class SchemaRule:
    """A processor that marks messages as failed that do not fit its schema; its results are left.

    Attributes:
        processor: the processor.
        name: its type.
    """

    processor: Processor
    name: str

    def find_failures(self, batch: Batch, ex: Execution, *, singly: bool) -> dict[int, str]:
        """Return why messages fail; see `MessageRule`."""
        placed: Batch = [
            IndexedMessage.at_index(message, place) for place, message in enumerate(batch)
        ]
        batches = [[message] for message in placed] if singly else [placed]
        unfit: dict[int, str] = {}
        passed: set[int] = set()
        for made in run_processor(self.processor, batches, _make_silent_execution(ex)):
            for message in made:
                assert isinstance(message, IndexedMessage)
                if message.error is None:
                    passed.add(message.place[-1])
                else:
                    unfit[message.place[-1]] = f"{self.name}: {' '.join(message.error.split())}"
        return {
            place: unfit.get(place, f"{self.name} gives no message")
            for place in range(len(batch))
            if place in unfit or place not in passed
        }


def _make_silent_execution(parent: Execution) -> Execution:
    """Return a run whose failures are no failures of messages: an expectation reports them."""
    ex = Execution(
        parent.now, elapsed=parent.elapsed, sleep=parent.sleep, report_wait=parent.report_wait
    )
    ex.component_stats = parent.component_stats
    ex.custom_metrics = parent.custom_metrics
    ex.micro_batch = parent.micro_batch
    ex.calls, ex.crashes = parent.calls, parent.crashes
    ex.wait_budget = parent.wait_budget
    return ex


@dataclass(frozen=True, slots=True)
class RateRule:
    """A rule for messages of which a part of a batch must pass.

    Attributes:
        rule: the rule.
        min_pass_rate: the part that must pass, 0 to 1.
    """

    rule: MessageRule
    min_pass_rate: Fraction

    def find_failure(self, batch: Batch, is_empty: bool, ex: Execution) -> str | None:
        """Return why a batch fails; see `BatchRule`. One without messages passes."""
        if is_empty:
            return None
        failed = self.rule.find_failures(batch, ex, singly=False)
        # Exact: 55 of 100 reach a rate of 0.55, which no float is.
        if len(batch) - len(failed) >= self.min_pass_rate * len(batch):
            return None
        rate = (len(batch) - len(failed)) / len(batch)
        reason = next(iter(failed.values()))
        return (
            f"{len(failed)} of {len(batch)} messages fail, the pass rate {rate:.6g} is below "
            f"{float(self.min_pass_rate):g}; the first: {reason}"
        )


Measure = Callable[[Batch, bool, Execution], object]
"""Gives the number of a batch, whose arguments are those of `BatchRule.find_failure`."""


def count_messages(batch: Batch, is_empty: bool, ex: Execution) -> int:
    """Return the number of messages of a batch."""
    return 0 if is_empty else len(batch)


def make_measure(query: Mapping) -> Measure:
    """Return what measures a batch by a query."""

    def measure(batch: Batch, is_empty: bool, ex: Execution) -> object:
        return query_once(query, batch, ex)

    return measure


@dataclass(frozen=True, slots=True)
class NumberRule:
    """A number of a batch, within bounds and near the numbers of the windows before it.

    Attributes:
        measure: gives the number.
        test: tests it; None for no bounds.
        history: compares it; None without.
        group: gives the group that it is compared with; None for the whole key.
    """

    measure: Measure
    test: ValueTest | None
    history: History | None
    group: Mapping | None = None

    def find_failure(self, batch: Batch, is_empty: bool, ex: Execution) -> str | None:
        """Return why a batch fails; see `BatchRule`."""
        try:
            value = self.measure(batch, is_empty, ex)
        except MessageError as error:
            return _explain_error(error)
        number = check_finite(value)
        if number is None:
            return f"{_show_with_type(value)}, not a finite number"
        reason = None if self.test is None else self.test(value)
        if self.history is None:
            return reason
        if ex.keyed_state is None:
            return f"history {UNAVAILABLE_TEXT}"
        try:
            group = "" if self.group is None else name_group(query_once(self.group, batch, ex))
            # Kept also where the bounds have failed: the window has happened.
            compared = self.history.compare(number, batch[0], ex.keyed_state, group)
        except MessageError as error:
            compared = _explain_error(error)
        return reason or compared


def _explain_error(error: MessageError) -> str:
    return " ".join(str(error).split())
