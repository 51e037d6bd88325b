"""Expressions on texts: what they capture, each value under its name and of its type."""

from __future__ import annotations

import re
from typing import Any, Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.convert import parse_float
from streamer.connectors.formats.grok.patterns import ExpandedPattern, GrokError
from streamer.core.value import INT64_MAX, INT64_MIN, parse_bounded_int

# Classes and escapes are passed over: a bracket in them opens no group.
_PARTS: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|\(\?P?<(\w+)>", re.DOTALL)
_INTEGER: Final = re.compile(rb"[+-]?[0-9]+")
# Patterns of web servers' logs hold IPv6 addresses several times over.
_MAX_REGEX_MEMORY_BYTES: Final = 64 << 20


class GrokExpression:
    """A compiled expression."""

    def __init__(self, compiled: Any, groups: list[tuple[int, str, str]], keep_empty: bool) -> None:
        """Take the engine's expression and its groups: number, name, and type (or nothing)."""
        self._search = compiled.search
        self._groups = groups
        self._keep_empty = keep_empty

    def capture(self, text: bytes) -> dict[str, Any]:
        """Return what is captured by name; nothing when the expression does not match.

        It is nothing as well when a value is not of its type.
        """
        match = self._search(text)
        if match is None:
            return {}
        values: dict[str, Any] = {}
        for number, name, hint in self._groups:
            raw = match.group(number) or b""
            if not raw and not self._keep_empty:
                continue
            value = _convert_capture(raw, hint)
            if value is None:
                return {}
            values[name] = value
        return values


def _convert_capture(raw: bytes, hint: str) -> Any:
    if not hint:
        return raw.decode(errors="replace")
    if hint == "int":
        value = parse_bounded_int(raw) if _INTEGER.fullmatch(raw) else INT64_MAX + 1
        return value if INT64_MIN <= value <= INT64_MAX else None
    if hint == "float":
        try:
            return parse_float(raw.decode(errors="replace"))
        except QueryError:
            return None
    return None


def compile_expression(expression: ExpandedPattern, keep_empty: bool) -> GrokExpression:
    """Compile an expression.

    Args:
        expression: without references.
        keep_empty: whether values that are empty are captured too.

    Raises:
        GrokError: it is no regular expression.
    """
    import re2

    # RE2 takes no name twice, where Go does; so each group gets a name of its own.
    called: list[str] = []

    def rename_group(part: re.Match[str]) -> str:
        if part[1] is None:
            return part[0]
        called.append(part[1])
        return f"(?P<g{len(called) - 1}>"

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_REGEX_MEMORY_BYTES
    try:
        compiled = re2.compile(_PARTS.sub(rename_group, expression.text).encode(), options)
    except re2.error as e:
        text = e.args[0]
        raise GrokError(text.decode() if isinstance(text, bytes) else str(text)) from None
    numbers = compiled.groupindex
    return GrokExpression(
        compiled,
        [
            (
                numbers[f"g{index}".encode()],
                expression.names.get(name, name),
                expression.hints.get(name, ""),
            )
            for index, name in enumerate(called)
        ],
        keep_empty,
    )
