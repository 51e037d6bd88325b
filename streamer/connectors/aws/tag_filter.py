"""Filters of tables by their tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_EXPECTED: Final = "expected keys with their values, such as env:prod,test;team:data"


@dataclass(frozen=True)
class TagFilter:
    """A filter of tags.

    Attributes:
        values: by the key of a tag, the values that it may have.
    """

    values: Mapping[str, frozenset[str]]

    @classmethod
    def parse(cls, text: str) -> TagFilter:
        """Return the filter of a text.

        Raises:
            ValueError: it is none.

        Example:
            >>> TagFilter.parse("env:prod,test;team:data").matches({"env": "test", "team": "data"})
            True
        """
        values: dict[str, frozenset[str]] = {}
        for part in filter(None, (one.strip() for one in text.split(";"))):
            key, _, listed = (one.strip() for one in part.partition(":"))
            accepted = frozenset(filter(None, (one.strip() for one in listed.split(","))))
            if not key or not accepted:
                raise ValueError(f"{part!r}; {_EXPECTED}")
            if key in values:
                raise ValueError(f"the key {key!r} twice; separate its values by commas")
            values[key] = accepted
        if not values:
            raise ValueError(f"no tag; {_EXPECTED}")
        return cls(values)

    def matches(self, tags: Mapping[str, str]) -> bool:
        """Return whether each key has one of its values."""
        return all(tags.get(key) in accepted for key, accepted in self.values.items())
