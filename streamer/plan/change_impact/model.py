"""The impact of a config's change on the stream that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Effect(StrEnum):
    """Effects on a running stream's open windows and offsets, from the least to the most.

    Attributes:
        RESTART: the stream goes on as it is; the change is seen when the program starts anew.
        IN_PLACE: the next micro-batch runs the new config; windows and offsets are kept.
        MIGRATE: windows that are open are kept, and go on by the new setting.
        RESET: what is kept does not fit: the windows begin anew.
    """

    RESTART = "restart"
    IN_PLACE = "in place"
    MIGRATE = "migrate"
    RESET = "reset"

    @property
    def weight(self) -> int:
        """A number that grows with what it costs."""
        return list(Effect).index(self)


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two configs.

    Attributes:
        path: the dotted path in the new config; in the old one when it is not there any more.
        label: of the component that it is in, or an empty string.
        file: the file that it stands in.
        line: 1-based line there; 0 when it was not written.
        old: the value before, as a config would write it and without secrets; None for none.
        new: the value after, the same.
        effect: its effect on the stream.
        note: what it means for what is kept; empty when there is nothing to say.
    """

    path: str
    label: str
    file: str
    line: int
    old: str | None
    new: str | None
    effect: Effect
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the change for JSON."""
        return {
            "path": self.path,
            "label": self.label,
            "file": self.file,
            "line": self.line,
            "old": self.old,
            "new": self.new,
            "effect": str(self.effect),
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class ChangeImpact:
    """The impact of the change from one config to another.

    Attributes:
        changes: what differs, in the order of the config; empty when nothing does.
        keeps_input: whether the new config reads the same input, so that its offsets hold.
        losses: what a reset would lose, sentence by sentence; empty when nothing is reset.
    """

    changes: tuple[Change, ...] = ()
    keeps_input: bool = True
    losses: tuple[str, ...] = ()

    @property
    def effect(self) -> Effect | None:
        """The gravest effect of a change; None when nothing changes."""
        return max((one.effect for one in self.changes), key=lambda e: e.weight, default=None)

    @property
    def resets(self) -> bool:
        """Whether the stream's windows must begin anew, which somebody has to ask for."""
        return self.effect == Effect.RESET

    def as_dict(self) -> dict[str, Any]:
        """Return the impact for JSON; `effect` is `none` when nothing changes."""
        return {
            "effect": str(self.effect or "none"),
            "keeps_input": self.keeps_input,
            "loses": list(self.losses),
            "changes": [one.as_dict() for one in self.changes],
        }
