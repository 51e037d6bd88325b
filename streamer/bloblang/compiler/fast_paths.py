"""Fast paths: methods on values of the usual type, written out in the generated code.

Each entry says for which values its Python gives just what the method does; for all others, and
for arguments that are not literals, the method itself is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from streamer.bloblang.arguments import StaticArgument
from streamer.bloblang.compiler.code import Code, Value
from streamer.bloblang.golib.text import GO_WHITESPACE


@dataclass(frozen=True, slots=True)
class FastPath:
    """Python for a method.

    Attributes:
        types: the types of value that it is for; none when any will do.
        text: the result; `{v}` is the value, `{0}`, `{1}` … the arguments.
        condition: what else must hold.
        kind: the result's type, if the method itself never gives another one.
        applies: whether it is for these arguments.
    """

    types: tuple[str, ...]
    text: str
    condition: str = ""
    kind: str = ""
    applies: Callable[[list[Any]], bool] = lambda arguments: True


def _are_texts(arguments: list[Any]) -> bool:
    return all(type(argument) is str for argument in arguments)


def _is_prefix_slice(arguments: list[Any]) -> bool:
    low, high = arguments
    return low == 0 and (high is None or high > 0)


_IS_ASCII: Final = "{v}.isascii()"
_IS_INT64: Final = "INT64_MIN <= {v}.ns <= INT64_MAX"
_IS_DECIMAL: Final = "{v}.isdecimal() and {v}.isascii() and len({v}) < 300"
# Go reads a number that begins with 0 in another base.
_IS_INTEGER: Final = "{v}.isdecimal() and {v}.isascii() and len({v}) < 19 and {v}[0] != '0'"
_REPLACE: Final = FastPath(("str",), "{v}.replace({0}, {1})")
# Methods that look the same for texts and arrays: bytes are counted, which ASCII has one a letter.
_FAST_PATHS: Final[dict[str, tuple[FastPath, ...]]] = {
    # Go maps letter by letter, which for ASCII is what Python does.
    "uppercase": (FastPath(("str",), "{v}.upper()", _IS_ASCII),),
    "lowercase": (FastPath(("str",), "{v}.lower()", _IS_ASCII),),
    "replace_all": (_REPLACE,),
    "replace": (_REPLACE,),
    "contains": (FastPath(("str",), "{0} in {v}", kind="bool", applies=_are_texts),),
    "has_prefix": (FastPath(("str",), "{v}.startswith({0})", kind="bool"),),
    "has_suffix": (FastPath(("str",), "{v}.endswith({0})", kind="bool"),),
    "trim_prefix": (FastPath(("str",), "{v}.removeprefix({0})"),),
    "trim_suffix": (FastPath(("str",), "{v}.removesuffix({0})"),),
    "trim": (
        FastPath(("str",), "{v}.strip({space})", applies=lambda a: a[0] is None),
        FastPath(("str",), "{v}.strip({0})", applies=lambda a: bool(a[0])),
    ),
    "split": (
        FastPath(
            ("str",), "{v}.split({0})", kind="list", applies=lambda a: bool(a[0]) and a[1] is False
        ),
    ),
    "slice": (
        FastPath(("str",), "{v}[:{1}]", _IS_ASCII, applies=_is_prefix_slice),
        FastPath(("list",), "{v}[:{1}]", applies=_is_prefix_slice),
    ),
    "index": (FastPath(("list",), "{v}[{0}]", "len({v}) > {0}", applies=lambda a: a[0] >= 0),),
    "length": (
        FastPath(("list", "dict"), "len({v})", kind="int"),
        FastPath(("str",), "len({v})", _IS_ASCII, kind="int"),
    ),
    "string": (FastPath(("str",), "{v}", kind="str"),),
    "number": (
        FastPath(("str",), "float({v})", _IS_DECIMAL, kind="float"),
        FastPath(("float",), "{v}", kind="float"),
        FastPath(("int",), "float({v})", kind="float"),
    ),
    "int64": (
        FastPath(("str",), "int({v})", _IS_INTEGER, kind="int"),
        FastPath(("int",), "{v}", "INT64_MIN <= {v} <= INT64_MAX", kind="int"),
    ),
    "not_null": (FastPath((), "{v}", "{v} is not None"),),
    "exists": (
        FastPath(
            ("dict",), "{0} in {v}", kind="bool", applies=lambda a: not set(".~*") & set(a[0])
        ),
    ),
    "ts_unix": (FastPath(("Timestamp",), "{v}.ns // 1000000000", _IS_INT64, kind="int"),),
    "ts_unix_nano": (FastPath(("Timestamp",), "{v}.ns", _IS_INT64, kind="int"),),
}


def build_fast_path(
    code: Code, name: str, left: Value, arguments: list[Any], call: str
) -> tuple[str, str]:
    """Return Python for a method's result, and the result's type if that is certain.

    Args:
        code: where constants go.
        name: the method's.
        left: the value, an atom.
        arguments: what the call is given, `StaticArgument` or not.
        call: Python that calls the method itself.
    """
    entries = _FAST_PATHS.get(name, ())
    if not code.options.inline or not all(isinstance(a, StaticArgument) for a in arguments):
        return call, ""
    values = [argument.value for argument in arguments]
    text = ""
    for entry in entries:
        if entry.applies(values) and (not left.kind or not entry.types or left.kind in entry.types):
            result, test = _fill_template(code, entry, left, values)
            if not test:
                return text + result, entry.kind
            text += f"{result} if {test} else "
    return text + call, entries[0].kind if entries else ""


def _fill_template(code: Code, entry: FastPath, left: Value, values: list[Any]) -> tuple[str, str]:
    """Return the Python for a result, and for when it may be used."""
    written = [
        getattr(Value.from_literal(value), "code", None) or code.add_constant(value)
        for value in values
    ]
    space = code.add_constant(GO_WHITESPACE, "space") if "{space}" in entry.text else ""
    tests = [] if left.kind or not entry.types else [_type_test(left.code, entry.types)]
    if entry.condition:
        tests.append(entry.condition.format(*written, v=left.code))
    return entry.text.format(*written, v=left.code, space=space), " and ".join(tests)


def _type_test(name: str, types: tuple[str, ...]) -> str:
    tests = [f"type({name}) is {one}" for one in types]
    return tests[0] if len(tests) == 1 else f"({' or '.join(tests)})"
