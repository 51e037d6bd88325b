"""`multilevel`: several caches in a row, the nearest first.

"Combines multiple caches as levels, performing read-through and write-through operations across
them." What a far level has is stored in the nearer ones when it is read; what is written goes to
all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamer.core.execution import Execution
from streamer.sdk.cache import Cache, CacheError, KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Field, Kind, Spec


def _levels_problem(labels: Sequence[str]) -> str | None:
    if len(labels) < 2:
        return f"expected at least two cache levels, found {len(labels)}"
    return None


SPEC: Final = Spec(
    Kind.CACHE,
    "multilevel",
    "Combines caches to levels: reads go through them in turn, writes go to all.",
    description=(
        "A value found at one level is stored in all levels before it. `add` looks into all "
        "levels but the last, adds to the last, and then to the others."
    ),
    config=Field(
        "",
        "string",
        "The labels of the caches, the nearest first.",
        shape="array",
        refers=Kind.CACHE,
        check=_levels_problem,
        examples=(["hot", "cold"],),
    ),
    examples=(
        Example(
            "Near and far",
            "cache_resources:\n"
            "  - label: leveled\n"
            "    multilevel: [hot, cold]\n"
            "  - label: hot\n"
            "    memory:\n"
            "      default_ttl: 60s\n"
            "  - label: cold\n"
            "    file:\n"
            "      directory: /var/lib/cold\n",
            summary="The directory is read only for keys that the memory does not have.",
        ),
    ),
    categories=("Utility",),
    runs="children",
    limits="`add` is atomic in the last level only",
)


class MultilevelCache:
    """Caches in a row."""

    def __init__(self, levels: Sequence[tuple[str, Cache]], origin: ComponentRef) -> None:
        """Take the caches with their labels, the nearest first, and where this one stands."""
        self._levels = levels
        self._origin = origin

    def get(self, key: str, ex: Execution) -> bytes:
        """Return the value of the nearest level that has one."""
        for number, (_, cache) in enumerate(self._levels):
            try:
                value = cache.get(key, ex)
            except KeyNotFoundError:
                continue
            self._copy_to_nearer(number, key, value, ex)
            return value
        raise KeyNotFoundError

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value in all levels."""
        for _, cache in self._levels:
            cache.set(key, value, ttl, ex)

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a key that no level has."""
        *near, (_, last) = self._levels
        for _, cache in near:
            try:
                cache.get(key, ex)
            except KeyNotFoundError:
                continue
            raise KeyAlreadyExistsError
        last.add(key, value, ttl, ex)
        for _, cache in reversed(near):
            cache.add(key, value, ttl, ex)

    def delete(self, key: str, ex: Execution) -> None:
        """Forget a key in all levels."""
        for _, cache in self._levels:
            try:
                cache.delete(key, ex)
            except KeyNotFoundError:
                continue

    def _copy_to_nearer(self, hit_level: int, key: str, value: bytes, ex: Execution) -> None:
        for label, cache in self._levels[:hit_level]:
            try:
                cache.set(key, value, None, ex)
            except CacheError as error:
                text = f"Unable to passively set key '{key}' for cache '{label}': {error}"
                self._origin.log(ex, "ERROR", text)


def build(parsed: tuple[str, ...], context: BuildContext) -> MultilevelCache:
    """Find the caches."""
    levels = [(label, context.resource(Kind.CACHE, label)) for label in parsed]
    return MultilevelCache(levels, ComponentRef(context.component))
