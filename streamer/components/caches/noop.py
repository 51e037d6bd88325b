"""`noop`: a cache that stores nothing, and so finds nothing."""

from __future__ import annotations

from typing import Final, NoReturn

from streamer.core.execution import Execution
from streamer.sdk.cache import KeyNotFoundError
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import NO_FIELDS, BuildContext, Kind, Spec

SPEC: Final = Spec(
    Kind.CACHE,
    "noop",
    "Stores nothing: every key can be added, none is ever found.",
    config=NO_FIELDS,
    categories=("Utility",),
    delivery="nothing is kept",
)


class NoopCache:
    """A cache that keeps nothing; it logs each operation at the level TRACE."""

    def __init__(self, origin: ComponentRef) -> None:
        """Take where it stands."""
        self._origin = origin

    def get(self, key: str, ex: Execution) -> NoReturn:
        """Find nothing."""
        self._origin.log(ex, "TRACE", f"pretend to get key {key!r}")
        raise KeyNotFoundError

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store nothing."""
        self._origin.log(ex, "TRACE", f"pretend to set key {key!r}")

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store nothing."""
        self._origin.log(ex, "TRACE", f"pretend to add key {key!r}")

    def delete(self, key: str, ex: Execution) -> None:
        """Remove nothing."""
        self._origin.log(ex, "TRACE", f"pretend to delete key {key!r}")


def build(parsed: object, context: BuildContext) -> NoopCache:
    """Make the cache."""
    return NoopCache(ComponentRef(context.component))
