"""Declarations of Bloblang functions and methods.

A decorator attaches a `Declaration` to a plain Python function and returns the function as it was;
nothing is registered. `catalog.py` lists what the language has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypedDict, TypeVar, Unpack

REQUIRED: Final = object()
_F = TypeVar("_F", bound=Callable[..., Any])

# What a mapping may lean on besides the document; the fields of `Uses`.
TRAITS: Final = (
    *("batch", "meta", "content", "now", "random", "error", "impure"),
    *("table", "keyed_state"),
)


# Where a function or method comes from, see `Declaration.origin`.
BENTHOS: Final = "benthos"
CONNECT: Final = "connect"
STREAMER: Final = "streamer"


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter.

    Attributes:
        name: its name, also for named arguments.
        type: `string`, `integer`, `float`, `bool`, `array`, `object`, `timestamp`, `any`, or
            `query` (an expression that the function evaluates itself, given as a callable).
        default: the value without an argument; `REQUIRED` when there must be one.
        scalars: whether a `query` may also be a plain value.
        literal: whether the argument must be known when the mapping is read.
    """

    name: str
    type: str
    default: Any = REQUIRED
    scalars: bool = False
    literal: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """A mapping, what goes in and what must come out; run by the suite and shown in the docs."""

    mapping: str
    input: str
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The knowledge of the compiler, the docs and the tests about a function or method.

    Attributes:
        name: as mappings write it.
        category: the heading it is listed under.
        summary: one line.
        params: its parameters, in order.
        variadic: takes any number of nameless arguments instead.
        examples: checked examples.
        needs: what of the run is passed before the arguments: `ex`, `batch`, `index`, `message`,
            `meta` (the metadata being written), `original` (that of the message looked at),
            `site` (a text that is unique to the call), `state` (a dict that the call keeps),
            `call_name` (a text that names the call for good, by what it says) or
            `to_argument` (what errors call the first argument).
        uses: what a mapping that calls it leans on, of `TRAITS`.
        binds: called with the arguments once, gives the callable that is applied to each value.
        own_errors: its errors are not prefixed with what the value came from.
        deprecated: kept for older mappings.
        impure: may be switched off, as it reaches outside of the message, or keeps state there.
        takes_environment: the mapping's `MappingEnvironment` comes before its arguments.
        origin: whose it is: `benthos`, `connect` for what only Redpanda Connect has, or `streamer`
            for our own.
        foldable: worked out when the mapping is read if the target and all arguments are literals.
        check: refuses arguments that don't go together when the mapping is read; it gets those
            that are known then, None for others.
        requires: the packages that it needs besides those that are always installed, by the names
            that are imported; of `streamer.core.extras.EXTRA_OF`.
        run: the function itself.
    """

    name: str
    category: str
    summary: str
    params: tuple[Param, ...]
    run: Callable[..., Any]
    variadic: bool = False
    examples: tuple[Example, ...] = ()
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    binds: bool = False
    own_errors: bool = False
    deprecated: bool = False
    impure: bool = False
    takes_environment: bool = False
    origin: str = BENTHOS
    foldable: bool = False
    check: Callable[..., None] | None = None
    requires: tuple[str, ...] = ()


class Traits(TypedDict, total=False):
    """The keywords of `declare`: the optional fields of a `Declaration`, and its summary.

    Without a summary it is the first line of the function's docstring.
    """

    summary: str
    variadic: bool
    examples: tuple[Example, ...]
    needs: tuple[str, ...]
    uses: tuple[str, ...]
    binds: bool
    own_errors: bool
    deprecated: bool
    impure: bool
    takes_environment: bool
    origin: str
    foldable: bool
    check: Callable[..., None] | None
    requires: tuple[str, ...]


def declare(
    name: str, category: str, *params: Param, **traits: Unpack[Traits]
) -> Callable[[_F], _F]:
    """Return a decorator that attaches a declaration to a function, and returns the function.

    Args:
        name: as mappings write it.
        category: the heading it is listed under.
        params: its parameters, in order.
        traits: what else a `Declaration` has.

    Example:
        >>> @declare("shout", "Strings", summary="A text in capitals.")
        ... def shout(value: str) -> str:
        ...     return value.upper()
        >>> [declaration.name for declaration in shout.declarations]
        ['shout']
    """
    if traits.get("impure"):
        traits["uses"] = (*traits.get("uses", ()), "impure")

    def attach(run: _F) -> _F:
        given: Traits = {"summary": (run.__doc__ or "").partition("\n")[0], **traits}
        declaration = Declaration(name=name, category=category, params=params, run=run, **given)
        attached = (*getattr(run, "declarations", ()), declaration)
        run.declarations = attached  # type: ignore[attr-defined]
        return run

    return attach
