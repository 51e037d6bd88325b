"""Configs after parsing: defaults filled in, durations as nanoseconds, places remembered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from streamer.core.permissions import ALL, Permissions, current_permissions
from streamer.sdk.spec.kind import Kind


class Place(NamedTuple):
    """A place in the config's file, 1-based; zeros when the value was not written there."""

    line: int = 0
    column: int = 0


NO_PLACE = Place()


class MetricsMapping(NamedTuple):
    """A template's mapping of the metrics of what it makes.

    Attributes:
        text: the mapping.
        label: the label of the template's component, which the mapping knows as `$label`.
    """

    text: str
    label: str


class ParsedFields(Mapping[str, Any]):
    """The fields of an object: `parsed["size"]`. It is frozen, and can be pickled.

    Every field of the spec is there. By the field's flags the value is: int nanoseconds for a
    duration (None for an empty one); the text for mappings and interpolated strings; a
    `ParsedComponent` for a child component; another `ParsedFields` for an object with fields; a
    tuple of these for arrays and a dict of these for maps; None for an optional field left out.
    """

    __slots__ = ("_values", "_places", "permissions")

    def __init__(
        self, values: Mapping[str, Any], places: Mapping[str, tuple[int, int]] | None = None
    ) -> None:
        """Wrap values; `places` says where the fields stand that the user wrote."""
        self.permissions = current_permissions()
        """What who opens what the fields name may do, in whatever thread and process."""
        self._values = dict(values)
        self._places = {name: Place(*place) for name, place in (places or {}).items()}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def is_given(self, name: str) -> bool:
        """Whether the user wrote the field."""
        return name in self._places

    def place(self, name: str) -> Place:
        """The position of the field's value, or `NO_PLACE` when it is a default."""
        return self._places.get(name, NO_PLACE)

    def __repr__(self) -> str:
        # Values may hold secrets, and a Parsed is easily logged by mistake.
        return f"Parsed({', '.join(self._values)})"

    def __getstate__(self) -> tuple[dict[str, Any], dict[str, Place], Permissions]:
        return self._values, self._places, self.permissions

    def __setstate__(self, state: tuple[dict[str, Any], dict[str, Place], Permissions]) -> None:
        self._values, self._places, self.permissions = state


@dataclass(frozen=True, slots=True)
class BufferPlace:
    """The place of one of several buffers: what stands beside its name.

    Attributes:
        source: the label of the buffer whose results it takes; empty for the input.
        processors: those that its batches go through.
        output: where they go then; None where the config names none beside it.
    """

    source: str = ""
    processors: tuple[ParsedComponent, ...] = ()
    output: ParsedComponent | None = None


@dataclass(frozen=True, slots=True)
class ParsedComponent:
    """A component as the config names it, ready to be built.

    Attributes:
        kind: its kind.
        name: its name in the catalogue (`system_window`).
        label: its label, or an empty string.
        config: a `ParsedFields`; or the value, when the component's body is not an object with
            fields.
        path: where it stands, as dotted path (`pipeline.processors.0`).
        line: 1-based line of its name in the file; 0 for a default that nobody wrote.
        column: 1-based column.
        processors: of an input or output: the processors beside its name.
        mapping: of metrics: the mapping beside its name.
        metrics_mappings: what the templates that have made it do to its metrics, and to those of
            what is inside of it; the innermost first.
        file: the file that its name stands in; empty for a default that nobody wrote.
        permissions: what it may do on a machine, wherever it is built; its mappings see neither
            files nor the environment without `local`.
        place: of one of several buffers; None of all other components.
    """

    kind: Kind
    name: str
    label: str = ""
    config: Any = field(default_factory=lambda: ParsedFields({}), repr=False)
    path: str = ""
    line: int = 0
    column: int = 0
    processors: tuple[ParsedComponent, ...] = ()
    mapping: str = ""
    metrics_mappings: tuple[MetricsMapping, ...] = ()
    file: str = field(default="", compare=False)
    permissions: Permissions = field(default=ALL, compare=False)
    place: BufferPlace | None = None


Resources = Mapping[tuple[Kind, str], ParsedComponent]
"""The components that others may refer to, by kind and label."""
