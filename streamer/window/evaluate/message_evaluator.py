"""Evaluates filter, event time and key of many messages at once, when documents are enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from streamer.core.json.parse import parse_json
from streamer.core.timestamps import parse_event_time
from streamer.window.evaluate.queries import (
    CompiledKey,
    CompiledMapping,
    field_getter_of,
    is_now_mapping,
)
from streamer.window.pack.message_columns import MAX_CACHED_RESULTS, KeyGroups

NO_EVENT_TIME: Final = -(2**63)
"""Stands in for the time of a message that has none; its reason tells it from a real one."""

DocumentFunction = Callable[[Any], Any]


@dataclass(slots=True)
class EvaluatedMessages:
    """Results of the mappings for messages, which are evaluated a thousand at a time.

    Attributes:
        times: by message, its event time, ns; empty when all have the micro-batch's.
        groups: by message, the group of its key; empty without keys.
        kept: by message, whether the filter keeps it; empty without a filter.
        reasons: why messages have no time, in their order.
        other_spellings: by message, how it spells its key, where equal ones are written otherwise.
    """

    times: list[int] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    kept: list[bool] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    other_spellings: dict[int, bytes] = field(default_factory=dict)


class EventTimeCache(dict[str, int]):
    """Event times by their text: `times[value]` is ns; what is no time has a reason.

    Only strings are remembered: as keys of a dict, `True`, `1` and `1.0` would be one.

    Attributes:
        reasons: why values were none, in their order; the user of the times takes them.
        texts_only: refuse what is not a string with TypeError.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reasons: list[str] = []
        self.texts_only = False

    def __missing__(self, value: Any) -> int:
        if self.texts_only and type(value) is not str:
            raise TypeError(value)
        try:
            time = parse_event_time(value)
        except ValueError as e:
            self.reasons.append(str(e))
            return NO_EVENT_TIME
        if type(value) is str:
            if len(self) >= MAX_CACHED_RESULTS:
                self.clear()
            self[value] = time
        return time


class MessageEvaluator:
    """A way to evaluate many messages at once, which raises whatever one makes it raise."""

    def __init__(
        self,
        times: EventTimeCache,
        groups: KeyGroups | None,
        *,
        time: DocumentFunction | None,
        key: DocumentFunction | None,
        keep: DocumentFunction | None,
        simple: bool,
        key_is_text: bool,
    ) -> None:
        """Prepare.

        Args:
            times: remembers event times.
            groups: remembers keys; None without.
            time: gives a document's time; None when it is the micro-batch's, or there is none.
            key: gives a document's key; None without.
            keep: the filter; None without.
            simple: all are fields that hold strings, so orjson's numbers have no part in them.
            key_is_text: `key` gives texts.
        """
        self._times = times
        self._groups = groups
        self._time = time
        self._key = key
        self._keep = keep
        self._simple = simple
        self._texts = simple or key_is_text
        needs = time or key or keep
        self.parser = None if needs is None else orjson.loads if simple else parse_json
        self.evaluated = EvaluatedMessages()

    def reset(self) -> None:
        """Begin with other messages."""
        self.evaluated = EvaluatedMessages()
        self._times.reasons.clear()
        self._times.texts_only = self._simple
        if self._groups is not None:
            self._groups.other_spellings.clear()

    def evaluate(self, docs: Sequence[Any]) -> list[int]:
        """Evaluate documents that follow those before; return their groups."""
        evaluated = self.evaluated
        if self._keep is not None:
            keep = self._keep
            kept = [keep(doc) for doc in docs]
            if not all(type(flag) is bool for flag in kept):
                raise TypeError("the filter gave no boolean")
            evaluated.kept += kept
        if self._time is not None:
            times, time = self._times, self._time
            new_times = list(map(times.__getitem__, map(time, docs)))
            if times.reasons:
                if new_times.count(NO_EVENT_TIME) != len(times.reasons):
                    raise ValueError("an event time is the one that stands for none")
                evaluated.reasons += times.reasons
                times.reasons.clear()
            evaluated.times += new_times
        if self._groups is None or self._key is None:
            return []
        key = self._key
        if self._texts:
            groups = self._groups.groups_of_texts(list(map(key, docs)))
        else:
            of_result = self._groups.group_of_result
            groups = [of_result(key(doc)) for doc in docs]
            if self._groups.other_spellings:
                self._record_spellings(docs, key, self._groups)
        evaluated.groups += groups
        return groups

    def _record_spellings(
        self, docs: Sequence[Any], key: DocumentFunction, groups: KeyGroups
    ) -> None:
        """Find out which of the documents it was that spell their keys otherwise."""
        for index, doc in enumerate(docs, len(self.evaluated.groups)):
            groups.other_spellings.clear()
            groups.group_of_result(key(doc))
            if groups.other_spellings:
                self.evaluated.other_spellings[index] = groups.other_spellings.pop()
        groups.other_spellings.clear()


def make_message_evaluators(
    timestamp: CompiledMapping | None,
    key: CompiledKey | None,
    keep: CompiledMapping | None,
    times: EventTimeCache,
    groups: KeyGroups | None,
) -> list[MessageEvaluator]:
    """Return the ways that there are for these mappings, the fastest first.

    Args:
        timestamp: gives the event time; None where windows have none.
        key: gives the key; None without.
        keep: the filter; None without.
        times: remembers event times.
        groups: remembers keys; None without.
    """
    no_time = timestamp is None or is_now_mapping(timestamp)
    evaluators = []
    time = None if no_time or timestamp is None else field_getter_of(timestamp)
    name = None if key is None else field_getter_of(key)
    is_text = key is not None and key.gives_text
    if keep is None and (time or no_time) and (name or key is None):
        evaluators.append(
            MessageEvaluator(
                times, groups, time=time, key=name, keep=None, simple=True, key_is_text=is_text
            )
        )
    time = None if no_time or timestamp is None else timestamp.doc_fn
    fn = None if key is None else key.doc_fn
    kept = None if keep is None else keep.doc_fn
    if (time or no_time) and (fn or key is None) and (kept or keep is None):
        evaluators.append(
            MessageEvaluator(
                times, groups, time=time, key=fn, keep=kept, simple=False, key_is_text=is_text
            )
        )
    return evaluators
