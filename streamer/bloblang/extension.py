"""Functions and methods beside those of the language, for the mappings of one config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from streamer.bloblang.declare import Declaration

CallKind = Literal["function", "method"]


@dataclass(frozen=True, eq=False)
class Extension:
    """Functions and methods in Python that a config names, and how to load them elsewhere.

    Attributes:
        functions: by name.
        methods: by name.
        digest: names their code; two with one digest mean the same.
        reload: loads them in another process, from `source`.
        source: what `reload` takes.
        has_installed: whether those of installed packages may be called, too.
    """

    functions: Mapping[str, Declaration] = field(default_factory=dict)
    methods: Mapping[str, Declaration] = field(default_factory=dict)
    digest: str = ""
    reload: Callable[..., Extension] | None = None
    source: tuple[Any, ...] = ()
    has_installed: bool = True

    def find(self, kind: CallKind, name: str) -> Declaration | None:
        """Return the declaration of a function or method; None when there is none."""
        return (self.functions if kind == "function" else self.methods).get(name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Extension):
            return NotImplemented
        return (self.digest, self.has_installed) == (other.digest, other.has_installed)

    def __hash__(self) -> int:
        return hash((self.digest, self.has_installed))

    def __reduce__(self) -> tuple[Any, ...]:
        if self.reload is None:
            return Extension, ({}, {}, self.digest, None, (), self.has_installed)
        return self.reload, self.source


NO_EXTENSION: Final = Extension()
"""What a config without functions of its own has."""

NO_PYTHON: Final = Extension(has_installed=False)
"""For a mapping that a stranger may have written, such as one in a message."""
