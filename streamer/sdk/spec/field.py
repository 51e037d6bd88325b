"""One field of a config: its type, shape, default and what lint checks about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from streamer.sdk.spec.access import Access
from streamer.sdk.spec.kind import Kind

Shape = Literal["scalar", "array", "map", "2darray"]


class _Required:
    """The type of `REQUIRED`; one value, also after pickling."""

    def __repr__(self) -> str:
        return "REQUIRED"

    def __reduce__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()
"""The default of a field that has none."""

VALUE_TYPES: Final = frozenset({"string", "int", "float", "bool", "object", "unknown"})
_KINDS: Final = frozenset(str(kind) for kind in Kind)


@dataclass(frozen=True, slots=True)
class Field:
    """A field that a config may set.

    Attributes:
        name: as written in the config; empty for the body of a component that is not an object.
        type: `string`, `int`, `float`, `bool`, `object`, `unknown` (any value), or the name of a
            component kind (`processor`, `output`, …), for a child component.
        description: one or more sentences, for documentation and editors.
        default: the value as a config would write it (a duration as text); `REQUIRED` without one.
        optional: may be left out though it has no default; its value is None then.
        shape: whether the value is one of the type, a list, a map with string keys, or a list of
            lists of it.
        interpolated: a string that may hold `${! … }`; checked by lint, kept as text.
        mapping: a string that is a Bloblang mapping; checked by lint, kept as text. An empty text
            is no mapping and is not checked.
        variables: the variables that are set before the mapping runs.
        duration: a string that is a duration; parsed to int nanoseconds, None when empty.
        per_message: of a duration, the field that takes a mapping in its place; empty without one.
        refers: a string that is the label of a resource of this kind; lint checks that it exists.
        secret: never shown in messages, logs or `echo_config`.
        credentials: a map whose items are never shown where their names say that they tell who
            asks, as of headers `Authorization` and `Cookie`.
        access: what of the machine the value reaches; None for nothing. A text whose name looks as
            if it did needs one: configs that come by API are refused what says nothing.
        deprecated: still taken; `lint --deprecated` names it.
        advanced: left out of the short form of the documentation.
        options: the strings that are allowed; all are when empty. Not checked while interpolated.
        examples: values that documentation shows.
        children: the fields of an `object`; without any, an object is any map.
        check: called with the parsed value (never None) of a valid field; returns what is wrong
            with it and what was expected, or None.
    """

    name: str
    type: str
    description: str
    default: Any = REQUIRED
    optional: bool = False
    shape: Shape = "scalar"
    interpolated: bool = False
    mapping: bool = False
    variables: tuple[str, ...] = ()
    duration: bool = False
    per_message: str = ""
    refers: Kind | None = None
    secret: bool = False
    credentials: bool = False
    access: Access | None = None
    deprecated: bool = False
    advanced: bool = False
    options: tuple[str, ...] = ()
    examples: tuple[Any, ...] = ()
    children: tuple[Field, ...] = ()
    check: Callable[[Any], str | None] | None = None

    def __post_init__(self) -> None:
        if self.type not in VALUE_TYPES and self.type not in _KINDS:
            raise TypeError(f"field {self.name}: there is no type {self.type!r}")

    @property
    def kind(self) -> Kind | None:
        """The component kind of a child component, or None for a value."""
        return Kind(self.type) if self.type in _KINDS else None

    @property
    def required(self) -> bool:
        """Whether lint reports the field when it is missing.

        As in Benthos, an object with fields of its own may be left out: its fields' defaults
        stand, and those of them that are required are reported themselves.
        """
        if self.optional or self.default is not REQUIRED:
            return False
        return not (self.children and self.shape == "scalar")


NO_FIELDS: Final = Field("", "object", "It has no fields.", default={})
"""The `config` of a spec whose component has no fields."""


def duration_field(
    name: str,
    description: str,
    *,
    default: Any = REQUIRED,
    optional: bool = False,
    deprecated: bool = False,
    advanced: bool = False,
    examples: tuple[Any, ...] = (),
    check: Callable[[Any], str | None] | None = None,
) -> Field:
    """Return a field whose text is a duration, such as `1m30s`; see `Field.duration`."""
    return Field(
        name,
        "string",
        description,
        default=default,
        optional=optional,
        duration=True,
        deprecated=deprecated,
        advanced=advanced,
        examples=examples,
        check=check,
    )
