"""The kinds of components, by the names that Benthos gives them."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """The kinds of components; the value is the word in configs, messages and field types."""

    INPUT = "input"
    BUFFER = "buffer"
    PROCESSOR = "processor"
    OUTPUT = "output"
    CACHE = "cache"
    RATE_LIMIT = "rate_limit"
    TABLE = "table"
    SCANNER = "scanner"
    METRICS = "metrics"
    TRACER = "tracer"

    @property
    def has_label(self) -> bool:
        """Whether a component of this kind may carry a `label`."""
        return self in _KINDS_WITH_LABEL

    @property
    def has_processors(self) -> bool:
        """Whether a component of this kind may carry `processors` beside its name."""
        return self in (Kind.INPUT, Kind.OUTPUT)


_KINDS_WITH_LABEL = frozenset(
    {Kind.INPUT, Kind.PROCESSOR, Kind.OUTPUT, Kind.CACHE, Kind.RATE_LIMIT, Kind.TABLE}
)
