"""Errors of a mapping: those found when it is read, and those of one message at run time.

Run-time errors are small on purpose: where they happened and what the operand was called is worked
out from the generated code's line, and only when somebody needs the text (diagnostics.py).
"""

from __future__ import annotations

from typing import Any

from streamer.core.errors import StreamerError
from streamer.core.value import type_name


class BloblangError(StreamerError):
    """A mapping or an interpolated string that cannot be read.

    Attributes:
        line: 1-based line within the text.
        column: 1-based column within the line.
        message: what was found and what was expected, in Benthos's words.
        suggestion: what to do, or an empty string.
    """

    def __init__(self, line: int, column: int, message: str, suggestion: str = "") -> None:
        self.line = line
        self.column = column
        self.message = message
        self.suggestion = suggestion
        hint = f"; {suggestion}" if suggestion else ""
        super().__init__(f"line {line} char {column}: {message}{hint}")


class QueryError(Exception):
    """A query failed on one message; the text is Benthos's without the place."""


class UnplacedError(QueryError):
    """An error that Benthos tells without naming what the value came from."""


class RecordedError(QueryError):
    """An error that was put into words elsewhere, when a message was pre-aggregated.

    Attributes:
        sealed: whether the text already says what the value came from.
        is_mismatch: whether it says so as long as no other words go before it.
    """

    def __init__(self, text: str, sealed: bool, is_mismatch: bool = False) -> None:
        self.sealed = sealed
        self.is_mismatch = is_mismatch
        super().__init__(text)


class MapRecursionError(UnplacedError):
    """Named maps apply one another without end; the text leaves out what was on the way there."""


class ArgumentError(UnplacedError):
    """An argument is not what its parameter takes; a literal one is refused when it is read."""


class TypeMismatch(QueryError):
    """A value is not of a type that the method takes.

    Attributes:
        value: what was found.
        expected: names of the types that would have done.
        origin: what the value came from, when the raiser knows it.
    """

    def __init__(self, value: Any, *expected: str, origin: str = "") -> None:
        self.value = value
        self.expected = expected
        self.origin = origin
        super().__init__()

    def __str__(self) -> str:
        return self.describe(self.origin)

    def describe(self, origin: str) -> str:
        """Return the message, naming the origin of the value when there is one."""
        *first, last = self.expected
        expected = f"{', '.join(first)} or {last}" if first else last
        actual = type_name(self.value)
        text = f"expected {expected} value, got {actual}"
        if origin:
            text += f" from {origin}"
        if actual == "string":
            text += f' ("{self.value}")'
        elif actual in ("bool", "number"):
            from streamer.bloblang.golib.text import go_text

            text += f" ({go_text(self.value)})"
        return text


class OperandMismatch(QueryError):
    """Two values that an operator cannot combine.

    Attributes:
        operation: the operator's verb (`add`, `compare`, …).
        left: the left value.
        right: the right value.
    """

    def __init__(self, operation: str, left: Any, right: Any) -> None:
        self.operation = operation
        self.left = left
        self.right = right
        super().__init__(f"cannot {operation} {type_name(left)} and {type_name(right)}")

    def describe(self, left_origin: str, right_origin: str) -> str:
        """Return the message, naming what both operands came from."""
        return (
            f"cannot {self.operation} types {type_name(self.left)} (from {left_origin}) "
            f"and {type_name(self.right)} (from {right_origin})"
        )


class DivideByZeroError(QueryError):
    """A division or modulo by zero."""

    def __init__(self) -> None:
        super().__init__("attempted to divide by zero")


class NotBooleanError(QueryError):
    """The condition of an `if` is not a boolean.

    Attributes:
        value: what it is.
    """

    def __init__(self, value: Any) -> None:
        self.value = value
        super().__init__("the condition is not a boolean")


class NoContextError(QueryError):
    """`this` was used, and the message is no JSON document.

    Attributes:
        reason: why the message could not be parsed.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__("context was undefined")


class PrefixedError(QueryError):
    """An error inside a part of a query, with words that say which part.

    Attributes:
        prefix: the words, ending in a colon and a space.
        cause: the error itself.
    """

    def __init__(self, prefix: str, cause: Exception) -> None:
        self.prefix = prefix
        self.cause = cause
        super().__init__(prefix)
