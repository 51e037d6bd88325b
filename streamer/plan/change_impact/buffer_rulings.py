"""Rulings on changed settings of window buffers: what they mean for open windows.

What a checkpoint's state is bound to is in `Plan.fingerprint`; beyond that, what an open window
was begun with is part of what it holds. Everything that is listed here as kept is held by a test
that begins windows with the one setting and ends them with the other.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from streamer.plan.change_impact.model import Effect
from streamer.sdk.spec import ParsedFields
from streamer.sdk.window_buffer import fields as f

WINDOWLESS: Final = frozenset({"none", "memory", "sqlite"})
"""Buffers that keep nothing between micro-batches."""


class Ruling(NamedTuple):
    """The ruling on one change.

    Attributes:
        effect: as of `Change`.
        note: as of `Change`.
    """

    effect: Effect
    note: str = ""


_OTHER: Final = Ruling(Effect.RESET, "windows that are open were begun with the former value")
_TIME: Final = Ruling(
    Effect.RESET, "the contents of windows were placed by the times of the former one"
)
_KEY: Final = Ruling(
    Effect.RESET, "the contents of windows were grouped by the keys of the former one"
)
_CLOCK: Final = Ruling(Effect.RESET, "open windows know only the clock that they were begun with")
_FROM_NOW: Final = Ruling(Effect.MIGRATE, "applies to messages from now on; stored ones stay")
_AT_CLOSE: Final = Ruling(Effect.MIGRATE, "holds for windows that close from now on")

# By field. Those that depend on both values are judged below.
RULINGS: Final[dict[str, Ruling]] = {
    f.TIMESTAMP_MAPPING: _TIME,
    f.KEY_MAPPING: _KEY,
    "right_timestamp_mapping": _TIME,
    "right_key_mapping": _KEY,
    "table_timestamp_mapping": _TIME,
    "table_key_mapping": _KEY,
    f.SIZE: _OTHER,
    f.EVERY: _OTHER,
    "slide": _OTHER,
    f.OFFSET: _OTHER,
    f.TIMEZONE: _OTHER,
    "gap": _OTHER,
    f.GAP_MAPPING: _OTHER,
    "expected_keys": _OTHER,
    "max_duration": _OTHER,
    "max_duration_origin": _OTHER,
    "max_count": _OTHER,
    "mode": _OTHER,
    "delay": _OTHER,
    "emit_at": _OTHER,
    f.BEGIN_WHEN: _FROM_NOW,
    f.EMIT_WHEN: _FROM_NOW,
    "emit_every": _AT_CLOSE,
    "closed": _AT_CLOSE,
    "count": _OTHER,
    "min_count": _OTHER,
    "align": _OTHER,
    "latest_by": Ruling(Effect.RESET, "stored messages have the ids of the former one"),
    "delete_when": Ruling(Effect.IN_PLACE),
    "within": _OTHER,
    "before": _OTHER,
    "after": _OTHER,
    "left": _OTHER,
    "right": _OTHER,
    "stream": _OTHER,
    "table": _OTHER,
    "history": Ruling(Effect.MIGRATE, "rows that were removed already do not come back"),
    "table_ttl": Ruling(Effect.MIGRATE, "holds for the rows that there are already, too"),
    f.CLOCK: _CLOCK,
    f.SOURCE_IDLE_TIMEOUT: Ruling(Effect.MIGRATE),
    f.MAX_AHEAD: _FROM_NOW,
    f.FILTER: _FROM_NOW,
    f.LATE_OUTPUT: _FROM_NOW,
    f.HAVING: _AT_CLOSE,
    f.ORDER: Ruling(
        Effect.MIGRATE,
        "applies to new windows; open ones may be emitted in order of arrival",
    ),
    f.RETENTION: Ruling(Effect.MIGRATE, "holds for the results that there are already, too"),
    f.END_OF_INPUT: Ruling(Effect.MIGRATE),
    f.KEY_RETENTION: Ruling(
        Effect.MIGRATE, "keys that are known now may be kept as long as before"
    ),
    f.STATE_TTL: Ruling(Effect.MIGRATE, "holds for state that is written from now on"),
    "expire_after": _AT_CLOSE,
    "on_expired": _AT_CLOSE,
}
"""The effect of a change of a field, whatever its values."""

BY_VALUE: Final = frozenset(
    {
        f.ALLOWED_LATENESS,
        f.EMPTY_WINDOWS,
        f.IDLE_TIMEOUT,
        f.EMIT,
        f.EMIT_ALSO,
        f.CLOCK_SCOPE,
        "type",
    }
)
"""Fields of which both values decide; see `rule_on_field`."""


def rule_on_field(
    name: str, old: ParsedFields, new: ParsedFields, strategies: tuple[str, str]
) -> Ruling:
    """Judge a change of a window buffer's setting.

    Args:
        name: the field.
        old: the buffer's fields before.
        new: the fields after.
        strategies: how shards go about the windows, before and after (`Window.strategy`).
    """
    if name == f.ALLOWED_LATENESS:
        return _rule_on_lateness(old[name] or 0, new[name] or 0, strategies[1])
    if name == f.IDLE_TIMEOUT:
        return _rule_on_idle_timeout(old[name], new[name], strategies, "left" in new)
    if name == "type" and "table" in new:
        return _FROM_NOW
    if name == f.EMPTY_WINDOWS:
        return _rule_on_empty_windows(strategies)
    if name == f.EMIT_ALSO:
        if strategies[0] != strategies[1]:
            return Ruling(Effect.RESET, "windows with emit_also are kept in another form")
        return _AT_CLOSE
    if name == f.CLOCK_SCOPE:
        if "key" in (old[name], new[name]):
            return _CLOCK
        return Ruling(
            Effect.MIGRATE, "the clock continues from its present time, and never goes back"
        )
    if name == f.EMIT:
        return _rule_on_emit(old[name], new[name], strategies)
    if name == "type":
        return _OTHER
    return RULINGS.get(name, Ruling(Effect.RESET, "nothing is known about this change"))


def _rule_on_lateness(old: int, new: int, strategy: str) -> Ruling:
    if new < old:
        return Ruling(Effect.MIGRATE, "windows that are open now may close as late as before")
    if strategy == "keys":
        note = (
            "a window that has closed by the former value is emitted again if it gets more messages"
        )
        return Ruling(Effect.MIGRATE, note)
    return Ruling(Effect.MIGRATE, "windows that have closed stay closed")


def _rule_on_idle_timeout(
    old: int | None, new: int | None, strategies: tuple[str, str], is_join: bool
) -> Ruling:
    if strategies[0] != strategies[1]:
        return Ruling(Effect.RESET, "windows with idle_timeout are kept in another form")
    if new is None or (old is not None and new >= old):
        return Ruling(Effect.MIGRATE)
    if is_join:
        note = "" if old is not None else "waiting messages count as received at the deploy"
        return Ruling(Effect.MIGRATE, note)
    # A key is looked at when it was due by the setting that it was put away with.
    note = "windows that are open now close by it once they are given another message"
    return Ruling(Effect.MIGRATE, note)


def _rule_on_empty_windows(strategies: tuple[str, str]) -> Ruling:
    if strategies[0] != strategies[1]:
        return Ruling(Effect.RESET, "windows that come without messages too are kept by key")
    return Ruling(Effect.MIGRATE, "holds for windows that close from now on")


def _rule_on_emit(old: str, new: str, strategies: tuple[str, str]) -> Ruling:
    if "forward" in (old, new):
        return Ruling(Effect.RESET, "with emit: forward, windows keep no messages")
    if strategies[0] != strategies[1]:
        return Ruling(Effect.RESET, f"windows with emit: {new} are kept in another form")
    if old == "final":
        note = f"open windows would never be emitted by emit: {new} without a change"
        return Ruling(Effect.RESET, note)
    return Ruling(Effect.MIGRATE)
