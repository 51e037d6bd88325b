"""Small things that generated code asks for: keys, conditions, variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

from streamer.bloblang.errors import NotBooleanError, QueryError, TypeMismatch
from streamer.bloblang.golib.operations import truth_value
from streamer.bloblang.golib.text import go_type

UNSET: Final = object()


def raise_undefined(name: str) -> NoReturn:
    """Refuse a variable that has no value."""
    raise QueryError(f"variable '{name}' undefined")


def raise_unavailable(words: str) -> NoReturn:
    """Refuse what only mappings have, in an expression that stands alone."""
    raise QueryError(words)


def get_variable(values: Mapping[str, Any], name: str) -> Any:
    """Return the value of a variable whose name was computed."""
    value = values.get(name, UNSET)
    return raise_undefined(name) if value is UNSET else value


def negate(value: Any) -> bool:
    """Return the opposite of a boolean."""
    if type(value) is bool:
        return not value
    raise TypeMismatch(value, "bool")


def check_key(value: Any, of_document: bool) -> str:
    """Return an object's key; bytes count as text."""
    if type(value) is str:
        return value
    if type(value) is bytes:
        return value.decode("utf-8", "surrogateescape")
    kind = go_type(value, of_document=of_document)
    raise QueryError(f"mapping returned invalid key type: {kind}")


def check_condition(value: Any) -> bool:
    """Return the truth of an `if` expression's condition, where null counts as false."""
    if value is True or value is False:
        return value
    if value is None:
        return False
    raise NotBooleanError(value)


def check_strict_condition(value: Any) -> bool:
    """Return the truth of an `if` statement's condition, where null does not count."""
    if value is True or value is False:
        return value
    raise NotBooleanError(value)


def check_boolean(value: Any) -> bool:
    """Return an operand of `&&` or `||`; a number counts as whether it is not 0."""
    result = truth_value(value)
    if result is None:
        # Benthos names no origin here.
        raise QueryError(str(TypeMismatch(value, "bool")))
    return result
