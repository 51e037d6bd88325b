"""Rules that the window buffers by event time share: refused settings, and defaults."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from streamer.bloblang import Mapping, compile_mapping
from streamer.core.durations import format_duration
from streamer.sdk.spec import ParsedFields
from streamer.sdk.window_buffer import fields as f
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import (
    KEY_RETENTION,
    SOURCE_IDLE_TIMEOUT,
    EventTimeSettings,
    WindowType,
)

FieldProblems = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class WindowBuffer:
    """A window buffer as the plan and the stages need it.

    Attributes:
        window: the settings of the kind.
        time: the settings that all kinds have; None for count windows, which know no time.
        timestamp: gives a message's event time; None for count windows.
        key: gives a message's key; None when all messages share their windows.
        filter: is true for the messages that are taken; None for all.
        having: is true, at the first message, for the windows that are emitted; None for all.
        late_output: the label of the output resource for dropped messages, or None.
        gap: gives the gap of a message's session; None without.
        begin_when: is true for messages that begin a window; None without.
        emit_when: is true for messages that emit a window; None without.
        right_timestamp: gives the event time of a message of the right side of a join, where that
            has a mapping of its own; else None.
        right_key: gives the key of such a message, where that has a mapping of its own; else None.
    """

    window: WindowType
    time: EventTimeSettings | None
    timestamp: Mapping | None
    key: Mapping | None
    filter: Mapping | None
    having: Mapping | None
    late_output: str | None
    gap: Mapping | None = None
    begin_when: Mapping | None = None
    emit_when: Mapping | None = None
    right_timestamp: Mapping | None = None
    right_key: Mapping | None = None

    @property
    def settings(self) -> EventWindow:
        """Settings of the windows, for the plan."""
        return EventWindow(self.window, self.time or EventTimeSettings(), self.key is not None)


def build_buffer(
    parsed: ParsedFields, window: WindowType, right_side: f.RightSideFields | None = None
) -> WindowBuffer:
    """Take the fields that a kind shares with others; its check has found them to be right.

    Args:
        parsed: the component's body, which may lack fields that the kind does not have.
        window: the settings of the kind.
        right_side: the fields with the mappings of a join's right side alone; None for other kinds.
    """
    right_timestamp = right_key = None
    if right_side is not None:
        right_timestamp = _compile_optional_mapping(parsed, right_side.timestamp)
        right_key = _compile_optional_mapping(parsed, right_side.key)
    timestamp = _compile_optional_mapping(parsed, f.TIMESTAMP_MAPPING)
    return WindowBuffer(
        window=window,
        time=None if timestamp is None else _read_event_time(parsed),
        timestamp=timestamp,
        key=_compile_optional_mapping(parsed, f.KEY_MAPPING),
        filter=_compile_optional_mapping(parsed, f.FILTER),
        having=_compile_optional_mapping(parsed, f.HAVING),
        late_output=parsed.get(f.LATE_OUTPUT) or None,
        gap=_compile_optional_mapping(parsed, f.GAP_MAPPING),
        begin_when=_compile_optional_mapping(parsed, f.BEGIN_WHEN),
        emit_when=_compile_optional_mapping(parsed, f.EMIT_WHEN),
        right_timestamp=right_timestamp,
        right_key=right_key,
    )


def _read_event_time(parsed: ParsedFields) -> EventTimeSettings:
    """Return the shared settings; they are called as their fields are."""
    settings: dict[str, Any] = {
        name: value.lower() if isinstance(value, str) else value
        for name in EventTimeSettings.__dataclass_fields__
        if (value := parsed.get(name)) is not None
    }
    settings[f.EMIT_ALSO] = frozenset(name.lower() for name in settings.get(f.EMIT_ALSO, ()))
    return EventTimeSettings(**settings)


def _compile_optional_mapping(parsed: ParsedFields, name: str) -> Mapping | None:
    text = parsed.get(name) or ""
    return compile_mapping(text) if text.strip() else None


def find_event_time_problems(parsed: ParsedFields) -> FieldProblems:
    """Return what is wrong with the fields that all kinds have: the field, and the problem."""
    yield from find_timestamp_problems(parsed)
    yield from find_key_problems(parsed)
    yield from find_lateness_problems(parsed)
    yield from find_non_positive(parsed, f.IDLE_TIMEOUT, "leave it out to wait for the clock")
    yield from find_non_positive(parsed, f.KEY_RETENTION, "leave it out for a week")
    yield from find_retention_problems(parsed)
    yield from find_state_ttl_problems(parsed)
    yield from _find_clock_scope_problems(parsed)
    yield from _find_emit_also_problems(parsed)
    if (
        parsed[f.EMIT].lower() == "forward"
        and _compile_optional_mapping(parsed, f.HAVING) is not None
    ):
        yield (
            f.HAVING,
            "cannot judge a window with emit: forward, which passes messages on before their "
            "window is whole; choose messages with filter, or another emit",
        )


def _find_emit_also_problems(parsed: ParsedFields) -> FieldProblems:
    """Return what cannot be emitted besides."""
    also, emit = [name.lower() for name in parsed[f.EMIT_ALSO]], parsed[f.EMIT].lower()
    if also and emit == "forward":
        text = "has no meaning with emit: forward, which keeps no messages that could be emitted"
        yield f.EMIT_ALSO, f"{text}; use emit: changes or each"
    if "retractions" in also:
        if emit not in ("changes", "each"):
            text = f"retractions have no meaning with emit: {emit}, which emits a window once"
            yield f.EMIT_ALSO, f"{text}; leave them out, or use emit: changes or each"
        if parsed[f.RETENTION] is not None:
            text = "cannot stand beside emit_also: retractions, since kept results are not deleted"
            yield f.RETENTION, f"{text}; leave out one of them"
        has_moving_bounds = "gap" in parsed
        if not has_moving_bounds and _compile_optional_mapping(parsed, f.HAVING) is None:
            text = "retractions have no meaning without having, since the bounds of these windows"
            yield f.EMIT_ALSO, f"{text} never change; leave them out, or add having"
    if "close" in also and emit == "final":
        yield f.EMIT_ALSO, "close is what emit: final does; leave it out, or use another emit"


def find_timestamp_problems(parsed: ParsedFields) -> FieldProblems:
    """Return what is wrong with the mapping of event times, beyond its syntax."""
    if not parsed[f.TIMESTAMP_MAPPING].strip():
        yield f.TIMESTAMP_MAPPING, "is empty; leave it out for the time of arrival"


def find_side_problems(
    parsed: ParsedFields, first: str, second: str, first_side: str
) -> FieldProblems:
    """Return what is wrong with the two sides of a join, of which each is an input of its own.

    Args:
        parsed: the fields.
        first: the field that names the first side.
        second: the field that names the second side.
        first_side: the first side in words.
    """
    for name in (first, second):
        if not parsed[name]:
            yield name, "is empty; expected the label of one of the inputs"
    if parsed[first] and parsed[first] == parsed[second]:
        yield second, f"is {parsed[second]!r}, which is {first_side} already; name another input"


def find_right_side_problems(parsed: ParsedFields, right_side: f.RightSideFields) -> FieldProblems:
    """Return what is wrong with the mappings of a join's right side alone.

    Args:
        parsed: the fields.
        right_side: the fields with these mappings.
    """
    yield from find_repeat_problems(parsed, right_side.key, "key")
    has_own_key = _compile_optional_mapping(parsed, right_side.key) is not None
    if has_own_key and _compile_optional_mapping(parsed, f.KEY_MAPPING) is None:
        text = f"has no meaning without {f.KEY_MAPPING}, which gives the keys of the left side"
        yield right_side.key, f"{text}; add it, or remove this one"


def find_key_problems(parsed: ParsedFields) -> FieldProblems:
    """Return what is wrong with a key: it must follow from the message, however often asked."""
    yield from find_repeat_problems(parsed, f.KEY_MAPPING, "key")


def find_repeat_problems(parsed: ParsedFields, name: str, what: str) -> FieldProblems:
    """Return what is wrong with a mapping that must give a message the same whenever it is asked.

    Args:
        parsed: the component's body.
        name: the field with the mapping.
        what: what it gives, in a word.
    """
    mapping = _compile_optional_mapping(parsed, name)
    if mapping is None:
        return
    if mapping.uses.random:
        reason = f"leaves the {what} to chance (random_int, uuid_v4 or the like)"
    elif mapping.uses.batch:
        reason = "looks at other messages than its own (batch_index, from_all, count or the like)"
    else:
        return
    yield (
        name,
        f"must give a message the same {what} whenever it is asked, but it {reason}; take the "
        f"{what} from the message",
    )


def find_lateness_problems(parsed: ParsedFields) -> FieldProblems:
    """Return what is wrong with how late, and how early, messages may be."""
    hints = {
        f.ALLOWED_LATENESS: "0s waits for no late messages",
        f.MAX_AHEAD: "0s allows no event to be ahead of the clock",
    }
    for name, hint in hints.items():
        value = parsed.get(name)
        if value is not None and value < 0:
            yield name, f"is {format_duration(value)}, but it must not be negative; {hint}"


def find_size_problems(parsed: ParsedFields) -> FieldProblems:
    """Return what is wrong with the length of a window."""
    size = parsed[f.SIZE]
    if size is None or size <= 0:
        value_text = "empty" if size is None else format_duration(size)
        yield f.SIZE, f"is {value_text}, but a window needs a length above 0s, such as 10m"


def find_retention_problems(parsed: ParsedFields) -> FieldProblems:
    """Return what is wrong with how long results are kept."""
    yield from find_non_positive(parsed, f.RETENTION, "leave it out to keep no results")


def find_state_ttl_problems(parsed: ParsedFields) -> FieldProblems:
    """Return what is wrong with how long state by key is kept."""
    yield from find_non_positive(parsed, f.STATE_TTL, "leave it out to keep state for ever")


def find_non_positive(parsed: ParsedFields, name: str, hint: str) -> FieldProblems:
    """Return what is wrong with a duration that must be longer than nothing where it is set."""
    value = parsed[name]
    if value is not None and value <= 0:
        yield name, f"is {format_duration(value)}, but it must be longer than 0s; {hint}"


def find_source_clock_problems(parsed: ParsedFields) -> FieldProblems:
    """Return where a clock is to wait for sources that it cannot wait for."""
    scope, timeout = parsed[f.CLOCK_SCOPE].lower(), parsed[f.SOURCE_IDLE_TIMEOUT]
    if scope not in ("partition", "input"):
        if timeout not in (None, SOURCE_IDLE_TIMEOUT):
            text = "has no meaning without clock_scope: partition or input"
            yield f.SOURCE_IDLE_TIMEOUT, f"{text}; remove it, or add one of them"
    elif (parsed.get(f.CLOCK) or "").lower() == "system":
        text = f"is {scope}, but with clock: system windows wait for no event time"
        yield f.CLOCK_SCOPE, f"{text}; leave it out, or use clock: stream"
    if timeout is not None and timeout < 0:
        yield f.SOURCE_IDLE_TIMEOUT, "is negative; 0s waits for ever"


def _find_clock_scope_problems(parsed: ParsedFields) -> FieldProblems:
    """Return where clocks of keys are asked for that cannot be, or would be all the same."""
    yield from find_source_clock_problems(parsed)
    if parsed[f.CLOCK_SCOPE].lower() != "key":
        if parsed[f.KEY_RETENTION] not in (None, KEY_RETENTION):
            text = "has no meaning without clock_scope: key, since no key has a clock of its own"
            yield f.KEY_RETENTION, f"{text}; remove it, or add clock_scope: key"
    elif _compile_optional_mapping(parsed, f.KEY_MAPPING) is None:
        yield f.CLOCK_SCOPE, "is key, but messages have no keys; add key_mapping, or leave it out"
    elif parsed[f.CLOCK].lower() == "system":
        text = "is key, but with clock: system it is the same time for all keys"
        yield f.CLOCK_SCOPE, f"{text}; leave it out, or use clock: stream"


def encode_keys(keys: list[Any]) -> tuple[bytes, ...]:
    """Return keys as windows have them, each once."""
    if not keys:
        return ()
    # Imported here, since it brings numpy, and lint is not to wait for that.
    from streamer.window.pack.message_columns import encode_key

    return tuple(dict.fromkeys(map(encode_key, keys)))
