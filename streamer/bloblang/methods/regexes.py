"""Methods with regular expressions: Go's RE2 syntax and semantics, in linear time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.errors import ArgumentError, TypeMismatch
from streamer.bloblang.limits import MOST_GROUPS

_CATEGORY = "Regular Expressions"
_PATTERN = Param("pattern", "string")


def _compile(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options=options)
    except re2.error as e:
        reason = e.args[0].decode() if isinstance(e.args[0], bytes) else str(e.args[0])
        raise ArgumentError(f"error parsing regexp: {reason}: `{pattern}`") from None
    if compiled.groups > MOST_GROUPS:
        raise ArgumentError(
            f"error parsing regexp: {compiled.groups} groups, more than the {MOST_GROUPS} that are "
            f"allowed: `{pattern}`"
        )
    return compiled


def _text(value: Any) -> str:
    if type(value) is str:
        return value
    if type(value) is bytes:
        return value.decode("utf-8", "surrogateescape")
    raise TypeMismatch(value, "string")


def _names(compiled: Any) -> list[str]:
    names = {index: name for name, index in compiled.groupindex.items()}
    return [names.get(i, str(i)) for i in range(compiled.groups + 1)]


def _groups(match: Any) -> list[str]:
    return [match.group(0) or "", *(group or "" for group in match.groups())]


def _matches(compiled: Any, text: str) -> Any:
    """Go through all matches; an empty one right behind another does not count, as in Go."""
    end = -1
    for match in compiled.finditer(text):
        if match.start() == match.end() == end:
            continue
        end = match.end()
        yield match


@declare(
    "re_match",
    _CATEGORY,
    _PATTERN,
    examples=(Example('root = this.a.re_match("[0-9]")', '{"a":"x5"}', "true"),),
    binds=True,
)
def re_match(pattern: str) -> Callable[[Any], bool]:
    """Whether an expression matches anywhere in the text."""
    search = _compile(pattern).search
    return lambda value: search(_text(value)) is not None


@declare(
    "re_find_all",
    _CATEGORY,
    _PATTERN,
    examples=(Example('root = this.a.re_find_all("a.")', '{"a":"abac"}', '["ab","ac"]'),),
    binds=True,
)
def re_find_all(pattern: str) -> Callable[[Any], list[str]]:
    """All matches."""
    compiled = _compile(pattern)
    return lambda value: [m.group(0) for m in _matches(compiled, _text(value))]


@declare(
    "re_find_all_submatch",
    _CATEGORY,
    _PATTERN,
    examples=(Example('root = this.a.re_find_all_submatch("a(.)")', '{"a":"ab"}', '[["ab","b"]]'),),
    binds=True,
)
def re_find_all_submatch(pattern: str) -> Callable[[Any], list[list[str]]]:
    """All matches, each as an array of the match and its groups."""
    compiled = _compile(pattern)
    return lambda value: [_groups(match) for match in _matches(compiled, _text(value))]


@declare(
    "re_find_object",
    _CATEGORY,
    _PATTERN,
    examples=(
        Example('root = this.a.re_find_object("a(?P<x>.)")', '{"a":"ab"}', '{"0":"ab","x":"b"}'),
    ),
    binds=True,
)
def re_find_object(pattern: str) -> Callable[[Any], dict[str, str]]:
    """The first match as an object of its groups by name, or by number."""
    compiled = _compile(pattern)
    names = _names(compiled)

    def run(value: Any) -> dict[str, str]:
        match = compiled.search(_text(value))
        return {} if match is None else dict(zip(names, _groups(match), strict=True))

    return run


@declare(
    "re_find_all_object",
    _CATEGORY,
    _PATTERN,
    examples=(
        Example(
            'root = this.a.re_find_all_object("a(?P<x>.)")', '{"a":"ab"}', '[{"0":"ab","x":"b"}]'
        ),
    ),
    binds=True,
)
def re_find_all_object(pattern: str) -> Callable[[Any], list[dict[str, str]]]:
    """All matches, each as an object of its groups by name, or by number."""
    compiled = _compile(pattern)
    names = _names(compiled)
    return lambda value: [
        dict(zip(names, _groups(match), strict=True)) for match in _matches(compiled, _text(value))
    ]


_REFERENCE = re.compile(r"\$(?:\$|(\w+)|\{(\w+)\})")


def _replacer(compiled: Any, template: str) -> Callable[[Any], str]:
    """Return a function that fills a template of Go's `Expand` from a match."""
    names = {name: index for name, index in compiled.groupindex.items()}
    parts: list[str | int] = []
    end = 0
    for match in _REFERENCE.finditer(template):
        parts.append(template[end : match.start()])
        end = match.end()
        name = match[1] or match[2]
        if name is None:
            parts.append("$")
        elif name.isdecimal():
            parts.append(int(name) if int(name) <= compiled.groups else "")
        else:
            parts.append(names.get(name, ""))
    parts.append(template[end:])
    return lambda found: "".join([p if isinstance(p, str) else found.group(p) or "" for p in parts])


def _replacing(name: str, deprecated: bool) -> Any:
    @declare(
        name,
        _CATEGORY,
        _PATTERN,
        Param("value", "string"),
        examples=(Example(f'root = this.a.{name}("a(.)", "$1!")', '{"a":"ab"}', "b!"),),
        binds=True,
        deprecated=deprecated,
        summary="The text with all matches replaced; `$1` and `${name}` stand for groups.",
    )
    def method(pattern: str, template: str) -> Callable[[Any], str]:
        compiled = _compile(pattern)
        fill = _replacer(compiled, template)

        def run(value: Any) -> str:
            text = _text(value)
            parts = []
            end = 0
            for match in _matches(compiled, text):
                parts += [text[end : match.start()], fill(match)]
                end = match.end()
            return "".join([*parts, text[end:]]) if parts else text

        return run

    return method


re_replace_all = _replacing("re_replace_all", False)
re_replace = _replacing("re_replace", True)
