"""Generated source made readable: the mapping's lines as comments, constants with their values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from streamer.bloblang.compiler.error_sites import Site

_INDENT: Final = 4
_MAX_VALUE_CHARS: Final = 80
# A constant's name is a hint and its number; nothing else in generated code looks like that.
_CONSTANT: Final = re.compile(r"\b[A-Za-z]\w*_\d+\b")


def format_listing(
    source: str, sites: Mapping[int, Site], constants: Mapping[str, Any], mapping: str
) -> str:
    """Return generated source for a person to read; it is still Python.

    Args:
        source: what was compiled.
        sites: what its lines stand for, by 1-based line number.
        constants: the objects that it refers to by name.
        mapping: the text it was made from.
    """
    statements = _statement_texts(sites, mapping)
    output: list[str] = []
    current = 0
    for number, line in enumerate(source.splitlines(), 1):
        body = line.lstrip(" ")
        indent = " " * (_INDENT * (len(line) - len(body)))
        site = sites.get(number)
        if site is not None and site.line != current and indent:
            current = site.line
            output += [f"{indent}# {text}" for text in statements[current]]
        output.append(indent + body)
    used = sorted(set(_CONSTANT.findall(source)) & constants.keys(), key=_constant_number)
    output += ["", "# Constants"] if used else []
    output += [f"# {name} = {_describe_value(constants[name])}" for name in used]
    return "\n".join(output) + "\n"


def _statement_texts(sites: Mapping[int, Site], mapping: str) -> dict[int, list[str]]:
    """Return the text of each statement, by the line it begins on, without what lies between."""
    lines = mapping.split("\n")
    starts = sorted({site.line for site in sites.values()})
    ends = [*(start - 1 for start in starts[1:]), len(lines)]
    statements = {}
    for start, end in zip(starts, ends, strict=True):
        while end > start and (not (last := lines[end - 1].strip()) or last[0] == "#"):
            end -= 1
        statements[start] = [f"{n}: {lines[n - 1]}" for n in range(start, end + 1)]
    return statements


def _constant_number(name: str) -> int:
    return int(name.rpartition("_")[2])


def _describe_value(value: Any) -> str:
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    text = repr(value)
    return text if len(text) <= _MAX_VALUE_CHARS else text[: _MAX_VALUE_CHARS - 1] + "…"
