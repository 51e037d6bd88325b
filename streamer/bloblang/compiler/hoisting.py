"""Functions within the generated one are put beside it.

One that needs nothing of what is around it then is made once, instead of for every message. And
Python's own compiler looks, for each function within another, at all variables of the outer one:
with thousands of both that takes most of the time, so then all are put outside, and are given what
they need.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from streamer.bloblang.compiler.code import Code

# What a function's own variables and parameters are called; and texts, which may look like that.
_VARIABLE: Final = re.compile(
    r"""(?<![.\w])(?:(?P<hint>[a-z]+)(?P<number>\d+)|root|meta|doc|[A-Z])(?!\w)"""
    r"""|(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
)
_SEPARATELY_NUMBERED_HINTS: Final = frozenset(("var", "map"))
_MAX_LOCAL_QUERIES: Final = 128


def hoist(code: Code, begin: int, name: str) -> str:
    """Put the function that was just emitted outside, if that is of use.

    Args:
        code: the source.
        begin: how many lines there were before the function.
        name: its name, which was made before all names that are its own.

    Returns:
        Python for the function with what it needs bound to it.
    """
    if not code.options.inline:
        return name
    code.queries += 1
    lines = code.lines[begin:]
    needed = _find_free_variables(lines, int(name[1:]))
    if needed and code.queries <= _MAX_LOCAL_QUERIES:
        return name
    depth = len(lines[0]) - len(lines[0].lstrip())
    parameters = "".join(f"{variable}, " for variable in needed)
    lines[0] = lines[0].replace("(", f"({parameters}", 1)
    sites = [code.sites[begin + 1 + at] for at in range(len(lines))]
    code.hoisted_lines += zip((line[depth:] for line in lines), sites, strict=True)
    del code.lines[begin:]
    if not needed:
        return name
    return code.store(
        f"{code.add_constant(partial, 'partial')}({name}, {parameters.rstrip(', ')})"
    ).code


def _find_free_variables(lines: list[str], first: int) -> list[str]:
    """Return the variables of what is around a function that its lines name."""
    names = {}
    for line in lines:
        for match in _VARIABLE.finditer(line):
            hint = match["hint"]
            is_own = (
                hint and hint not in _SEPARATELY_NUMBERED_HINTS and int(match["number"]) >= first
            )
            # Maps are functions of the module.
            if not is_own and hint != "map" and match["text"] is None:
                names[match[0]] = True
    return list(names)
