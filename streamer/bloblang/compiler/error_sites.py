"""Meanings of lines of generated code, so that an error raised there gets Benthos's words.

A line carries steps; when an exception passes through it they are applied in order to the text
found so far. This costs nothing while all goes well.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """The error concerns a value that came from here."""

    origin: str


@dataclass(frozen=True, slots=True)
class Operands:
    """The line combines two values."""

    left: str
    right: str


@dataclass(frozen=True, slots=True)
class Condition:
    """The line tests a condition; a value straight from a document keeps its number's text."""

    origin: str
    of_document: bool


@dataclass(frozen=True, slots=True)
class Prefix:
    """Words that go before the text."""

    text: str


@dataclass(frozen=True, slots=True)
class PrefixElement:
    """Words before the text that name the element at hand.

    Attributes:
        text: a format with one place for the element's index or key.
        iterator: the local variable that holds the running iterator over a list.
        keys: the local variable that holds the keys when an object is gone through, else None.
    """

    text: str
    iterator: str
    keys: str


@dataclass(frozen=True, slots=True)
class PrefixKey:
    """Words before the text that name a key which a local variable holds.

    Attributes:
        text: a format with one place for the key.
        variable: the local variable.
    """

    text: str
    variable: str


@dataclass(frozen=True, slots=True)
class Context:
    """The line fetches the parsed document for the path of `this` given here."""

    path: str


@dataclass(frozen=True, slots=True)
class FailedAssignment:
    """The line belongs to the statement of a named map on this line, counted from the map."""

    line: int


Step = (
    ValueOrigin
    | Operands
    | Condition
    | Prefix
    | PrefixElement
    | PrefixKey
    | Context
    | FailedAssignment
)


@dataclass(frozen=True, slots=True)
class Site:
    """The place in the mapping that a generated line comes from.

    Attributes:
        line: 1-based line of the statement in the mapping.
        steps: what to do with an error's text, from the inside out.
    """

    line: int
    steps: tuple[Step, ...]
