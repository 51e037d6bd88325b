"""Functions that make values: ranges, ids, chance, counters, errors."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable
from typing import Any, NoReturn

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.errors import ArgumentError, QueryError, TypeMismatch, UnplacedError
from streamer.bloblang.golib.convert import to_int
from streamer.bloblang.golib.operations import NUMBER_TYPES, truncate
from streamer.bloblang.limits import check_bytes, check_elements
from streamer.core.execution import Execution
from streamer.core.value import DELETED, INT64_MAX, NOTHING

_CATEGORY = "General"


@declare(
    "deleted",
    _CATEGORY,
    examples=(Example("root = this\nroot.b = deleted()", '{"a":1,"b":2}', '{"a":1}'),),
)
def deleted() -> Any:
    """Removes the field, element or message to which it is assigned."""
    return DELETED


@declare(
    "nothing",
    _CATEGORY,
    examples=(Example("root.a = 1\nroot.a = nothing()", "{}", '{"a":1}'),),
)
def nothing() -> Any:
    """Makes an assignment do nothing."""
    return NOTHING


@declare(
    "throw",
    _CATEGORY,
    Param("why", "string"),
    examples=(
        Example('root = throw("no")', "{}", 'Error("failed assignment (line 1): no")'),
        Example('root.a = throw("no").catch("yes")', "{}", '{"a":"yes"}'),
    ),
)
def throw(why: str) -> NoReturn:
    """Fails the mapping with a text."""
    raise QueryError(why)


@declare(
    "var",
    _CATEGORY,
    Param("name", "string"),
    examples=(Example('let a = this.a\nroot.b = var("a")', '{"a":1}', '{"b":1}'),),
)
def var(name: str) -> Any:
    """The value of a variable."""
    raise QueryError(f"variable '{name}' undefined")


@declare(
    "range",
    _CATEGORY,
    Param("start", "integer"),
    Param("stop", "integer"),
    Param("step", "integer", default=1),
    examples=(
        Example("root = range(4, 0, -2)", "{}", "[4,2]"),
        Example("root = range(this.a, this.b).catch([])", '{"a":1,"b":1}', "[]"),
    ),
    binds=True,
)
def range_(start: int, stop: int, step: int) -> Callable[[], list[int]]:
    """The integers from start up to stop, without stop; an empty range is an error."""
    if step == 0:
        raise ArgumentError("step must be greater than or less than 0")
    if step < 0 and stop > start:
        raise ArgumentError(f"with negative step arg stop ({stop}) must be <= start ({start})")
    if step > 0 and start >= stop:
        raise ArgumentError(f"with positive step arg start ({start}) must be < stop ({stop})")
    # As many as whole steps fit: Benthos leaves out a last one that a step would only overshoot.
    count = abs(stop - start) // abs(step)
    check_elements(count, "a range")
    values = [start + step * i for i in range(count)]
    return lambda: values


@declare(
    "pi",
    _CATEGORY,
    examples=(Example("root = pi().floor()", "{}", "3"),),
)
def pi() -> float:
    """The constant pi."""
    return math.pi


@declare(
    "bytes",
    _CATEGORY,
    Param("length", "integer"),
    examples=(Example("root = bytes(2).length()", "{}", "2"),),
)
def bytes_(length: int) -> bytes:
    """A number of zero bytes."""
    if length < 0:
        raise ArgumentError(f"a length must not be negative, got {length}")
    check_bytes(length, "bytes")
    return b"\0" * length


@declare(
    "uuid_v4",
    _CATEGORY,
    examples=(Example("root.size = uuid_v4().length()", "{}", '{"size":36}'),),
    uses=("random",),
)
def uuid_v4() -> str:
    """A random UUID."""
    number = int.from_bytes(os.urandom(16), "big")
    number = number & ~(0xF000 << 64) & ~(3 << 62) | 4 << 76 | 2 << 62
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


_MAX_ID_CHARS = 1_000_000
_NANOID_ALPHABET = "_-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@declare(
    "nanoid",
    _CATEGORY,
    Param("length", "integer", default=None),
    Param("alphabet", "string", default=None),
    examples=(
        Example("root.size = nanoid(10).length()", "{}", '{"size":10}'),
        Example('root.id = nanoid(4, "a")', "{}", '{"id":"aaaa"}'),
    ),
    uses=("random",),
    binds=True,
)
def nanoid(length: int | None, alphabet: str | None) -> Callable[[], str]:
    """A random id that is safe in URLs."""
    if alphabet is not None and length is None:
        raise ArgumentError("field length must be specified when an alphabet is specified")
    if length is not None and length > _MAX_ID_CHARS:
        raise ArgumentError(f"an id of {length} letters, more than the {_MAX_ID_CHARS} allowed")
    letters = _NANOID_ALPHABET if alphabet is None else alphabet
    size = 21 if length is None else length

    def make() -> str:
        if not 0 < len(letters) < 256:
            raise UnplacedError("alphabet must not be empty and contain no more than 255 chars")
        if size < 1:
            negative = size < 0 and alphabet is None
            raise UnplacedError(
                "negative id length" if negative else "size must be positive integer"
            )
        choice = random.SystemRandom().choice
        return "".join([choice(letters) for _ in range(size)])

    return make


def _check_bounds(seed: Any, low: int, high: int) -> None:
    if low < 0:
        raise ArgumentError(f"min ({low}) must be a positive number")
    if high < low:
        raise ArgumentError(f"min ({low}) must be smaller or equal than max ({high})")
    if high == INT64_MAX:
        allowed = f"the max allowed for an int64 ({INT64_MAX})"
        raise ArgumentError(f"max must be smaller than {allowed}")


@declare(
    "random_int",
    _CATEGORY,
    Param("seed", "query", default=None, scalars=True),
    Param("min", "integer", default=0, literal=True),
    Param("max", "integer", default=INT64_MAX - 1, literal=True),
    examples=(
        Example("root.dice = random_int(min: 1, max: 6) <= 6", "{}", '{"dice":true}'),
        Example("root.same = random_int(this.seed, 7, 7)", '{"seed":1}', '{"same":7}'),
    ),
    needs=("state",),
    uses=("random",),
    check=_check_bounds,
)
def random_int(
    state: dict[str, Any], seed: Callable[[Any], Any] | None, low: int, high: int
) -> int:
    """A random integer from min to max, both included; a seed repeats the same sequence."""
    generator = state.get("generator")
    if generator is None:
        start = None
        if seed is not None:
            try:
                start = to_int(seed(None))
            except QueryError as e:
                raise QueryError(f"failed to seed random number generator: {e}") from None
        generator = random.Random(start)
        state["generator"] = generator
    return (
        low + int(generator.random() * (high - low + 1))
        if high < 2**52
        else (generator.randint(low, high))
    )


@declare(
    "count",
    _CATEGORY,
    Param("name", "string"),
    examples=(Example('root.id = count("declared_example")', "{}", '{"id":1}'),),
    needs=("ex",),
    uses=("batch",),
    deprecated=True,
    impure=True,
)
def count(ex: Execution, name: str) -> int:
    """A counter by name: 1, then incremented by each call."""
    counters = ex.counters
    try:
        value = counters[name] + 1
    except KeyError:
        value = 1
    counters[name] = value
    return value


def _resolve_int(value: Any, what: str, read: Callable[[Any], int] = to_int) -> int:
    try:
        return read(value)
    except QueryError as e:
        raise QueryError(f"failed to resolve {what} argument: {e}") from None


def _truncate_number(value: Any) -> int:
    if type(value) not in NUMBER_TYPES:
        raise TypeMismatch(value, "number")
    return truncate(value)


def _resolve_counter_bounds(
    ex: Execution, site: str, low: Callable[[Any], Any] | int, high: Callable[[Any], Any] | int
) -> tuple[int, int]:
    start = low if isinstance(low, int) else _resolve_int(low(None), "min")
    if start < 0:
        raise QueryError(f"min argument must be >0, got {start}")
    end = high if isinstance(high, int) else _resolve_int(high(None), "max")
    if end <= start:
        raise QueryError(f"max argument must be >0 and >min, got {end}")
    ex.counter_bounds[site] = start, end
    return start, end


@declare(
    "counter",
    _CATEGORY,
    Param("min", "query", default=1, scalars=True),
    Param("max", "query", default=INT64_MAX, scalars=True),
    Param("set", "query", default=None),
    examples=(Example("root.at = counter(min: 5)", "{}", '{"at":5}'),),
    needs=("ex", "site"),
    uses=("batch",),
)
def counter(
    ex: Execution,
    site: str,
    low: Callable[[Any], Any] | int,
    high: Callable[[Any], Any] | int,
    change: Callable[[Any], Any] | None,
) -> int:
    """A separate counter for each call in the mapping, from min to max and then from min again.

    Min and max are worked out once, by the first message that has valid ones.
    """
    start, end = ex.counter_bounds.get(site) or _resolve_counter_bounds(ex, site, low, high)
    # What is kept is how many times it counted since min, so that a run may preset it.
    counters = ex.counters
    try:
        done = counters[site] % (end - start + 1)
    except KeyError:
        done = 0
    if change is not None:
        value = change(None)
        if value is None:
            return start - 1 + done
        if value is DELETED:
            done = 0
        elif value is not NOTHING:
            value = _resolve_int(value, "set", _truncate_number)
            counters[site] = value - start + 1
            return value
    counters[site] = done + 1
    return start + done
