"""Warnings of a stream without bounds, and settings that would cost less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.core.durations import format_duration
from streamer.plan import Plan
from streamer.plan.buffer_chain import plan_of_buffer
from streamer.plan.plan import count_cores
from streamer.tools.cost.measure import BufferCost, SampleCost
from streamer.tools.cost.sample_facts import SampleFacts
from streamer.tools.cost.state_model import count_windows, measure_hold, measure_step
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import Global, Session, TableJoin

_GROWING_SHARE: Final = 0.2
_MANY_WINDOWS: Final = 50
_MANY_LATE_PANES: Final = 20


def find_warnings(plan: Plan, facts: SampleFacts) -> Iterator[str]:
    """Yield each thing without a bound, with the setting that bounds it."""
    keys = facts.keys
    if keys.new_share > _GROWING_SHARE and keys.seen > 1:
        yield (
            f"{keys.new_share:.0%} of the {keys.seen:,} keys came in the second half of the "
            f"sample only, there may be {keys.total:,.0f}: keys may have no bound"
        )
    for number in range(max(len(plan.buffers), 1)):
        one = plan_of_buffer(plan, number) if plan.buffers else plan
        place = f"buffer {plan.buffers[number].label}: " if plan.buffers else ""
        for warning in _warn_of_buffer(one):
            yield place + warning
    if measure_hold(plan) is not None and plan.window is not None and not facts.rate:
        yield "the sample has no rate by its event times: give --rate for state and checkpoint"


def _warn_of_buffer(plan: Plan) -> Iterator[str]:
    window = plan.window
    if plan.keyed_state.users and plan.keyed_state.ttl is None:
        yield "processors keep a state for each key without expiry: set ttl of the state"
    if isinstance(window, EventWindow):
        kind = window.kind
        if isinstance(kind, Global):
            yield "a window of each key never closes: its state stays for good; set delete_when"
        if isinstance(kind, Session) and kind.max_duration is None:
            yield "a session has no largest duration: set max_duration"
        if isinstance(kind, TableJoin) and kind.table_ttl is None:
            yield "rows of the table stay for good: set table_ttl, or delete_when"
        if window.count_based:
            yield "a window of a key that is silent stays open for good: bound the keys"
        if window.time.clock_scope == "key":
            kept = format_duration(window.time.key_retention)
            yield (
                f"the clock of each key is kept for {kept} after its last message: "
                "lower key_retention"
            )
    copies, step = count_windows(plan), measure_step(plan)
    if copies >= _MANY_WINDOWS:
        yield f"each message is in {copies:,.0f} windows, and is emitted as often: raise the step"
    if step and window is not None and window.allowed_lateness >= _MANY_LATE_PANES * step:
        waiting = window.allowed_lateness / step
        yield (
            f"{waiting:,.0f} windows of each key wait for late messages at a time: "
            "lower allowed_lateness"
        )


def find_advice(plan: Plan, cost: SampleCost) -> Iterator[str]:
    """Yield settings that would cost less."""
    for one in cost.buffers:
        place = f"buffer {one.label}: " if one.label else ""
        for advice in _advise_buffer(one):
            yield place + advice
    if plan.master.startswith("local") and plan.shards > count_cores(plan.master):
        yield f"spark.shards is {plan.shards}: more shards than cores cost more CPU"


def _advise_buffer(cost: BufferCost) -> Iterator[str]:
    plan, window = cost.plan, cost.plan.window
    if window is None:
        return
    if plan.aggregation.text is None and plan.aggregation.obstacle:
        yield f"windows keep whole messages: {plan.aggregation.obstacle}"
    hold = measure_hold(plan)
    if hold and window.allowed_lateness * 2 > hold:
        yield "allowed_lateness is longer than the window: most of the state waits for late ones"
    if plan.key is None and plan.shards > 1:
        yield f"windows have no key, so one of {plan.shards} shards does all: add a key_mapping"
    elif cost.shards and cost.shards < plan.shards:
        yield f"{cost.shards} of {plan.shards} shards get messages: the keys are few"
