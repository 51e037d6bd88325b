"""Regular expressions matched: by RE2, or by Python's engine where that is as good and faster."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final

from streamer.bloblang.errors import ArgumentError, TypeMismatch
from streamer.bloblang.limits import MAX_REGEX_GROUPS
from streamer.bloblang.runtime.python_regex import translate_to_python
from streamer.bloblang.runtime.regex_errors import find_unsupported, to_go_reason

# Up to here Python's engine is asked: it tries an expression at every place of the text.
_MAX_PYTHON_CHARS: Final = 1_000
_MAX_PYTHON_ANCHORED_CHARS: Final = 65_536


def _compile_re2(pattern: str) -> Any:
    import re2

    fault = find_unsupported(pattern)
    if fault:
        raise ArgumentError(f"error parsing regexp: {fault}")
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options=options)
    except re2.error as e:
        reason = e.args[0].decode() if isinstance(e.args[0], bytes) else str(e.args[0])
        raise ArgumentError(f"error parsing regexp: {to_go_reason(reason, pattern)}") from None
    except UnicodeEncodeError:
        raise ArgumentError(f"error parsing regexp: invalid UTF-8: `{pattern}`") from None
    if compiled.groups > MAX_REGEX_GROUPS:
        raise ArgumentError(
            f"error parsing regexp: {compiled.groups} groups, more than the "
            f"{MAX_REGEX_GROUPS} that are allowed: `{pattern}`"
        )
    return compiled


@cache
def compile_re2(pattern: str) -> Any:
    """Return RE2's own form of an expression of Go's syntax, for who searches bytes.

    Raises:
        ArgumentError: it is none, or has too many groups.
    """
    return _compile_re2(pattern)


_STRAY_BYTE: Final = re.compile("[\\udc80-\\udcff]")


def _decode_group(raw: bytes | None) -> str:
    return raw.decode("utf-8", "surrogateescape") if raw else ""


def searchable_text(value: Any) -> str:
    """Return what is searched of a value: a text itself, and what bytes would be as one.

    Raises:
        TypeMismatch: it is neither.
    """
    if type(value) is str:
        return value
    if type(value) is bytes:
        return value.decode("utf-8", "surrogateescape")
    raise TypeMismatch(value, "string")


def _make_namer(names: list[str]) -> Callable[[tuple[str, ...]], dict[str, str]]:
    """Return a function that puts groups under names; written out, it takes half the time."""
    entries = ", ".join(f"{name!r}: groups[{at}]" for at, name in enumerate(names))
    namer: Callable[[tuple[str, ...]], dict[str, str]] = eval(
        f"lambda groups: {{{entries}}}", {"__builtins__": {}}
    )
    return namer


class Matcher:
    """A regular expression.

    Attributes:
        names: what its groups are called; number 0 is the whole match.
        indices: the numbers of the groups that have a name.
    """

    def __init__(self, pattern: str) -> None:
        """Compile an expression of Go's syntax.

        Raises:
            ArgumentError: it is none, or has too many groups.
        """
        self._re2 = _compile_re2(pattern)
        self.indices: dict[str, int] = dict(self._re2.groupindex)
        by_index = {index: name for name, index in self.indices.items()}
        self.names = [by_index.get(i, str(i)) for i in range(self._re2.groups + 1)]
        python = translate_to_python(pattern)
        self._python = python
        self._anchored = pattern.startswith("^")
        self._max_python_chars = (
            -1
            if python is None
            else _MAX_PYTHON_ANCHORED_CHARS
            if self._anchored
            else _MAX_PYTHON_CHARS
        )
        self._python_search = (
            None if python is None else python.match if self._anchored else python.search
        )

    def make_tester(self) -> Callable[[Any], bool]:
        """Return a function that says whether there is a match in a text, or in bytes."""
        search, short, slow = self._python_search, self._max_python_chars, self._re2.search

        def test(value: Any) -> bool:
            if search and type(value) is str and len(value) <= short and value.isascii():
                return search(value) is not None
            return slow(searchable_text(value).encode("utf-8", "surrogateescape")) is not None

        return test

    def make_namer(self) -> Callable[[Any], dict[str, Any]]:
        """Return a function that gives the first match and its groups by their names.

        It returns an empty object when there is no match, and bytes for bytes.
        """
        search, short, named, first = (
            self._python_search,
            self._max_python_chars,
            _make_namer(self.names),
            self.find_first,
        )

        def name(value: Any) -> dict[str, Any]:
            if search and type(value) is str and len(value) <= short and value.isascii():
                match = search(value)
                return named(match.groups()) if match else {}
            groups = first(searchable_text(value))
            return {} if groups is None else self.by_name(groups, value)

        return name

    def by_name(self, groups: tuple[str, ...], value: Any) -> dict[str, Any]:
        """Return a match's groups by name: bytes when the value is bytes."""
        if type(value) is bytes:
            raw = [group.encode("utf-8", "surrogateescape") for group in groups]
            return dict(zip(self.names, raw, strict=True))
        return dict(zip(self.names, groups, strict=True))

    def find_first(self, text: str) -> tuple[str, ...] | None:
        """Return the first match and its groups; a group that took no part is empty."""
        if (
            self._python_search is not None
            and len(text) <= self._max_python_chars
            and text.isascii()
        ):
            result = self._python_search(text)
            return result and result.groups()
        match = self._re2.search(text.encode("utf-8", "surrogateescape"))
        if match is None:
            return None
        return (_decode_group(match.group(0)), *map(_decode_group, match.groups()))

    def find_all(self, text: str) -> list[tuple[str, ...]]:
        """Return all matches as `first` does."""
        return [groups for _, _, groups in self.find_places(text)]

    def find_places(self, text: str) -> Iterable[tuple[int, int, tuple[str, ...]]]:
        """Go through all matches: begin and end in the text, the match and its groups."""
        if self._python is not None and len(text) <= self._max_python_chars and text.isascii():
            if self._anchored:
                match = self._python.match(text)
                return [(*match.span(), match.groups())] if match else []
            return [(*m.span(), m.groups()) for m in self._python.finditer(text)]
        return self._find_places_re2(text)

    def _find_places_re2(self, text: str) -> Iterable[tuple[int, int, tuple[str, ...]]]:
        # Places in bytes are places in the text when that is ASCII, and RE2's binding need not
        # translate them, which takes longer than the search.
        # A stray byte is matched as U+FFFD, as in Go.
        subject = text.encode() if text.isascii() else _STRAY_BYTE.sub("\ufffd", text)
        end = -1
        for match in self._re2.finditer(subject):
            # An empty match right behind another one does not count, as in Go.
            if match.start() == match.end() == end:
                continue
            end = match.end()
            if type(subject) is bytes:
                groups = (match.group(0), *match.groups())
                yield match.start(), end, tuple(map(_decode_group, groups))
            else:
                spans = map(match.span, range(len(self.names)))
                yield match.start(), end, tuple(text[max(a, 0) : max(b, 0)] for a, b in spans)
