"""The state that a checkpoint is bound to, in the words of configs: buffers, fields and mappings.

A checkpoint records its windows as a fingerprint (`session(1m),stream,stream,keys,keyed`), which is
compared and stays as it is. People read what is here.
"""

from __future__ import annotations

import re
from typing import Any, Final

_WINDOW: Final = re.compile(r"(?P<kind>\w+)(?:\((?P<values>[^)]*)\))?(?P<rest>.*)")
_BUFFER: Final = re.compile(r"(?P<level>\d+):(?P<label>.*?) from (?P<source>\S+) (?P<window>.*)")
_SEPARATOR: Final = " | "
_AT_MOST: Final = "at most "
_DELAY: Final = "delay "
_FIELDS: Final = {
    "system_window": ("size", "slide", "offset"),
    "grid": ("size", "every", "offset", "timezone"),
    "sliding": ("size", "mode"),
    "count": ("count", "every"),
    "join": ("left", "right", "before", "after", "type"),
}
"""Fields by the values in brackets, in their order."""
_MAIN_FIELDS: Final = (
    *("size", "slide", "every", "offset", "timezone", "mode", "gap", "max_duration"),
    *("max_count", "delay", "emit_at", "count"),
    *("left", "right", "before", "after", "type", "keeps"),
)
_SHOWN_IF_CHANGED: Final = ("clock", "clock_scope", "key_mapping")
_NAMES: Final = {
    "sliding": "sliding_window",
    "session": "session_window",
    "count": "count_window",
    "state": "state_window",
    "global": "global_window",
    "join": "window_join",
}


def compare_states(name: str, bound: Any, current: Any) -> tuple[str, str]:
    """Return what a checkpoint was made with and what a config has, each in words.

    Args:
        name: `input`, `window` or `key`, as in a fingerprint.
        bound: the part of the checkpoint's fingerprint.
        current: the same of the config.
    """
    if name == "input":
        return f"input {bound}", f"input {current}"
    if name == "key":
        return f"grouping {_describe_key(bound)}", f"grouping {_describe_key(current)}"
    before, after = _read_windows(str(bound)), _read_windows(str(current))
    return (
        _format_windows(before, after, "with other aggregates, or kept in another form"),
        _format_windows(after, before, ""),
    )


def _describe_key(key: Any) -> str:
    return "none" if key in (None, "None") else f"by {key}"


def _read_windows(fingerprint: str) -> dict[str, str]:
    """Return the fields of windows, with the name of the buffer under an empty key."""
    matches = [_BUFFER.fullmatch(part) for part in fingerprint.split(_SEPARATOR)]
    if all(matches):
        return {
            match["label"]: f"from {match['source']}, {_describe_window(match['window'])}"
            for match in matches
            if match
        }
    return _read_window(fingerprint)


def _read_window(fingerprint: str) -> dict[str, str]:
    match = _WINDOW.fullmatch(fingerprint)
    if match is None:
        return {"": fingerprint}
    kind, values = match["kind"], (match["values"] or "").split(",")
    fields = dict(zip(_FIELDS.get(kind, ()), values, strict=False))
    if kind == "session":
        fields = _read_session(values)
    elif kind == "sliding":
        fields.update(_read_waiting(values))
    name = _NAMES.get(kind, kind)
    if kind == "grid":
        name = "tumbling_window" if fields["size"] == fields["every"] else "hopping_window"
    if kind == "system_window" and fields["slide"] == fields["size"]:
        del fields["slide"]
    if name == "tumbling_window" or (kind == "count" and fields["every"] == fields["count"]):
        del fields["every"]
    if fields.get("offset") == "0s":
        del fields["offset"]
    if kind == "global" and values == ["latest"]:
        fields["keeps"] = "the latest messages"
    window = {"": name, **fields}
    window.update(_read_clock(match["rest"]))
    return window


def _read_session(values: list[str]) -> dict[str, str]:
    """Return the fields of sessions: their gap, and those of their limits that there are."""
    gap, *more = values
    fields = {"gap": gap}
    for value in more:
        if value == "by message":
            fields["gap"] = f"{gap}, or as the message says"
        elif value.startswith(_AT_MOST):
            fields["max_count"] = value.removeprefix(_AT_MOST)
        else:
            fields["max_duration"] = value
    return fields


def _read_waiting(values: list[str]) -> dict[str, str]:
    """Return for how long windows of messages wait, as fields."""
    last = values[-1]
    if last.startswith(_DELAY):
        return {"delay": last.removeprefix(_DELAY)}
    return {"emit_at": "event_time"} if last == "waits" else {}


def _read_clock(rest: str) -> dict[str, str]:
    """Return what stands behind the kind: the clock, whose clock it is, and whether with a key."""
    rest, of, aggregates = rest.partition(" of ")
    parts = rest.strip(",").split(",") if rest else []
    fields: dict[str, str] = {}
    if len(parts) >= 3:
        fields["clock"], fields["clock_scope"] = parts[0], parts[1]
        fields["key_mapping"] = "given" if "keyed" in parts[2:] else "none"
        fields["kept by"] = "key" if parts[2] == "keys" else "window"
    if of:
        fields["aggregates"] = aggregates
    return fields


def _describe_window(fingerprint: str) -> str:
    return _format_windows(_read_window(fingerprint), {}, "")


def _format_windows(fields: dict[str, str], others: dict[str, str], otherwise: str) -> str:
    """Return windows in words.

    Args:
        fields: of the windows.
        others: fields of those that they are compared with.
        otherwise: what differs where no field shows it.
    """
    if "" not in fields:
        labels = [label for label in fields if fields[label] != others.get(label)] or list(fields)
        return f"buffers {', '.join(f'{label} ({fields[label]})' for label in labels)}"
    shown = [
        f"{name}: {value}"
        for name, value in fields.items()
        if name in _MAIN_FIELDS or (name in _SHOWN_IF_CHANGED and others.get(name, value) != value)
    ]
    if otherwise and fields[""] == others.get("") and _show(fields) == _show(others):
        shown.append(otherwise)
    details = f" ({', '.join(shown)})" if shown else ""
    return f"buffer {fields['']}{details}"


def _show(fields: dict[str, str]) -> dict[str, str]:
    """Return the fields that a reader is shown."""
    return {name: fields[name] for name in (*_MAIN_FIELDS, *_SHOWN_IF_CHANGED) if name in fields}
