"""How stage 1 finds slot and group of many messages at once, when their documents are enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import orjson

from streamer.value import parse_json
from streamer.window.queries import Interpolated, Query, field_of, is_now
from streamer.window.stamps import Groups, Slots

Field = Callable[[Any], Any]
Docs = Iterable[Any]


class Looking(Protocol):
    """A way to look at many messages at once."""

    @property
    def loads(self) -> Callable[[bytes], Any] | None:
        """Parses a payload; None when no document is looked at."""

    def codes(self, docs: Any) -> list[int]:
        """Look at documents; return the codes that there are."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way, which raises whatever a message makes it raise.

    Attributes:
        loads: parses a payload; None when no document is looked at.
        codes: gives the code of each document (`stamps.SLOT_BITS`); without `loads`, what it is
            given may be anything.
    """

    loads: Callable[[bytes], Any] | None
    codes: Callable[[Docs], list[int]]

    def of_raws(self, raws: list[bytes]) -> list[int]:
        """Return the code of each payload."""
        return self.codes(raws if self.loads is None else map(self.loads, raws))


def fast_ways(
    timestamp: Query, key: Interpolated | Query | None, slots: Slots, groups: Groups | None
) -> list[Way]:
    """Return the ways that there are for these mappings, the fastest first."""
    always_now = is_now(timestamp)
    ways = []
    time = None if always_now else field_of(timestamp)
    field = None if key is None else field_of(key)
    if (time or always_now) and (field or key is None):
        # Fields that hold strings: orjson's numbers, exact or not, have no part in them.
        codes = _codes(slots, groups, time, field, texts_only=True, key_is_text=True)
        ways.append(Way(orjson.loads if time or field else None, codes))
    time_fn = None if always_now else timestamp.doc_fn
    key_fn = None if key is None else key.doc_fn
    if (time_fn or always_now) and (key_fn or key is None):
        is_text = hasattr(key, "text_of")
        codes = _codes(slots, groups, time_fn, key_fn, texts_only=False, key_is_text=is_text)
        ways.append(Way(parse_json if time_fn or key_fn else None, codes))
    return ways


def _codes(
    slots: Slots,
    groups: Groups | None,
    time: Field | None,
    key: Field | None,
    texts_only: bool,
    key_is_text: bool,
) -> Callable[[Docs], list[int]]:
    texts = Groups(1, False) if groups is None else groups
    of_result = texts.of_result

    # One function for each case, for what they do not ask costs nothing a million times.
    def neither(docs: Docs) -> list[int]:
        now = slots.of_now()
        return [now for _ in docs]

    def by_key(docs: Docs, key: Field) -> list[int]:
        now = slots.of_now()
        if key_is_text:
            return [now + texts[key(doc)] for doc in docs]
        return [now + of_result(key(doc)) for doc in docs]

    def by_time(docs: Docs, time: Field) -> list[int]:
        slots.texts_only = texts_only
        return [slots[time(doc)] for doc in docs]

    def by_both(docs: Docs, time: Field, key: Field) -> list[int]:
        slots.texts_only = texts_only
        if key_is_text:
            return [slots[time(doc)] + texts[key(doc)] for doc in docs]
        return [slots[time(doc)] + of_result(key(doc)) for doc in docs]

    if time is None:
        return neither if key is None else partial(by_key, key=key)
    return partial(by_time, time=time) if key is None else partial(by_both, time=time, key=key)
