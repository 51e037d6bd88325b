"""The metadata that a mapping can read, found without running it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamer.bloblang import tree
from streamer.bloblang.catalog import FUNCTIONS, METHODS
from streamer.bloblang.declare import Declaration


def find_metadata_keys(parts: Any) -> frozenset[str] | None:
    """Return the keys of the metadata that resolved expressions name; None when it may be any.

    Metadata that is only written is not among them.

    Args:
        parts: a program, or anything that is made of expressions.
    """
    keys: set[str] = set()
    for key in _iterate_keys(parts):
        if key is None:
            return None
        keys.add(key)
    return frozenset(keys)


def _iterate_keys(parts: Any) -> Iterator[str | None]:
    for part in tree.walk(parts):
        if isinstance(part, tree.Metadata):
            yield part.key or None
        elif isinstance(part, tree.Call):
            declaration = FUNCTIONS.get(part.name) or _bound_declaration(part)
            if declaration is None or "meta" in declaration.uses:
                yield _literal_key(part)
        elif isinstance(part, tree.Method):
            declaration = METHODS.get(part.name) or _bound_declaration(part)
            if declaration is None or "meta" in declaration.uses:
                yield None


def _bound_declaration(call: tree.Call | tree.Method) -> Declaration | None:
    """Return the declaration of a call that the language does not have by itself."""
    return call.bound.declaration if call.bound is not None else None


def _literal_key(call: tree.Call) -> str | None:
    """Return the one key that a call names, or None."""
    values = [argument.value for argument in call.arguments]
    if len(values) == 1 and isinstance(values[0], tree.Literal) and values[0].value:
        return str(values[0].value)
    return None
