"""The processors that keep state by key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

MAPPING_PROCESSORS: Final = frozenset(("mapping", "mutation", "bloblang"))
"""Processors in whose mappings functions such as `lag` keep state by key."""

STATEFUL_PROCESSORS: Final = frozenset(("throttle", "deduplicate"))
"""Processors that keep state by key themselves."""

_EXPECT: Final = "expect"


def name_state_calls(processor: str, config: Any) -> tuple[str, ...]:
    """Return what a processor keeps state by key for itself, as it is named to people.

    Args:
        processor: its type.
        config: its parsed body, also one that is not right.

    Returns:
        Texts that, behind the processor's label or path and a slash, name its state.
    """
    if processor in STATEFUL_PROCESSORS:
        return (processor,)
    return _select_expectations(
        processor, config, lambda one: one["history"] and one["history"]["windows"]
    )


def name_window_expectations(processor: str, config: Any) -> tuple[str, ...]:
    """Return the expectations of a processor that are about windows; see `name_state_calls`."""
    return _select_expectations(
        processor, config, lambda one: one["per"] and one["per"].lower() == "window"
    )


def name_ungrouped_histories(processor: str, config: Any) -> tuple[str, ...]:
    """Return the expectations of a processor that compare windows whole; see `name_state_calls`."""
    return _select_expectations(
        processor,
        config,
        lambda one: one["history"] and one["history"]["windows"] and not one["history"]["group"],
    )


def name_expectation_state(scope: str, name: str) -> str:
    """Return the name of the state of an expectation, see `name_state_calls`."""
    return f"{scope}/{_EXPECT} {name}"


def _select_expectations(
    processor: str, config: Any, is_selected: Callable[[Any], Any]
) -> tuple[str, ...]:
    if processor != _EXPECT or config is None:
        return ()
    expectations = [one for one in config["expectations"] or () if one is not None]
    return tuple(f"{_EXPECT} {one['name']}" for one in expectations if is_selected(one))
