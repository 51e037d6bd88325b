"""Filters metadata by name: Benthos's `include_prefixes` and `include_patterns`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from streamer.sdk.regex_field import compile_pattern, patterns_problem
from streamer.sdk.spec import Field, ParsedFields

INCLUDE_PREFIXES: Final = "include_prefixes"
INCLUDE_PATTERNS: Final = "include_patterns"


def metadata_filter_field(name: str, description: str) -> Field:
    """Return a field that says which keys are taken; without any rule it is none of them."""
    return Field(
        name,
        "object",
        description,
        optional=True,
        advanced=True,
        children=(
            Field(
                INCLUDE_PREFIXES,
                "string",
                "Keys that begin with one of these are taken.",
                default=(),
                shape="array",
                examples=(["kafka_"], ["content-type", "x-"]),
            ),
            Field(
                INCLUDE_PATTERNS,
                "string",
                "Keys that one of these regular expressions is found in are taken.",
                default=(),
                shape="array",
                examples=([".*"], ["_timestamp_unix$"]),
                check=patterns_problem,
            ),
        ),
    )


class MetadataFilter:
    """Decides by prefixes and patterns which metadata keys are taken.

    Attributes:
        is_set: whether there is a rule; without one no key is taken.
    """

    def __init__(self, parsed: ParsedFields | None) -> None:
        """Take the value of a `metadata_filter_field`."""
        self._prefixes = tuple(parsed[INCLUDE_PREFIXES]) if parsed is not None else ()
        patterns = parsed[INCLUDE_PATTERNS] if parsed is not None else ()
        self._patterns = [compile_pattern(text) for text in patterns]
        self.is_set = bool(self._prefixes or self._patterns)

    def matches(self, key: str) -> bool:
        """Return whether a key is taken."""
        if self._prefixes and key.startswith(self._prefixes):
            return True
        return any(pattern.search(key) for pattern in self._patterns)

    def select(self, meta: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Return what is taken of metadata, by key in their order."""
        if self.is_set:
            for key in sorted(meta):
                if self.matches(key):
                    yield key, meta[key]


METADATA: Final = "metadata"
EXCLUDE_PREFIXES: Final = "exclude_prefixes"

METADATA_EXCLUDE_FIELD: Final = Field(
    METADATA,
    "object",
    "Which metadata are left out.",
    children=(
        Field(
            EXCLUDE_PREFIXES,
            "string",
            "Keys that begin with one of these are left out.",
            default=(),
            shape="array",
        ),
    ),
)


class ExcludedMetadata:
    """Decides by `METADATA_EXCLUDE_FIELD` which metadata keys are left out."""

    def __init__(self, parsed: ParsedFields) -> None:
        """Take the fields of a component that has the field."""
        self._prefixes = tuple(parsed[METADATA][EXCLUDE_PREFIXES])

    def select(self, meta: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Return what is not left out, by key in their order."""
        for key, value in meta.items():
            if not key.startswith(self._prefixes):
                yield key, value
