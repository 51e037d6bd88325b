"""Values as YAML that people read: in the order that is given, with comments, texts in blocks."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

_LINE_WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """A field of a `Block`.

    Attributes:
        name: the key.
        value: a scalar, a list, a dict or a `Block`.
        comment: what stands above it, in one line or several.
        remark: what stands behind it, when the value is on the same line.
        is_commented_out: the field is there as a comment only.
    """

    name: str
    value: Any
    comment: str = ""
    remark: str = ""
    is_commented_out: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """An object whose fields may have comments."""

    entries: tuple[Entry, ...]


def format_yaml(value: Any) -> str:
    """Return a value as YAML, ending with a line end."""
    return "\n".join(_format_lines(value, 0)) + "\n"


def _format_lines(value: Any, depth: int) -> Iterator[str]:
    """Return the lines of a block; those of the value of a field begin below its name."""
    pad = "  " * depth
    if isinstance(value, dict):
        value = Block(tuple(Entry(str(name), item) for name, item in value.items()))
    if isinstance(value, Block) and value.entries:
        for entry in value.entries:
            yield from _format_entry(entry, depth)
    elif isinstance(value, list | tuple) and value:
        for item in value:
            yield from _format_item(item, depth)
    else:
        yield f"{pad}{_format_scalar(value)}"


def _format_entry(entry: Entry, depth: int) -> Iterator[str]:
    pad = "  " * depth
    for line in textwrap.wrap(entry.comment, _LINE_WIDTH - len(pad) - 2):
        yield f"{pad}# {line}"
    remark = f" # {entry.remark}" if entry.remark else ""
    mark = "# " if entry.is_commented_out else ""
    for number, line in enumerate(_format_field(entry, depth, remark)):
        yield f"{pad}{mark}{line[len(pad) :]}" if entry.is_commented_out or not number else line


def _format_field(entry: Entry, depth: int, remark: str) -> Iterator[str]:
    """Return a field's lines, all of them indented to the depth of its name."""
    pad = "  " * depth
    name = _format_scalar(entry.name)
    value = entry.value
    if isinstance(value, Block | dict | list | tuple) and not _is_empty(value):
        yield f"{pad}{name}:{remark}"
        yield from _format_lines(value, depth + 1)
    elif isinstance(value, str) and _is_literal(value):
        yield f"{pad}{name}: {'|' if value.endswith(chr(10)) else '|-'}{remark}"
        yield from (
            f"{pad}  {line}" if line else "" for line in value.split("\n")[: _count_rows(value)]
        )
    else:
        yield f"{pad}{name}: {_format_scalar(value)}{remark}"


def _format_item(item: Any, depth: int) -> Iterator[str]:
    pad = "  " * depth
    if isinstance(item, str) and _is_literal(item):
        yield f"{pad}- {'|' if item.endswith(chr(10)) else '|-'}"
        yield from (
            f"{pad}  {line}" if line else "" for line in item.split("\n")[: _count_rows(item)]
        )
        return
    if _is_empty(item) or not isinstance(item, Block | dict | list | tuple):
        yield f"{pad}- {_format_scalar(item)}"
        return
    first = True
    for line in _format_lines(item, depth + 1):
        text = line[len(pad) + 2 :]
        if first and text.startswith("# "):
            yield f"{pad}{text}"  # the comment of an item stands above its dash
        else:
            yield f"{pad}- {text}" if first else line
            first = False


def _is_empty(value: Any) -> bool:
    return isinstance(value, Block | dict | list | tuple) and not (
        value.entries if isinstance(value, Block) else value
    )


def _is_literal(text: str) -> bool:
    """Return whether a text may stand in a literal block, which YAML gives back as it is."""
    lines = text.split("\n")
    return (
        len(lines) > 1
        and bool(lines[0].strip())
        and not lines[0].startswith((" ", "\t"))
        and not text.endswith("\n\n")
        and all(line.isprintable() or "\t" in line for line in lines)
        and not any(line.isspace() or "\r" in line for line in lines)
    )


def _count_rows(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _has_line_breaks(text: str) -> bool:
    return text.splitlines() != [text]


def _format_scalar(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[]"
    if isinstance(value, Block | dict):
        return "{}"
    if isinstance(value, str) and value == "":
        return '""'
    # A text that would go over several lines is quoted with its line ends escaped.
    style = '"' if isinstance(value, str) and _has_line_breaks(value) else None
    text: str = yaml.safe_dump(
        value,
        width=float("inf"),
        allow_unicode=True,
        default_flow_style=True,
        default_style=style,
    )
    return text.removesuffix("\n").removesuffix("\n...")
