"""The packages that functions and methods of a mapping need, and that are not installed here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from streamer.bloblang import tree
from streamer.bloblang.catalog import FUNCTIONS, METHODS
from streamer.bloblang.declare import Declaration
from streamer.bloblang.interpolation import Interpolation
from streamer.bloblang.mapping import Mapping
from streamer.core.extras import missing_packages


class MissingPackageCall(NamedTuple):
    """A call that cannot work here.

    Attributes:
        line: 1-based line within the text; 1 when the call may stand in another file.
        column: 1-based column within the line.
        what: `function NAME` or `method NAME`.
        packages: what is missing, by the names that are imported.
    """

    line: int
    column: int
    what: str
    packages: tuple[str, ...]


def find_missing_packages(mapping: Mapping | Interpolation) -> Iterator[MissingPackageCall]:
    """Return the calls of a mapping, or of an interpolated string, that packages are missing for.

    Calls that it imports from other files are among them.
    """
    text = mapping.text
    imports = text.lstrip().startswith("from ") or "import" in text
    if not imports and not any(name in text for _, name in _requiring_calls()):
        return  # Nearly always.
    lacking = {
        key: (what, packages)
        for key, (what, declaration) in _requiring_calls().items()
        if (packages := missing_packages(declaration.requires))
    }
    if not lacking:
        return
    root = mapping.queries if isinstance(mapping, Interpolation) else mapping.program
    for call in tree.walk(root):
        if not isinstance(call, tree.Call | tree.Method):
            continue
        what, packages = lacking.get((type(call), call.name), ("", ()))
        if packages:
            line, column = (1, 1) if imports else (call.place.line, call.place.column)
            yield MissingPackageCall(line, column, what, packages)


@cache
def _requiring_calls() -> dict[tuple[type, str], tuple[str, Declaration]]:
    """Return what requires packages at all."""
    kinds = ((tree.Call, "function", FUNCTIONS), (tree.Method, "method", METHODS))
    return {
        (node, name): (f"{kind} {name}", declaration)
        for node, kind, known in kinds
        for name, declaration in known.items()
        if declaration.requires
    }
