"""Judge the change from one config to another: what differs, and what it comes to.

Whatever is not known to be kept counts as a reset.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from streamer.config import Config
from streamer.config.sections import SECTIONS
from streamer.plan.judgement.buffers import WINDOWLESS, Ruling, ruling
from streamer.plan.judgement.differences import Difference, Side, between, side_of
from streamer.plan.judgement.model import Change, Effect, Judgement
from streamer.plan.judgement.reach import used
from streamer.plan.judgement.renames import with_labels_of
from streamer.plan.plan import Plan, make_plan
from streamer.spec import Field, Kind, Parsed, ParsedComponent
from streamer.window.words import phrase

_IN_PLACE: Final = Ruling(Effect.IN_PLACE)
_AT_START: Final = Ruling(Effect.RESTART, "is looked at when the program starts")
_INPUT: Final = Ruling(Effect.RESET, "offsets of the one input mean nothing to the other")

SECTION_RULINGS: Final[dict[str, Ruling]] = {
    "http": _AT_START,
    "logger": _IN_PLACE,
    "metrics": _IN_PLACE,
    "tracer": _AT_START,
    "shutdown_delay": _IN_PLACE,
    "shutdown_timeout": _IN_PLACE,
    "error_handling": _IN_PLACE,
    "limits": _IN_PLACE,
}
"""What changes of sections that are no way of messages come to."""

SPARK_RULINGS: Final[dict[str, Ruling]] = {
    "master": _AT_START,
    "environment": _AT_START,
    "conf": _AT_START,
    "jars_directory": _AT_START,
    "spool_limit": _AT_START,
    "checkpoint": Ruling(
        Effect.RESTART, "the stream stays with its checkpoint until the program starts anew"
    ),
    "trigger_interval": _IN_PLACE,
    "shards": Ruling(Effect.RESET, "windows that are open are spread over the former number"),
}
"""What changes of the `spark` section's fields come to."""

IGNORED: Final = frozenset({"tests"})
"""Sections that no stream runs."""

_PROCESSORS: Final = Field("processors", "processor", "Processors.", default=(), shape="array")


def judge(old: Config, new: Config, env: Mapping[str, str] | None = None) -> Judgement:
    """Judge a change.

    Args:
        old: what runs.
        new: what is to run.
        env: the variables that both were read with, whose values are not shown; those of the
            process when None.

    Raises:
        StreamerError: one of them asks for something that cannot be run.
    """
    return _Judging(old, new, os.environ if env is None else env).judgement()


class _Judging:
    def __init__(self, old: Config, new: Config, env: Mapping[str, str]) -> None:
        self._new_as_given = new
        new = with_labels_of(old, new)
        self._old, self._new = old, new
        self._plans = make_plan(old), make_plan(new)
        self._sides = side_of(old, env), side_of(new, env)
        roots = [(c.input, c.buffer, *c.processors, c.output) for c in (old, new)]
        both = (old, roots[0]), (new, roots[1])
        self._used = set[tuple[Kind, str]]().union(*(used(r, c.resources) for c, r in both))
        by_inputs = (used([c.input], c.resources, beside=False) for c in (old, new))
        self._by_inputs = set[tuple[Kind, str]]().union(*by_inputs)

    def judgement(self) -> Judgement:
        changes = [self._change(one, found) for one, found in self._all()]
        changes += self._unexplained(changes)
        keeps = not any(one.effect == Effect.RESET and _of_input(one.path) for one in changes)
        resets = any(one.effect == Effect.RESET for one in changes)
        loses = tuple(self._loses(keeps)) if resets else ()
        return Judgement(tuple(changes), keeps, loses)

    def _all(self) -> Iterator[tuple[Difference, Ruling]]:
        old, new, (a, b) = self._old, self._new, self._sides
        for section in SECTIONS:
            name = section.name
            if name in IGNORED or section.deprecated:
                continue
            if name == "pipeline":
                # `pipeline.threads` has no effect.
                found = between(
                    "pipeline.processors", _PROCESSORS, old.processors, new.processors, a, b
                )
                yield from ((one, _IN_PLACE) for one in found)
            elif name.endswith("_resources"):
                yield from self._resources(Kind(name.removesuffix("_resources")), section)
            elif hasattr(new, name):
                found = between(name, section, getattr(old, name), getattr(new, name), a, b)
                yield from ((one, self._ruling(name, one)) for one in found)

    def _resources(self, kind: Kind, section: Field) -> Iterator[tuple[Difference, Ruling]]:
        """Compare resources by their labels; those that nothing uses change nothing."""
        keys = dict.fromkeys((*self._old.resources, *self._new.resources))
        for key in keys:
            if key[0] != kind or key not in self._used:
                continue
            left, right = self._old.resources.get(key), self._new.resources.get(key)
            path = (right or left or ParsedComponent(kind, "")).path or section.name
            field = replace(section, shape="scalar")
            for one in between(path, field, left, right, *self._at(left, right)):
                yield one, self._of_work(one, key in self._by_inputs)

    def _at(self, left: ParsedComponent | None, right: ParsedComponent | None) -> tuple[Side, Side]:
        a, b = self._sides
        return (a.at(left) if left else a), (b.at(right) if right else b)

    def _ruling(self, section: str, one: Difference) -> Ruling:
        if section == "input":
            return self._of_work(one, by_input=True)
        if section == "output":
            return _IN_PLACE
        if section == "buffer":
            return self._of_buffer(one)
        if section == "spark":
            return self._of_spark(one)
        return SECTION_RULINGS.get(section, Ruling(Effect.RESET, "nothing is known about it"))

    def _of_work(self, one: Difference, by_input: bool) -> Ruling:
        """Judge a change in a component that messages go through."""
        if not by_input or one.beside:
            return _IN_PLACE
        return _INPUT

    def _of_buffer(self, one: Difference) -> Ruling:
        old, new = self._old.buffer, self._new.buffer
        if {old.name, new.name} <= WINDOWLESS:
            return _IN_PLACE
        if old.name != new.name or one.owner is None or one.owner.kind != Kind.BUFFER:
            return Ruling(Effect.RESET, "windows of one kind are not those of another")
        if one.field == "label":
            return _IN_PLACE
        assert isinstance(old.config, Parsed) and isinstance(new.config, Parsed)
        ways = [getattr(plan.window, "way", "panes") for plan in self._plans]
        return ruling(one.field, old.config, new.config, (ways[0], ways[1]))

    def _of_spark(self, one: Difference) -> Ruling:
        name = one.path.split(".")[1]
        if name == "shards" and all(plan.window is None for plan in self._plans):
            return _IN_PLACE
        return SPARK_RULINGS.get(name, Ruling(Effect.RESET, "nothing is known about it"))

    def _change(self, one: Difference, found: Ruling) -> Change:
        label = one.owner.label if one.owner is not None else ""
        if found.effect != Effect.RESET and self._regroups(one.path):
            found = Ruling(
                Effect.RESET,
                "open windows are spread over the shards by what the first processor groups by",
            )
        return Change(one.path, label, one.file, one.line, one.old, one.new, *found)

    def _regroups(self, path: str) -> bool:
        """Tell whether a change is one of the grouping that messages are sharded by."""
        old, new = self._plans
        if old.fingerprint["key"] == new.fingerprint["key"] or None in (old.window, new.window):
            return False
        sources = {plan.key.source for plan in self._plans if plan.key is not None}
        return any(f"{path}.".startswith(f"{source}.") for source in sources)

    def _unexplained(self, changes: list[Change]) -> Iterator[Change]:
        """Name what state is bound to and has changed, where no change says so yet."""
        if any(one.effect == Effect.RESET for one in changes):
            return
        old, new = (_bound(plan) for plan in self._plans)
        for name in old:
            if old[name] != new[name]:
                note = "open windows are bound to it"
                place = self._new_as_given.path, 0
                yield Change(name, "", *place, str(old[name]), str(new[name]), Effect.RESET, note)

    def _loses(self, keeps_input: bool) -> Iterator[str]:
        old = self._plans[0]
        if old.window is not None:
            yield f"the windows that are open: {phrase(old.window)}"
        if not keeps_input:
            yield f"how far the input {old.input.name} was read: the new one begins anew"


def _of_input(path: str) -> bool:
    return path.split(".")[0] in ("input", "input_resources")


def _bound(plan: Plan) -> dict[str, object]:
    """Return the fingerprint, where buffers without windows are alike."""
    found = dict(plan.fingerprint)
    # Their number is the machine's, unless the config says it.
    del found["shards"]
    if plan.window is None:
        found["window"] = "none"
        found["key"] = None
    return found
