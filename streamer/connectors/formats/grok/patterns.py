"""Patterns by name, and how those that an expression refers to take their places in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Final

_REFERENCE: Final = re.compile(r"%\{([\w.-]+(?::[\w.-]+(?::[\w.-]+)?)?)\}", re.ASCII)
_SYMBOL: Final = re.compile(r"\W", re.ASCII)


class GrokError(ValueError):
    """An expression, or a pattern, that cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class ExpandedPattern:
    """An expression without references to patterns.

    Attributes:
        text: a regular expression, as RE2 reads it.
        names: what captures are called whose name in `text` is another (`a_b` for `a.b`).
        hints: the type of captures that are not texts, by their name in `text`.
    """

    text: str
    names: Mapping[str, str] = field(default_factory=dict)
    hints: Mapping[str, str] = field(default_factory=dict)


class PatternSet:
    """Patterns by name, each of them without references to others.

    Attributes:
        named_only: whether only references with a name of their own are captured by name.
    """

    def __init__(self, named_only: bool) -> None:
        """Begin with none."""
        self.named_only = named_only
        self._known: dict[str, ExpandedPattern] = {}

    def add(self, texts: Mapping[str, str]) -> None:
        """Take patterns that may refer to one another, and to those that are there.

        One whose name is taken already is left out, as in Benthos: a default pattern cannot be
        replaced.

        Raises:
            GrokError: one refers to a pattern that is not there, or to itself.
        """
        for name in texts:
            self._add(name, texts, ())

    def _add(self, name: str, texts: Mapping[str, str], within: tuple[str, ...]) -> None:
        if name in self._known:
            return
        if name in within:
            raise GrokError(f"the pattern %{{{name}}} refers to itself")
        for reference in _REFERENCE.findall(texts[name]):
            other = reference.split(":")[0]
            if other in texts:
                self._add(other, texts, (*within, name))
        self._known[name] = self.expand(texts[name])

    def expand(self, text: str) -> ExpandedPattern:
        """Put patterns in the place of references.

        Raises:
            GrokError: there is no such pattern.
        """
        hints: dict[str, str] = {}
        names: dict[str, str] = {}
        for reference in _REFERENCE.findall(text):
            pattern, *more = reference.split(":")
            called = more[0] if more else pattern
            safe = _SYMBOL.sub("_", called)
            if safe != called:
                names[safe] = called
            if len(more) == 2 and more[1] != "string":
                hints[safe] = more[1]
            if pattern not in self._known:
                raise GrokError(f"no pattern found for %{{{pattern}}}")
            known = self._known[pattern]
            for key, hint in known.hints.items():
                hints.setdefault(key, hint.lower())
            for key, name in known.names.items():
                names.setdefault(key, name)
            group = f"?P<{safe}>" if more or not self.named_only else ""
            text = text.replace(f"%{{{reference}}}", f"({group}{known.text})")
        return ExpandedPattern(text, names, hints)


def read_patterns(lines: Iterable[str]) -> dict[str, str]:
    """Read patterns, one a line: a name, a blank, a regular expression; `#` begins a comment.

    Raises:
        GrokError: a line has no blank.
    """
    patterns: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if not text or text.startswith("#"):
            continue
        name, blank, pattern = text.partition(" ")
        if not blank:
            raise GrokError(f"line {number} is {name!r}; expected a name, a blank and a pattern")
        patterns[name] = pattern
    return patterns


@cache
def default_patterns() -> Mapping[str, str]:
    """Return the patterns that every expression may use."""
    text = (
        files("streamer.connectors.formats.grok")
        .joinpath("default_patterns.txt")
        .read_text(encoding="utf-8")
    )
    return read_patterns(text.splitlines())
