"""What methods do with the usual type of value, written out in the generated code.

Each entry says for which values its Python gives just what the method does; for all others, and
for arguments that are not literals, the method itself is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from streamer.bloblang.arguments import Static
from streamer.bloblang.compiler.code import Code, Value
from streamer.bloblang.runtime.text import SPACE


@dataclass(frozen=True, slots=True)
class Quick:
    """Python for a method.

    Attributes:
        types: the types of value that it is for; none when any will do.
        text: the result; `{v}` is the value, `{0}`, `{1}` … the arguments.
        also: what else must hold.
        kind: the result's type, if the method itself never gives another one.
        fits: whether it is for these arguments.
    """

    types: tuple[str, ...]
    text: str
    also: str = ""
    kind: str = ""
    fits: Callable[[list[Any]], bool] = lambda arguments: True


def _texts(arguments: list[Any]) -> bool:
    return all(type(argument) is str for argument in arguments)


def _from_start(arguments: list[Any]) -> bool:
    low, high = arguments
    return low == 0 and (high is None or high > 0)


_ASCII: Final = "{v}.isascii()"
_BOUNDED: Final = "INT64_MIN <= {v}.ns <= INT64_MAX"
_DIGITS: Final = "{v}.isdecimal() and {v}.isascii() and len({v}) < 300"
# Go reads a number that begins with 0 in another base.
_INTEGER: Final = "{v}.isdecimal() and {v}.isascii() and len({v}) < 19 and {v}[0] != '0'"
_REPLACE: Final = Quick(("str",), "{v}.replace({0}, {1})")
# Methods that look the same for texts and arrays: bytes are counted, which ASCII has one a letter.
_QUICK: Final[dict[str, tuple[Quick, ...]]] = {
    # Go maps letter by letter, which for ASCII is what Python does.
    "uppercase": (Quick(("str",), "{v}.upper()", _ASCII),),
    "lowercase": (Quick(("str",), "{v}.lower()", _ASCII),),
    "replace_all": (_REPLACE,),
    "replace": (_REPLACE,),
    "contains": (Quick(("str",), "{0} in {v}", kind="bool", fits=_texts),),
    "has_prefix": (Quick(("str",), "{v}.startswith({0})", kind="bool"),),
    "has_suffix": (Quick(("str",), "{v}.endswith({0})", kind="bool"),),
    "trim_prefix": (Quick(("str",), "{v}.removeprefix({0})"),),
    "trim_suffix": (Quick(("str",), "{v}.removesuffix({0})"),),
    "trim": (
        Quick(("str",), "{v}.strip({space})", fits=lambda a: a[0] is None),
        Quick(("str",), "{v}.strip({0})", fits=lambda a: bool(a[0])),
    ),
    "split": (
        Quick(("str",), "{v}.split({0})", kind="list", fits=lambda a: bool(a[0]) and a[1] is False),
    ),
    "slice": (
        Quick(("str",), "{v}[:{1}]", _ASCII, fits=_from_start),
        Quick(("list",), "{v}[:{1}]", fits=_from_start),
    ),
    "index": (Quick(("list",), "{v}[{0}]", "len({v}) > {0}", fits=lambda a: a[0] >= 0),),
    "length": (
        Quick(("list", "dict"), "len({v})", kind="int"),
        Quick(("str",), "len({v})", _ASCII, kind="int"),
    ),
    "string": (Quick(("str",), "{v}", kind="str"),),
    "number": (
        Quick(("str",), "float({v})", _DIGITS, kind="float"),
        Quick(("float",), "{v}", kind="float"),
        Quick(("int",), "float({v})", kind="float"),
    ),
    "int64": (
        Quick(("str",), "int({v})", _INTEGER, kind="int"),
        Quick(("int",), "{v}", "INT64_MIN <= {v} <= INT64_MAX", kind="int"),
    ),
    "not_null": (Quick((), "{v}", "{v} is not None"),),
    "exists": (
        Quick(("dict",), "{0} in {v}", kind="bool", fits=lambda a: not set(".~*") & set(a[0])),
    ),
    "ts_unix": (Quick(("Timestamp",), "{v}.ns // 1000000000", _BOUNDED, kind="int"),),
    "ts_unix_nano": (Quick(("Timestamp",), "{v}.ns", _BOUNDED, kind="int"),),
}


def quick(code: Code, name: str, left: Value, arguments: list[Any], call: str) -> tuple[str, str]:
    """Return Python for a method's result, and the result's type if that is certain.

    Args:
        code: where constants go.
        name: the method's.
        left: the value, an atom.
        arguments: what the call is given, `Static` or not.
        call: Python that calls the method itself.
    """
    entries = _QUICK.get(name, ())
    if not code.options.inline or not all(isinstance(a, Static) for a in arguments):
        return call, ""
    values = [argument.value for argument in arguments]
    text = ""
    for entry in entries:
        if entry.fits(values) and (not left.kind or not entry.types or left.kind in entry.types):
            result, test = _filled(code, entry, left, values)
            if not test:
                return text + result, entry.kind
            text += f"{result} if {test} else "
    return text + call, entries[0].kind if entries else ""


def _filled(code: Code, entry: Quick, left: Value, values: list[Any]) -> tuple[str, str]:
    """Return the Python for a result, and for when it may be used."""
    written = [getattr(Value.of(value), "code", None) or code.constant(value) for value in values]
    space = code.constant(SPACE, "space") if "{space}" in entry.text else ""
    tests = [] if left.kind or not entry.types else [_typed(left.code, entry.types)]
    if entry.also:
        tests.append(entry.also.format(*written, v=left.code))
    return entry.text.format(*written, v=left.code, space=space), " and ".join(tests)


def _typed(name: str, types: tuple[str, ...]) -> str:
    tests = [f"type({name}) is {one}" for one in types]
    return tests[0] if len(tests) == 1 else f"({' or '.join(tests)})"
