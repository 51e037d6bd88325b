"""Hints for fields that a component does not have: what it is called here, or what has it."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final

from streamer.components import catalog
from streamer.sdk.spec import Kind, Spec

# What more of them have is common to windows, and says nothing about where to go.
_MAX_NAMED_COMPONENTS: Final = 4

_NAMES_ELSEWHERE: Final = {
    "allowed_lateness": (
        *("grace", "grace_period", "lateness", "late_arrival_delay", "watermark"),
        *("watermark_delay", "out_of_orderness", "max_out_of_orderness", "delay"),
        "wait_for_system_duration",
    ),
    "size": ("length", "duration", "interval", "window_size", "size_ms", "range"),
    "every": ("slide", "hop", "hop_size", "advance", "advance_by", "advance_ms", "step"),
    "slide": ("every", "hop", "hop_size", "advance", "advance_by", "advance_ms", "step"),
    "gap": (
        *("timeout", "inactivity", "inactivity_gap", "session_gap", "session_timeout"),
        *("gap_duration", "inactivity_ms"),
    ),
    "key_mapping": ("key", "keys", "key_by", "group_by", "partition_by", "by", "on"),
    "timestamp_mapping": (
        *("timestamp", "time", "event_time", "time_field", "timestamp_field"),
        *("timestamp_column", "time_col", "ts", "ts_getter"),
    ),
    "late_output": ("late", "side_output", "dead_letter", "late_data"),
    "emit": ("trigger", "output_mode", "suppress", "early", "emit_strategy"),
    "empty_windows": (
        *("emit_empty", "emit_empty_windows", "fill", "fill_gaps", "gap_fill", "gapfill"),
        *("interpolate", "zero_fill"),
    ),
    "order": ("order_by", "sort", "sort_by"),
    "clock_scope": ("watermark_scope", "watermark_alignment"),
    "idle_timeout": ("idleness", "idle", "with_idleness"),
    "upsert_by": ("on_conflict", "conflict_columns", "upsert", "upsert_keys", "primary_key", "key"),
    "delete_when": ("delete", "tombstones", "delete_on"),
    "max_in_flight": ("parallelism", "concurrency", "workers"),
}
"""Names of Flink, ksqlDB, Kafka Streams, Spark, Bytewax, Vector and the like, by ours."""


def find_field_hints(spec: Spec, names: Iterable[str]) -> dict[str, str]:
    """Return hints for fields that a component does not have, by their names.

    What the component says itself goes first: `Spec.instead`.

    Args:
        spec: the component.
        names: those that are written in it, right or wrong.
    """
    known = {field.name for field in spec.fields}
    hints: dict[str, str] = {}
    for name in names:
        if name in known:
            continue
        hint = (
            spec.instead.get(name) or _name_here(name, known) or _name_components_with(name, spec)
        )
        if hint:
            hints[name] = hint
    return hints


def _name_here(name: str, known: Container[str]) -> str:
    """Return our name for a field of another system, as a hint."""
    for ours, others in _NAMES_ELSEWHERE.items():
        if ours in known and name.lower() in others:
            return f"it is called {ours} here"
    return ""


def _name_components_with(name: str, spec: Spec) -> str:
    """Return the buffers that have a field, as a hint; there are few, so all are read."""
    if spec.kind is not Kind.BUFFER:
        return ""
    names = [
        one.name
        for one in catalog.all_specs()
        if one.kind is Kind.BUFFER and any(field.name == name for field in one.fields)
    ]
    if not 0 < len(names) <= _MAX_NAMED_COMPONENTS:
        return ""
    *most, last = names
    listed = f"{', '.join(most)} and {last}" if most else last
    return f"{listed} {'have' if most else 'has'} it, {spec.name} does not"
