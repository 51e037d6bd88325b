"""A value written as XML, by the conventions of Go's mxj: see xmltree.py.

Texts are written as they are, without escapes, as Connect does.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.operations import NUMBER_TYPES
from streamer.bloblang.golib.text import go_text, go_type
from streamer.core.timestamps import Timestamp
from streamer.core.value import format_json_float

_TEXT: Final = "#text"
_ROOT: Final = "doc"


def _format_value(value: Any) -> str:
    # A number of a document keeps the spelling that it came with.
    return format_json_float(value) if type(value) is float and isfinite(value) else go_text(value)


def _format_attribute(key: str, value: Any) -> str:
    kind = type(value)
    if kind is str:
        text = value
    elif kind is bytes:
        text = value.decode(errors="replace")
    elif kind in NUMBER_TYPES or kind is bool:
        text = _format_value(value)
    else:
        raise QueryError(f"invalid attribute value for: {key}:<{go_type(value)}>")
    return f' {key[1:]}="{text}"'


def _is_attribute(key: str) -> bool:
    return len(key) > 1 and key[0] == "-"


def _format_content(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind is bytes:
        return value.decode(errors="replace")  # type: ignore[no-any-return]
    if kind is Timestamp:
        return f"<Time>{value}</Time>"
    return "" if value is None else _format_value(value)


class _Writer:
    """Writes elements.

    Attributes:
        out: the pieces written.
        indent: what stands for one level, or None to write all in one line.
    """

    def __init__(self, indent: str | None) -> None:
        self.out: list[str] = []
        self.indent = indent

    def write_element(self, name: str, value: Any, depth: int) -> None:
        """Write an element, or several when the value is an array."""
        if type(value) is list:
            self._write_array(name, value, depth)
            return
        padding = self._padding(depth)
        if type(value) is dict:
            self._write_object(name, value, padding, depth)
        else:
            text = _format_content(value)
            self.out.append(f"{padding}<{name}>{text}</{name}>" if text else f"{padding}<{name}/>")
        self._end_line()

    def _padding(self, depth: int) -> str:
        return "" if self.indent is None else self.indent * depth

    def _end_line(self) -> None:
        if self.indent is not None:
            self.out.append("\n")

    def _write_array(self, name: str, values: list[Any], depth: int) -> None:
        if not values:
            # Where mxj puts the white space of an empty array is of no use, but harmless.
            self.out.append(f"{self._padding(depth)}<{name}{self._padding(depth - 1)}/>")
            if depth > 1:
                self._end_line()
        for value in values:
            self.write_element(name, value, depth + 1 if type(value) is list else depth)

    def _write_object(self, name: str, value: dict[str, Any], padding: str, depth: int) -> None:
        keys = sorted(value)
        attributes = "".join(_format_attribute(k, value[k]) for k in keys if _is_attribute(k))
        elements = [k for k in keys if not _is_attribute(k)]
        if not elements:
            self.out.append(f"{padding}<{name}{attributes}/>")
            return
        text = _format_value(_decode_bytes(value[_TEXT])) if _TEXT in value else ""
        self.out.append(f"{padding}<{name}{attributes}>{text}")
        if elements == [_TEXT]:
            self.out.append(f"</{name}>")
            return
        self._end_line()
        for key in elements:
            if key != _TEXT:
                self.write_element(key, value[key], depth + 1)
        self.out.append(f"{padding}</{name}>")


def _decode_bytes(value: Any) -> Any:
    return value.decode(errors="replace") if type(value) is bytes else value


def _pick_root(document: dict[str, Any], root_tag: str | None, indented: bool) -> tuple[str, Any]:
    if len(document) != 1 or root_tag is not None:
        return root_tag if root_tag is not None else _ROOT, document
    ((name, value),) = document.items()
    if type(value) is list and (indented or any(type(item) is not dict for item in value)):
        return _ROOT, document
    return name, value


def write_document(document: dict[str, Any], indent: str | None, root_tag: str | None) -> bytes:
    """Return an object as XML.

    Args:
        document: the object; its only key is the root element, unless it holds an array.
        indent: what stands for one level, or None to write all in one line.
        root_tag: the name of an element around all of it.

    Raises:
        QueryError: an attribute's value is neither text, number nor boolean.
    """
    name, value = _pick_root(document, root_tag, indent is not None)
    writer = _Writer(indent)
    writer.write_element(name, value, 0)
    text = "".join(writer.out)
    return text.removesuffix("\n").encode(errors="replace")
