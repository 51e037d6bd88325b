"""Small things that generated code asks for: keys, conditions, variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

from streamer.bloblang.errors import NotBoolean, QueryError, TypeMismatch
from streamer.bloblang.runtime.operations import truth
from streamer.bloblang.runtime.text import go_type

UNSET: Final = object()


def undefined(name: str) -> NoReturn:
    """Refuse a variable that has no value."""
    raise QueryError(f"variable '{name}' undefined")


def lacking(words: str) -> NoReturn:
    """Refuse what only mappings have, in an expression that stands alone."""
    raise QueryError(words)


def variable(held: Mapping[str, Any], name: str) -> Any:
    """Return the value of a variable whose name was computed."""
    value = held.get(name, UNSET)
    return undefined(name) if value is UNSET else value


def negate(value: Any) -> bool:
    """Return the opposite of a boolean."""
    if type(value) is bool:
        return not value
    raise TypeMismatch(value, "bool")


def key(value: Any, of_document: bool) -> str:
    """Return an object's key; bytes count as text."""
    if type(value) is str:
        return value
    if type(value) is bytes:
        return value.decode("utf-8", "surrogateescape")
    kind = go_type(value, of_document=of_document)
    raise QueryError(f"mapping returned invalid key type: {kind}")


def condition(value: Any) -> bool:
    """Return the truth of an `if` expression's condition, where null counts as false."""
    if value is True or value is False:
        return value
    if value is None:
        return False
    raise NotBoolean(value)


def strict_condition(value: Any) -> bool:
    """Return the truth of an `if` statement's condition, where null does not count."""
    if value is True or value is False:
        return value
    raise NotBoolean(value)


def boolean(value: Any) -> bool:
    """Return an operand of `&&` or `||`; a number counts as whether it is not 0."""
    result = truth(value)
    if result is None:
        # Benthos names no origin here.
        raise QueryError(str(TypeMismatch(value, "bool")))
    return result
