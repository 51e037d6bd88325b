"""Lints what keeps state by key where messages have none: it would fail on every message."""

from __future__ import annotations

import re
from typing import Final

from streamer.components import catalog
from streamer.config.read_context import ReadContext, StatefulPlace
from streamer.sdk.spec import ParsedComponent
from streamer.sdk.spec.keyed_state import MAPPING_PROCESSORS, STATEFUL_PROCESSORS

_CODE: Final = "no_keyed_state"
_WINDOW_CODE: Final = "no_window"
_UNWINDOWED: Final = "keyed_state"
_SHARED_PREFIX: Final = "processor_resources."
_PIPELINE: Final = re.compile(r"(buffers\.\d+\.)?pipeline\.processors\.")
_UNORDERED: Final = {
    "parallel": "messages overtake one another",
    "cached": "what was cached is not worked out again",
}
_ANYWHERE_TEXT: Final = (
    "state by key is kept in mapping, mutation and bloblang processors of the pipeline"
)


def check_keyed_state(context: ReadContext, buffer: ParsedComponent | None) -> None:
    """Add an error for each place that keeps state by key and cannot.

    Args:
        context: knows the places, and gets the findings.
        buffer: the config's buffer; None for the default, or when it cannot be told.
    """
    _check_windows(context, buffer)
    for place in context.stateful_places:
        problem = _find_problem(place, buffer)
        if problem is not None:
            message, hint = problem
            context.findings.add_at(place.node, _CODE, message, hint)


def _check_windows(context: ReadContext, buffer: ParsedComponent | None) -> None:
    """Add an error for each place that is about windows where there are none."""
    is_windowed = (
        buffer is not None and catalog.makes_windows(buffer) and buffer.name != _UNWINDOWED
    )
    for place in context.window_places:
        if place.path.startswith(_SHARED_PREFIX):
            continue  # whoever refers to it may be another config
        in_pipeline = _PIPELINE.match(place.path) is not None
        if in_pipeline and is_windowed:
            continue
        where = f"behind the buffer {'none' if buffer is None else buffer.name}"
        where = where if in_pipeline else f"in {place.path}"
        hint = "use a buffer with windows, such as tumbling_window; or set per to batch"
        text = f"{', '.join(place.calls)} is per window, but {where} there are no windows"
        context.findings.add_at(
            place.node,
            _WINDOW_CODE,
            text,
            hint if in_pipeline else "move it to pipeline.processors",
        )


def _find_problem(place: StatefulPlace, buffer: ParsedComponent | None) -> tuple[str, str] | None:
    """Return what is wrong with a place, and what to do."""
    calls = ", ".join(place.calls)
    *outer, name = place.path.split(".")
    in_pipeline = _PIPELINE.match(place.path) is not None
    if not in_pipeline and not place.path.startswith(_SHARED_PREFIX):
        where = place.path or "the config"
        hint = "move it to pipeline.processors"
        if outer[:1] == ["buffer"] or name in ("buffer",):
            hint = "work the value out in the pipeline, behind the buffer"
        return f"{calls} in {where}: {_ANYWHERE_TEXT}", hint
    keeps_own = all(call.startswith(f"{name} ") for call in place.calls)
    if name not in MAPPING_PROCESSORS | STATEFUL_PROCESSORS and not keeps_own:
        hint = "work the value out in a mapping before it, and put it into a field or metadata"
        return f"{calls} in a field of {name}: {_ANYWHERE_TEXT}", hint
    for around in outer:
        if around in _UNORDERED:
            message = f"{calls} keeps state by key, but within {around} {_UNORDERED[around]}"
            return message, f"move it out of {around}"
    if place.path.startswith(_SHARED_PREFIX):
        return None  # whoever refers to it may be another config
    if buffer is None or not catalog.makes_windows(buffer):
        named = "none" if buffer is None else buffer.name
        message = f"{calls} keeps state by key, but behind the buffer {named} messages have no key"
        return message, "use the buffer keyed_state with a key_mapping, or one with windows"
    return None
