"""Methods with regular expressions: Go's RE2 syntax and semantics, in linear time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.runtime.regex import Matcher, searchable_text
from streamer.core.value import parse_bounded_int

_CATEGORY = "Regular Expressions"
_PATTERN = Param("pattern", "string")


@declare(
    "re_match",
    _CATEGORY,
    _PATTERN,
    examples=(
        Example(
            'root.has_digits = this.plate.re_match("[0-9]")',
            '{"plate":"AB62 DEF"}',
            '{"has_digits":true}',
        ),
    ),
    binds=True,
)
def re_match(pattern: str) -> Callable[[Any], bool]:
    """True if an expression matches anywhere in the text."""
    return Matcher(pattern).make_tester()


@declare(
    "re_find_all",
    _CATEGORY,
    _PATTERN,
    examples=(
        Example(
            'root.numbers = this.text.re_find_all("[0-9]+")',
            '{"text":"7 cars, 12 bikes"}',
            '{"numbers":["7","12"]}',
        ),
    ),
    binds=True,
)
def re_find_all(pattern: str) -> Callable[[Any], list[str]]:
    """All matches."""
    matcher = Matcher(pattern)
    return lambda value: [groups[0] for groups in matcher.find_all(searchable_text(value))]


@declare(
    "re_find_all_submatch",
    _CATEGORY,
    _PATTERN,
    examples=(
        Example(
            'root = this.text.re_find_all_submatch("([0-9]+) ([a-z]+)")',
            '{"text":"7 cars, 12 bikes"}',
            '[["7 cars","7","cars"],["12 bikes","12","bikes"]]',
        ),
    ),
    binds=True,
)
def re_find_all_submatch(pattern: str) -> Callable[[Any], list[list[str]]]:
    """All matches, each as an array of the match and its groups."""
    matcher = Matcher(pattern)
    return lambda value: [list(groups) for groups in matcher.find_all(searchable_text(value))]


@declare(
    "re_find_object",
    _CATEGORY,
    _PATTERN,
    examples=(
        Example(
            'root = this.line.re_find_object("(?P<method>[A-Z]+) (?P<path>[^ ]+)")',
            '{"line":"GET /items/42"}',
            '{"0":"GET /items/42","method":"GET","path":"/items/42"}',
        ),
    ),
    binds=True,
)
def re_find_object(pattern: str) -> Callable[[Any], dict[str, Any]]:
    """The first match as an object of its groups by name, or by number."""
    return Matcher(pattern).make_namer()


@declare(
    "re_find_all_object",
    _CATEGORY,
    _PATTERN,
    examples=(
        Example(
            'root = this.text.re_find_all_object("(?P<n>[0-9]+) (?P<what>[a-z]+)")',
            '{"text":"7 cars, 12 bikes"}',
            '[{"0":"7 cars","n":"7","what":"cars"},{"0":"12 bikes","n":"12","what":"bikes"}]',
        ),
    ),
    binds=True,
)
def re_find_all_object(pattern: str) -> Callable[[Any], list[dict[str, Any]]]:
    """All matches, each as an object of its groups by name, or by number."""
    matcher = Matcher(pattern)
    by_name = matcher.by_name
    return lambda value: [
        by_name(groups, value) for groups in matcher.find_all(searchable_text(value))
    ]


_REFERENCE = re.compile(r"\$(?:\$|(\w+)|\{(\w+)\})")


def _make_replacer(matcher: Matcher, template: str) -> Callable[[tuple[str, ...]], str]:
    """Return a function that fills a template of Go's `Expand` from a match's groups."""
    parts: list[str | int] = []
    end = 0
    for match in _REFERENCE.finditer(template):
        parts.append(template[end : match.start()])
        end = match.end()
        name = match[1] or match[2]
        if name is None:
            parts.append("$")
        elif name.isdecimal():
            number = parse_bounded_int(name)
            parts.append(number if number < len(matcher.names) else "")
        else:
            parts.append(matcher.indices.get(name, ""))
    parts.append(template[end:])
    return lambda groups: "".join([p if isinstance(p, str) else groups[p] for p in parts])


def _declare_replace(name: str, deprecated: bool) -> Any:
    @declare(
        name,
        _CATEGORY,
        _PATTERN,
        Param("value", "string"),
        examples=(
            Example(
                f'root.name = this.name.{name}("(.*), (.*)", "$2 $1")',
                '{"name":"Lovelace, Ada"}',
                '{"name":"Ada Lovelace"}',
            ),
        ),
        binds=True,
        deprecated=deprecated,
        summary="The text with all matches replaced; `$1` and `${name}` stand for groups.",
    )
    def method(pattern: str, template: str) -> Callable[[Any], str]:
        matcher = Matcher(pattern)
        fill = _make_replacer(matcher, template)

        def run(value: Any) -> str:
            text = searchable_text(value)
            parts = []
            end = 0
            for start, stop, groups in matcher.find_places(text):
                parts += [text[end:start], fill(groups)]
                end = stop
            return "".join([*parts, text[end:]]) if parts else text

        return run

    return method


re_replace_all = _declare_replace("re_replace_all", False)
re_replace = _declare_replace("re_replace", False)
