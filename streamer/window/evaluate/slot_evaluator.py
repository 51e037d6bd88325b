"""How stage 1 finds slot and group of many messages at once, when their documents are enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import orjson

from streamer.core.json.parse import parse_json
from streamer.window.evaluate.queries import (
    CompiledInterpolation,
    CompiledMapping,
    field_getter_of,
    is_now_mapping,
)
from streamer.window.pack.slots import KeyGroups, PaneSlots

DocumentFunction = Callable[[Any], Any]
Documents = Iterable[Any]


class BulkEvaluator(Protocol):
    """A way to look at many messages at once."""

    @property
    def parser(self) -> Callable[[bytes], Any] | None:
        """Parses a payload; None when no document is looked at."""

    def evaluate(self, docs: Any) -> list[int]:
        """Look at documents; return the codes that there are."""


@dataclass(frozen=True, slots=True)
class SlotEvaluator:
    """One way, which raises whatever a message makes it raise.

    Attributes:
        parser: parses a payload; None when no document is looked at.
        evaluate: gives the code of each document (`stamps.SLOT_BITS`); without `parser`, what it is
            given may be anything.
    """

    parser: Callable[[bytes], Any] | None
    evaluate: Callable[[Documents], list[int]]

    def evaluate_raws(self, raws: list[bytes]) -> list[int]:
        """Return the code of each payload."""
        return self.evaluate(raws if self.parser is None else map(self.parser, raws))


def make_slot_evaluators(
    timestamp: CompiledMapping,
    key: CompiledInterpolation | CompiledMapping | None,
    slots: PaneSlots,
    groups: KeyGroups | None,
) -> list[SlotEvaluator]:
    """Return the ways that there are for these mappings, the fastest first."""
    always_now = is_now_mapping(timestamp)
    evaluators = []
    time = None if always_now else field_getter_of(timestamp)
    field = None if key is None else field_getter_of(key)
    if (time or always_now) and (field or key is None):
        # Fields that hold strings: orjson's numbers, exact or not, have no part in them.
        codes = _make_code_function(slots, groups, time, field, texts_only=True, key_is_text=True)
        evaluators.append(SlotEvaluator(orjson.loads if time or field else None, codes))
    time_fn = None if always_now else timestamp.doc_fn
    key_fn = None if key is None else key.doc_fn
    if (time_fn or always_now) and (key_fn or key is None):
        is_text = hasattr(key, "text_of")
        codes = _make_code_function(
            slots, groups, time_fn, key_fn, texts_only=False, key_is_text=is_text
        )
        evaluators.append(SlotEvaluator(parse_json if time_fn or key_fn else None, codes))
    return evaluators


def _make_code_function(
    slots: PaneSlots,
    groups: KeyGroups | None,
    time: DocumentFunction | None,
    key: DocumentFunction | None,
    texts_only: bool,
    key_is_text: bool,
) -> Callable[[Documents], list[int]]:
    texts = KeyGroups(1, False) if groups is None else groups
    of_result = texts.group_of_result

    # One function for each case, for what they do not ask costs nothing a million times.
    def neither(docs: Documents) -> list[int]:
        now = slots.code_of_now()
        return [now for _ in docs]

    def by_key(docs: Documents, key: DocumentFunction) -> list[int]:
        now = slots.code_of_now()
        if key_is_text:
            return [now + texts[key(doc)] for doc in docs]
        return [now + of_result(key(doc)) for doc in docs]

    def by_time(docs: Documents, time: DocumentFunction) -> list[int]:
        slots.texts_only = texts_only
        return [slots[time(doc)] for doc in docs]

    def by_both(docs: Documents, time: DocumentFunction, key: DocumentFunction) -> list[int]:
        slots.texts_only = texts_only
        if key_is_text:
            return [slots[time(doc)] + texts[key(doc)] for doc in docs]
        return [slots[time(doc)] + of_result(key(doc)) for doc in docs]

    if time is None:
        return neither if key is None else partial(by_key, key=key)
    return partial(by_time, time=time) if key is None else partial(by_both, time=time, key=key)
