"""The state by key of a stream: which processors of its pipeline keep some, and for how long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from streamer.bloblang import compile_mapping
from streamer.bloblang.environment import StateCall
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.children import child_components
from streamer.sdk.spec.component import Resources
from streamer.sdk.spec.keyed_state import MAPPING_PROCESSORS, name_state_calls

_STATE_TTL: Final = "state_ttl"


@dataclass(frozen=True, slots=True)
class StateUser:
    """A processor that keeps state by key.

    Attributes:
        path: where it stands.
        label: its label, which names its state instead of the path; or an empty string.
        calls: its calls that keep state, as they are written; or the processor's name.
        names: by call, what names its state in a checkpoint.
    """

    path: str
    label: str
    calls: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyedStatePlan:
    """The state by key of a stream.

    Attributes:
        users: the processors that keep some; empty for a stream without.
        ttl: ns after which a value expires that was not written again; None for never.
        reads_documents: whether the first processor reads every message's document.
    """

    users: tuple[StateUser, ...] = ()
    ttl: int | None = None
    reads_documents: bool = False


def find_lost_state(old: KeyedStatePlan, new: KeyedStatePlan) -> list[tuple[StateUser, list[str]]]:
    """Return which calls of a stream find nothing of what they have kept, after a change.

    Returns:
        By processor of the old config, the calls whose names the new one does not have.
    """
    known = {name for user in new.users for name in user.names}
    lost = []
    for user in old.users:
        named = zip(user.calls, user.names, strict=True)
        calls = [call for call, name in named if name not in known]
        if calls:
            lost.append((user, calls))
    return lost


NO_KEYED_STATE: Final = KeyedStatePlan()
"""The state by key of a stream that keeps none."""


def make_keyed_state_plan(
    buffer: ParsedComponent, processors: Sequence[ParsedComponent], resources: Resources
) -> KeyedStatePlan:
    """Return the state by key of a stream with a buffer that gives messages a key.

    Args:
        buffer: the buffer.
        processors: the pipeline.
        resources: those that it may refer to.
    """
    shared = (one for (kind, _), one in resources.items() if kind == Kind.PROCESSOR)
    users = tuple(_find_users(chain(processors, shared)))
    ttl = buffer.config.get(_STATE_TTL) if isinstance(buffer.config, ParsedFields) else None
    if not users:
        return NO_KEYED_STATE
    first = processors[0] if processors else None
    reads = (
        first is not None
        and first.name in MAPPING_PROCESSORS
        and isinstance(first.config, str)
        and compile_mapping(first.config).uses.document
    )
    return KeyedStatePlan(users, ttl, reads)


def _find_users(components: Iterable[ParsedComponent]) -> Iterator[StateUser]:
    for one in components:
        if one.kind == Kind.PROCESSOR and (calls := _calls_of(one)):
            scope = one.label or one.path
            names = tuple(call.name or f"{scope}/{call.text}" for call in calls)
            yield StateUser(one.path, one.label, tuple(call.text for call in calls), names)
        yield from _find_users(child_components(one))


def _calls_of(processor: ParsedComponent) -> tuple[StateCall, ...]:
    own = name_state_calls(processor.name, processor.config)
    if own:
        return tuple(StateCall(text, "") for text in own)
    if processor.name not in MAPPING_PROCESSORS or not isinstance(processor.config, str):
        return ()
    return compile_mapping(processor.config).state_calls
