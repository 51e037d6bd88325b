"""The compiled mappings of a plan's buffer, and how the fields that they need are read."""

from __future__ import annotations

from streamer.bloblang import compile_mapping
from streamer.bloblang.analysis.pre_aggregation import PreAggregation, analyze_pre_aggregation
from streamer.plan.plan import Plan
from streamer.window.evaluate.column_plan import ColumnPlan, plan_columns
from streamer.window.evaluate.queries import BufferMappings, CompiledMapping


def make_buffer_mappings(
    plan: Plan, timestamp: CompiledMapping | None = None, is_right: bool = False
) -> BufferMappings:
    """Compile the mappings of a plan's buffer.

    Args:
        plan: the plan of one buffer.
        timestamp: gives the event times in the place of the config's mapping.
        is_right: whether the mappings are for messages of the right side of a join.
    """
    if timestamp is None and (text := (is_right and plan.right_timestamp) or plan.timestamp):
        timestamp = compile_mapping(text)
    return BufferMappings(
        timestamp,
        plan.key.compile(is_right) if plan.key else None,
        compile_mapping(plan.filter) if plan.filter else None,
        compile_mapping(plan.gap) if plan.gap else None,
        *(compile_mapping(text) if text else None for text in plan.conditions),
    )


def describe_reading(plan: Plan) -> str:
    """Return how stage 1 reads what windows need of the messages; empty without windows."""
    window = plan.window
    if window is None:
        return ""
    if plan.input.processors:
        return "messages one by one; the input has processors"
    text = plan.aggregation.text if window.strategy == "panes" else None
    aggregation = None if text is None else analyze_pre_aggregation(text)
    assert aggregation is None or isinstance(aggregation, PreAggregation)
    columns = plan_columns(make_buffer_mappings(plan), aggregation, window)
    if not isinstance(columns, ColumnPlan):
        return f"messages one by one; {columns}"
    if not columns.paths:
        return "no fields of messages"
    names = ", ".join(".".join(path) for path in columns.paths)
    return f"columns of {names}; a line of an unusual shape is parsed by itself"
