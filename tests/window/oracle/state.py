"""`state_window` (eKuiper): from one condition to another, in order of arrival."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from tests.window.oracle.events import KEY_FAILS, NO_KEY, Emitted, Event, MicroBatch, Out, same


@dataclass(frozen=True, kw_only=True)
class State:
    """With `single`, the event that begins a window ends the one before."""

    single: bool = False
    end_of_input: str = "drop"
    keyed: bool = False
    filtered: bool = False
    conditional: bool = True


class StateOracle:
    def __init__(self, rules: State) -> None:
        self.rules = rules
        self.open: dict[Hashable, list[Event]] = {}

    def step(self, batch: MicroBatch) -> Out:
        out = Out()
        for event in batch.events:
            if event.failed:
                out.failed.append(event.id)
            elif self.rules.filtered and event.filter is not True:
                out.filtered.append(event.id)
            elif self.rules.keyed and event.key is KEY_FAILS:
                out.dropped.append((event.id, "key"))
            else:
                self._take(event, out)
        if batch.ended and self.rules.end_of_input != "keep":
            # Windows come out in the order in which they began.
            for inside in self.open.values():
                if self.rules.end_of_input == "flush":
                    out.batches.append(self._shown("flush", inside))
                else:
                    out.dropped += [(event.id, "incomplete") for event in inside]
            self.open = {}
        return out

    def held(self) -> set[str]:
        return {event.id for inside in self.open.values() for event in inside}

    def _take(self, event: Event, out: Out) -> None:
        key = same(event.key) if self.rules.keyed else NO_KEY
        inside = self.open.get(key)
        if inside is None:
            if event.begins is True:
                self.open[key] = [event]
            else:
                out.dropped.append((event.id, "incomplete"))
        elif self.rules.single and event.begins is True:
            out.batches.append(self._shown("event", self.open.pop(key)))
            self.open[key] = [event]
        else:
            inside.append(event)
            if not self.rules.single and event.emits is True:
                out.batches.append(self._shown("event", self.open.pop(key)))

    def _shown(self, reason: str, inside: list[Event]) -> Emitted:
        key = inside[0].key if self.rules.keyed else NO_KEY
        return Emitted(reason, tuple(event.id for event in inside), key)
