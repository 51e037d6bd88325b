"""What a component may ask for while it is built: its children and the resources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from streamer.spec.kind import Kind
from streamer.spec.parsed import ParsedComponent


class BuildContext(Protocol):
    """Builds children, so that components need not know the catalogue, nor one another."""

    @property
    def component(self) -> ParsedComponent:
        """The component that is being built: its label, path and place."""

    def build(self, component: ParsedComponent) -> Any:
        """Build a child component; its `processors` are left to the caller."""

    def all(self, components: Iterable[ParsedComponent]) -> list[Any]:
        """Build child components, in order."""

    def resource(self, kind: Kind, label: str) -> Any:
        """Return the resource of that label; it is built once for a context.

        Raises:
            StreamerError: there is no such resource; the text names those that there are.
        """
