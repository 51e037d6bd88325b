"""Methods on text; most take bytes as well and give bytes back."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import Any, Final

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.errors import ArgumentError, QueryError, TypeMismatch
from streamer.bloblang.golib import letter_case
from streamer.bloblang.golib.convert import text_of
from streamer.bloblang.golib.goformat import sprintf
from streamer.bloblang.golib.text import GO_WHITESPACE
from streamer.core.limits import current_limits

_CATEGORY = "String Manipulation"


def _change_text(value: Any, change: Callable[[str], str]) -> Any:
    """Apply a change of text to a text, or to bytes as text, which it gives back as bytes."""
    if type(value) is str:
        return change(value)
    if type(value) is bytes:
        return change(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    raise TypeMismatch(value, "string")


@declare(
    "uppercase",
    _CATEGORY,
    examples=(
        Example(
            "root.plate = this.plate.uppercase()", '{"plate":"ab62 def"}', '{"plate":"AB62 DEF"}'
        ),
    ),
)
def uppercase(value: Any) -> Any:
    """The text in capital letters."""
    return _change_text(value, letter_case.to_upper)


@declare(
    "lowercase",
    _CATEGORY,
    examples=(
        Example(
            "root.email = this.email.lowercase()",
            '{"email":"Ada@Example.com"}',
            '{"email":"ada@example.com"}',
        ),
    ),
)
def lowercase(value: Any) -> Any:
    """The text in small letters."""
    return _change_text(value, letter_case.to_lower)


@declare(
    "capitalize",
    _CATEGORY,
    examples=(
        Example(
            "root.title = this.title.capitalize()",
            '{"title":"the cherry orchard"}',
            '{"title":"The Cherry Orchard"}',
        ),
    ),
)
def capitalize(value: Any) -> Any:
    """The text with each word's first letter in upper case, and the others in lower case."""
    return _change_text(value, letter_case.to_title)


@declare(
    "contains",
    _CATEGORY,
    Param("value", "any"),
    examples=(
        Example(
            'root.eu = ["FR","DE","IT"].contains(this.country)', '{"country":"DE"}', '{"eu":true}'
        ),
        Example(
            'root.is_error = this.line.contains("ERROR")',
            '{"line":"10:02 ERROR disk full"}',
            '{"is_error":true}',
        ),
    ),
)
def contains(value: Any, target: Any) -> bool:
    """True if a text contains another one, or an array or object contains an equal value."""
    from streamer.bloblang.golib.operations import is_same
    from streamer.bloblang.golib.text import to_bytes, to_text

    if type(value) is str:
        return to_text(target) in value
    if type(value) is bytes:
        return to_bytes(target) in value
    if type(value) is list:
        return any(is_same(target, item) for item in value)
    if type(value) is dict:
        return any(is_same(target, item) for item in value.values())
    raise TypeMismatch(value, "string", "array", "object")


def _declare_test(
    name: str,
    summary: str,
    on_text: Callable[..., bool],
    on_bytes: Callable[..., bool],
    example: Example,
) -> Any:
    @declare(
        name,
        _CATEGORY,
        Param("value", "string"),
        examples=(example,),
        summary=summary,
    )
    def method(value: Any, part: str) -> bool:
        if type(value) is str:
            return on_text(value, part)
        if type(value) is bytes:
            return on_bytes(value, part.encode("utf-8", "surrogateescape"))
        raise TypeMismatch(value, "string")

    return method


has_prefix = _declare_test(
    "has_prefix",
    "True if the text starts with another.",
    str.startswith,
    bytes.startswith,
    Example(
        'root.is_german = this.phone.has_prefix("+49")',
        '{"phone":"+49 30 1234"}',
        '{"is_german":true}',
    ),
)
has_suffix = _declare_test(
    "has_suffix",
    "True if the text ends with another.",
    str.endswith,
    bytes.endswith,
    Example(
        'root.is_image = this.file.has_suffix(".png")', '{"file":"chart.png"}', '{"is_image":true}'
    ),
)


@declare(
    "index_of",
    _CATEGORY,
    Param("value", "string"),
    examples=(
        Example('root.at = this.email.index_of("@")', '{"email":"ada@example.com"}', '{"at":3}'),
    ),
)
def index_of(value: Any, part: str) -> int:
    """The offset of another text, in bytes; -1 when it is not there."""
    if type(value) is str:
        at = value.find(part)
        return at if at <= 0 or value.isascii() else len(value[:at].encode())
    if type(value) is bytes:
        return value.find(part.encode("utf-8", "surrogateescape"))
    raise TypeMismatch(value, "string")


@declare(
    "trim",
    _CATEGORY,
    Param("cutset", "string", default=None),
    examples=(
        Example("root.name = this.name.trim()", '{"name":"  Ada "}', '{"name":"Ada"}'),
        Example('root.word = this.word.trim("!?")', '{"word":"what?!"}', '{"word":"what"}'),
    ),
)
def trim(value: Any, cutset: str | None) -> Any:
    """The text without white space, or the given letters, at both ends."""
    letters = GO_WHITESPACE if cutset is None else cutset
    if type(value) is str:
        return value.strip(letters) if letters else value
    if type(value) is bytes:
        return (
            value.decode("utf-8", "surrogateescape")
            .strip(letters)
            .encode("utf-8", "surrogateescape")
        )
    raise TypeMismatch(value, "string")


def _declare_trim(
    name: str, param: str, summary: str, text: Any, raw: Any, example: Example
) -> Any:
    @declare(
        name,
        _CATEGORY,
        Param(param, "string"),
        examples=(example,),
        summary=summary,
    )
    def method(value: Any, part: str) -> Any:
        if type(value) is str:
            return text(value, part)
        if type(value) is bytes:
            return raw(value, part.encode("utf-8", "surrogateescape"))
        raise TypeMismatch(value, "string")

    return method


trim_prefix = _declare_trim(
    "trim_prefix",
    "prefix",
    "The text without a prefix.",
    str.removeprefix,
    bytes.removeprefix,
    Example('root.id = this.key.trim_prefix("user-")', '{"key":"user-7"}', '{"id":"7"}'),
)
trim_suffix = _declare_trim(
    "trim_suffix",
    "suffix",
    "The text without a suffix.",
    str.removesuffix,
    bytes.removesuffix,
    Example(
        'root.name = this.file.trim_suffix(".json")', '{"file":"orders.json"}', '{"name":"orders"}'
    ),
)


@declare(
    "split",
    _CATEGORY,
    Param("delimiter", "string"),
    Param("empty_as_null", "bool", default=False),
    examples=(
        Example(
            'root.parts = this.path.split("/")',
            '{"path":"data/2026/11"}',
            '{"parts":["data","2026","11"]}',
        ),
        Example(
            'root.parts = this.line.split(",", true)',
            '{"line":"Ada,,London"}',
            '{"parts":["Ada",null,"London"]}',
        ),
    ),
)
def split(value: Any, delimiter: str, empty_as_null: bool) -> list[Any]:
    """The parts of a text between delimiters."""
    parts: list[Any]
    if type(value) is str:
        parts = value.split(delimiter) if delimiter else list(value)
    elif type(value) is bytes:
        raw = delimiter.encode("utf-8", "surrogateescape")
        parts = value.split(raw) if raw else letter_case.split_letters(value)
    else:
        raise TypeMismatch(value, "string")
    return [part or None for part in parts] if empty_as_null else parts


@declare(
    "join",
    "Object & Array Manipulation",
    Param("delimiter", "string", default=None),
    examples=(
        Example('root.path = this.join("/")', '["data","2026","11"]', '{"path":"data/2026/11"}'),
    ),
)
def join(value: Any, delimiter: str | None) -> str:
    """The texts of an array in one, with a delimiter between them."""
    if type(value) is not list:
        raise TypeMismatch(value, "array")
    try:
        return (delimiter or "").join(value)
    except TypeError:
        parts = []
        for i, item in enumerate(value):
            if type(item) not in (str, bytes):
                mismatch = TypeMismatch(item, "string")
                raise QueryError(f"failed to join element {i}: {mismatch}") from None
            parts.append(text_of(item))
        return (delimiter or "").join(parts)


@declare(
    "repeat",
    _CATEGORY,
    Param("count", "integer"),
    examples=(Example('root.line = "=".repeat(5)', "{}", '{"line":"====="}'),),
    binds=True,
)
def repeat(count: int) -> Callable[[Any], Any]:
    """The text several times over."""
    if count < 0:
        raise ArgumentError(f"invalid count, must be greater than or equal to zero: {count}")

    def run(value: Any) -> Any:
        if type(value) not in (str, bytes):
            raise TypeMismatch(value, "string")
        if len(value) * count > current_limits().bytes:
            raise QueryError(f"invalid count, would overflow: {len(value)}*{count}")
        return value * count

    return run


def _declare_replace(name: str, deprecated: bool) -> Any:
    @declare(
        name,
        _CATEGORY,
        Param("old", "string"),
        Param("new", "string"),
        examples=(
            Example(f'root.id = this.id.{name}("-", "_")', '{"id":"a-7-b"}', '{"id":"a_7_b"}'),
        ),
        deprecated=deprecated,
        summary="The text with every occurrence of another replaced.",
    )
    def method(value: Any, old: str, new: str) -> Any:
        if type(value) is str:
            return value.replace(old, new)
        return _change_text(value, lambda text: text.replace(old, new))

    return method


replace_all = _declare_replace("replace_all", False)
replace = _declare_replace("replace", False)


def _declare_replace_many(name: str, deprecated: bool) -> Any:
    @declare(
        name,
        _CATEGORY,
        Param("values", "array"),
        examples=(
            Example(
                f'root.text = this.text.{name}(["&", "and", "%", "percent"])',
                '{"text":"tea & 5 % milk"}',
                '{"text":"tea and 5 percent milk"}',
            ),
        ),
        deprecated=deprecated,
        binds=True,
        summary="The text with several replacements made, one after the other.",
    )
    def method(values: list[Any]) -> Callable[[Any], Any]:
        if len(values) % 2:
            raise ArgumentError(
                "invalid arg, replacements should be in pairs and must therefore be even: "
                f"[{' '.join(map(str, values))}]"
            )
        for i, item in enumerate(values):
            if type(item) not in (str, bytes):
                mismatch = TypeMismatch(item, "string")
                raise ArgumentError(f"invalid replacement value at index {i}: {mismatch}")
        texts = [text_of(item) for item in values]
        pairs = list(zip(texts[::2], texts[1::2], strict=True))

        def replace_pairs(text: str) -> str:
            for old, new in pairs:
                text = text.replace(old, new)
            return text

        def run(value: Any) -> Any:
            return _change_text(value, replace_pairs)

        return run

    return method


replace_all_many = _declare_replace_many("replace_all_many", False)
replace_many = _declare_replace_many("replace_many", False)


# Go goes through characters here, and takes a byte that is none for U+FFFD.
_STRAY_BYTE: Final = re.compile("[\udc80-\udcff]")


@declare(
    "reverse",
    _CATEGORY,
    examples=(
        Example(
            "root.reversed = this.word.reverse()", '{"word":"stream"}', '{"reversed":"maerts"}'
        ),
    ),
)
def reverse(value: Any) -> Any:
    """The text backwards."""
    if type(value) is str:
        return _STRAY_BYTE.sub("\ufffd", value[::-1])
    if type(value) is bytes:
        return value[::-1]
    raise TypeMismatch(value, "string")


@declare(
    "format",
    _CATEGORY,
    examples=(
        Example(
            'root.text = "%s has %d new messages".format(this.name, this.count.int64())',
            '{"name":"Ada","count":3}',
            '{"text":"Ada has 3 new messages"}',
        ),
        Example(
            'root.price = "%.2f".format(this.price.float64())', '{"price":2.5}', '{"price":"2.50"}'
        ),
    ),
    variadic=True,
)
def format_(value: Any, *args: Any) -> str:
    """The text as a format of Go's printf, with the arguments filled in."""
    return sprintf(text_of(value), args)


@declare(
    "filepath_join",
    _CATEGORY,
    examples=(
        Example(
            "root.path = this.parts.filepath_join()",
            '{"parts":["/data/","2026","orders.csv"]}',
            '{"path":"/data/2026/orders.csv"}',
        ),
    ),
)
def filepath_join(value: Any) -> str:
    """The elements of an array joined to one path."""
    if type(value) is not list:
        raise TypeMismatch(value, "array")
    parts = []
    for i, item in enumerate(value):
        if type(item) not in (str, bytes):
            raise QueryError(f"path element {i}: {TypeMismatch(item, 'string')}")
        parts.append(text_of(item))
    joined = "/".join(part for part in parts if part)
    cleaned = posixpath.normpath(joined) if joined else ""
    return "/" + cleaned.lstrip("/") if cleaned.startswith("//") else cleaned


@declare(
    "filepath_split",
    _CATEGORY,
    examples=(
        Example(
            "root.file = this.path.filepath_split().index(1)",
            '{"path":"/data/2026/orders.csv"}',
            '{"file":"orders.csv"}',
        ),
    ),
)
def filepath_split(value: Any) -> list[str]:
    """A path's directory and file."""
    text = text_of(value)
    at = text.rfind("/") + 1
    return [text[:at], text[at:]]
