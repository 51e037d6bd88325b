"""Judge the change from one config to another: what differs, and the effect.

Whatever is not known to be kept counts as a reset.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from streamer.config import Config
from streamer.config.sections import SECTIONS
from streamer.plan.buffer_chain import level_count
from streamer.plan.change_impact.buffer_rulings import WINDOWLESS, Ruling, rule_on_field
from streamer.plan.change_impact.differences import Difference, Side, compare_values, side_of
from streamer.plan.change_impact.model import Change, ChangeImpact, Effect
from streamer.plan.change_impact.renamed_labels import restore_labels
from streamer.plan.change_impact.used_resources import find_used_resources
from streamer.plan.keyed_state import KeyedStatePlan, find_lost_state
from streamer.plan.plan import Plan, make_plan
from streamer.plan.stream_buffers import extends_state
from streamer.sdk.spec import Field, Kind, ParsedComponent, ParsedFields

_IN_PLACE: Final = Ruling(Effect.IN_PLACE)
_ROTATED: Final = Ruling(Effect.IN_PLACE, "is the same secret, which has another value")
_NEW_TABLES: Final = Ruling(
    Effect.IN_PLACE, "is for a table that is made later; one that is there keeps its partitions"
)
_AT_START: Final = Ruling(Effect.RESTART, "is looked at when the program starts")
_OTHER_KIND: Final = Ruling(Effect.RESET, "windows of one kind are not those of another")
_OTHER_BUFFERS: Final = Ruling(
    Effect.RESET, "the shards of a buffer depend on its place in the list and its source"
)
_ADDED_LEVEL: Final = Ruling(
    Effect.RESET, "one buffer more behind another is an operator more, which no checkpoint takes"
)
_ADDED_BUFFER: Final = Ruling(
    Effect.MIGRATE, "it begins with the next messages; the windows of the others stay"
)
_INPUT: Final = Ruling(Effect.RESET, "offsets of the one input mean nothing to the other")

SECTION_RULINGS: Final[dict[str, Ruling]] = {
    "http": _AT_START,
    "logger": _IN_PLACE,
    "bloblang": _IN_PLACE,
    "redpanda": _IN_PLACE,
    "metrics": _IN_PLACE,
    "tracer": _AT_START,
    "shutdown_delay": _IN_PLACE,
    "shutdown_timeout": _IN_PLACE,
    "error_handling": _IN_PLACE,
    "limits": _IN_PLACE,
}
"""The effect of changes of sections that messages do not go through."""

SPARK_RULINGS: Final[dict[str, Ruling]] = {
    "master": _AT_START,
    "environment": _AT_START,
    "conf": _AT_START,
    "jars_directory": _AT_START,
    "kafka": _AT_START,
    "spool_limit": _AT_START,
    "checkpoint": Ruling(
        Effect.RESTART, "the stream keeps its checkpoint until the program restarts"
    ),
    "trigger_interval": _IN_PLACE,
    "shards": Ruling(Effect.RESET, "windows that are open are spread over the former number"),
}
"""The effect of changes of the `spark` section's fields."""

IGNORED: Final = frozenset({"tests"})
"""Sections that no stream runs."""

_PROCESSORS: Final = Field("processors", "processor", "Processors.", default=(), shape="array")


def judge(old: Config, new: Config, env: Mapping[str, str] | None = None) -> ChangeImpact:
    """Judge a change.

    Args:
        old: what runs.
        new: what is to run.
        env: the variables that both were read with, whose values are not shown; those of the
            process when None.

    Raises:
        StreamerError: one of them asks for something that cannot be run.
    """
    return _Judge(old, new, os.environ if env is None else env).judge()


class _Judge:
    def __init__(self, old: Config, new: Config, env: Mapping[str, str]) -> None:
        self._new_as_given = new
        new = restore_labels(old, new)
        self._old, self._new = old, new
        self._plans = make_plan(old), make_plan(new)
        self._sides = side_of(old, env), side_of(new, env)
        # Mappings name tables, and may do so anywhere.
        tables = [{key for key in c.resources if key[0] == Kind.TABLE} for c in (old, new)]
        roots = [
            (*c.components, *(c.resources[key] for key in keys))
            for c, keys in zip((old, new), tables, strict=True)
        ]
        both = (old, roots[0]), (new, roots[1])
        self._used_resources = set[tuple[Kind, str]]().union(
            *tables, *(find_used_resources(r, c.resources) for c, r in both)
        )
        by_inputs = (
            find_used_resources([c.input], c.resources, with_input_processors=False)
            for c in (old, new)
        )
        self._input_resources = set[tuple[Kind, str]]().union(*by_inputs)

    def judge(self) -> ChangeImpact:
        changes = [
            self._make_change(one, _ROTATED if one.is_rotated and rule is _INPUT else rule)
            for one, rule in self._rulings()
        ]
        changes += self._unexplained_changes(changes)
        if not any(one.effect == Effect.RESET for one in changes):
            changes += self._state_changes()
        keeps = not any(one.effect == Effect.RESET and _is_input_path(one.path) for one in changes)
        resets = any(one.effect == Effect.RESET for one in changes)
        losses = tuple(self._describe_losses(keeps)) if resets else ()
        return ChangeImpact(tuple(changes), keeps, losses)

    def _rulings(self) -> Iterator[tuple[Difference, Ruling]]:
        old, new, (a, b) = self._old, self._new, self._sides
        for section in SECTIONS:
            name = section.name
            if name in IGNORED or section.deprecated:
                continue
            if name == "buffers":
                yield from self._buffers_rulings(section)
            elif name in ("buffer", "pipeline") and (old.buffers or new.buffers):
                continue
            elif name == "pipeline":
                # `pipeline.threads` has no effect.
                differences = compare_values(
                    "pipeline.processors", _PROCESSORS, old.processors, new.processors, a, b
                )
                yield from ((one, _IN_PLACE) for one in differences)
            elif name.endswith("_resources"):
                yield from self._resource_rulings(Kind(name.removesuffix("_resources")), section)
            elif hasattr(new, name):
                differences = compare_values(
                    name, section, getattr(old, name), getattr(new, name), a, b
                )
                yield from ((one, self._rule(name, one)) for one in differences)

    def _buffers_rulings(self, section: Field) -> Iterator[tuple[Difference, Ruling]]:
        """Compare several buffers, each with that of the same label; others are at the end."""
        old, new = self._old.buffers, self._new.buffers
        if not (old or new):
            return
        labels = [[one.label for one in side] for side in (old, new)]
        is_extended = bool(old) and labels[1][: len(old)] == labels[0]
        if not is_extended:
            for one in compare_values(section.name, section, old, new, *self._sides):
                yield one, _OTHER_BUFFERS
            return
        field = replace(section, shape="scalar")
        for number, now in enumerate(new):
            before = old[number] if number < len(old) else None
            path = f"{section.name}.{number}"
            for one in compare_values(path, field, before, now, *self._sides_at(before, now)):
                yield one, self._rule_on_listed(number, before, now, one)

    def _rule_on_listed(
        self, number: int, old: ParsedComponent | None, new: ParsedComponent, one: Difference
    ) -> Ruling:
        """Judge a change of one of several buffers."""
        if old is None:
            levels = [level_count(plan) for plan in self._plans]
            return _ADDED_BUFFER if levels[0] == levels[1] else _ADDED_LEVEL
        path = one.path.split(".")
        if path[2] in ("pipeline", "output"):
            return _IN_PLACE
        if path[2] == "from":
            return _OTHER_BUFFERS
        if old.name != new.name or one.owner is None or one.owner.kind != Kind.BUFFER:
            return _OTHER_KIND
        strategies = [
            window.strategy if window is not None else "panes"
            for window in (plan.buffers[number].windows.window for plan in self._plans)
        ]
        return rule_on_field(one.field, old.config, new.config, (strategies[0], strategies[1]))

    def _resource_rulings(self, kind: Kind, section: Field) -> Iterator[tuple[Difference, Ruling]]:
        """Compare resources by their labels; those that nothing uses change nothing."""
        keys = dict.fromkeys((*self._old.resources, *self._new.resources))
        for key in keys:
            if key[0] != kind or key not in self._used_resources:
                continue
            left, right = self._old.resources.get(key), self._new.resources.get(key)
            path = (right or left or ParsedComponent(kind, "")).path or section.name
            field = replace(section, shape="scalar")
            for one in compare_values(path, field, left, right, *self._sides_at(left, right)):
                yield one, self._rule_on_processing(one, key in self._input_resources)

    def _sides_at(
        self, left: ParsedComponent | None, right: ParsedComponent | None
    ) -> tuple[Side, Side]:
        a, b = self._sides
        return (a.at(left) if left else a), (b.at(right) if right else b)

    def _rule(self, section: str, one: Difference) -> Ruling:
        if section == "input":
            return self._rule_on_processing(one, by_input=True)
        if section == "output":
            return _rule_on_output(one)
        if section == "buffer":
            return self._rule_on_buffer(one)
        if section == "spark":
            return self._rule_on_spark(one)
        return SECTION_RULINGS.get(section, Ruling(Effect.RESET, "nothing is known about it"))

    def _rule_on_processing(self, one: Difference, by_input: bool) -> Ruling:
        """Judge a change in a component that messages go through."""
        if not by_input or one.is_input_processor:
            return _IN_PLACE
        return _INPUT

    def _rule_on_buffer(self, one: Difference) -> Ruling:
        old, new = self._old.buffer, self._new.buffer
        if {old.name, new.name} <= WINDOWLESS:
            return _IN_PLACE
        if old.name != new.name or one.owner is None or one.owner.kind != Kind.BUFFER:
            return _OTHER_KIND
        if one.field == "label":
            return _IN_PLACE
        assert isinstance(old.config, ParsedFields) and isinstance(new.config, ParsedFields)
        strategies = [plan.window.strategy if plan.window else "panes" for plan in self._plans]
        return rule_on_field(one.field, old.config, new.config, (strategies[0], strategies[1]))

    def _rule_on_spark(self, one: Difference) -> Ruling:
        name = one.path.split(".")[1]
        if name == "shards" and all(plan.window is None for plan in self._plans):
            return _IN_PLACE
        return SPARK_RULINGS.get(name, Ruling(Effect.RESET, "nothing is known about it"))

    def _make_change(self, one: Difference, rule: Ruling) -> Change:
        label = one.owner.label if one.owner is not None else ""
        if rule.effect != Effect.RESET and self._regroups(one.path):
            rule = Ruling(
                Effect.RESET,
                "open windows are distributed over the shards by the groups of the first processor",
            )
        return Change(one.path, label, one.file, one.line, one.old, one.new, *rule)

    def _regroups(self, path: str) -> bool:
        """Return whether a change is one of the grouping that messages are sharded by."""
        old, new = self._plans
        if old.fingerprint["key"] == new.fingerprint["key"] or None in (old.window, new.window):
            return False
        keys = [one.windows.key for plan in self._plans for one in plan.buffers]
        keys += [plan.key for plan in self._plans]
        sources = {key.source for key in keys if key is not None}
        return any(f"{path}.".startswith(f"{source}.") for source in sources)

    def _unexplained_changes(self, changes: list[Change]) -> Iterator[Change]:
        """Name what state is bound to and has changed, where no change says so yet."""
        if any(one.effect == Effect.RESET for one in changes):
            return
        old, new = (_comparable_fingerprint(plan) for plan in self._plans)
        has_more = extends_state(str(old["window"]), str(new["window"]))
        for name in old:
            if old[name] != new[name] and not (has_more and name in ("window", "key")):
                note = "open windows are bound to it"
                place = self._new_as_given.path, 0
                yield Change(name, "", *place, str(old[name]), str(new[name]), Effect.RESET, note)

    def _state_changes(self) -> Iterator[Change]:
        """Name what keeps state by key under another name than before, and so begins anew."""
        pairs = zip(*map(_keyed_states, self._plans), strict=False)
        for user, calls in (lost for pair in pairs for lost in find_lost_state(*pair)):
            note = (
                "its state by key is named by label (or path) and by the text of the call: under "
                "a new name it starts again, and the old values stay under the old name"
            )
            place = self._new_as_given.path, 0
            yield Change(
                user.path, user.label, *place, ", ".join(calls), None, Effect.MIGRATE, note
            )

    def _describe_losses(self, keeps_input: bool) -> Iterator[str]:
        old = self._plans[0]
        for window in old.windows:
            yield f"the windows that are open: {window.describe()}"
        users = [user.path for state in _keyed_states(old) for user in state.users]
        if users:
            yield "the state by key: " + ", ".join(users)
        if not keeps_input:
            yield f"the position of the input {old.input.name}: the new one starts at its beginning"


def _keyed_states(plan: Plan) -> list[KeyedStatePlan]:
    """Return what is kept of each key behind each buffer."""
    return [one.keyed_state for one in plan.buffers] or [plan.keyed_state]


def _is_input_path(path: str) -> bool:
    return path.split(".")[0] in ("input", "input_resources")


def _comparable_fingerprint(plan: Plan) -> dict[str, object]:
    """Return the fingerprint, where buffers without windows are alike."""
    fingerprint = dict(plan.fingerprint)
    # Their number is the machine's, unless the config says it.
    del fingerprint["shards"]
    if plan.window is None:
        fingerprint["window"] = "none"
        fingerprint["key"] = None
    return fingerprint


def _rule_on_output(one: Difference) -> Ruling:
    """Judge a change in an output, and in what is inside of it."""
    is_table = one.owner is not None and one.owner.name in ("delta", "iceberg")
    is_partition = one.path.rpartition(".")[2] in ("partition_by", "partition_spec")
    return _NEW_TABLES if is_table and is_partition else _IN_PLACE
