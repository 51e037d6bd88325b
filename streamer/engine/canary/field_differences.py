"""Differences of two emissions of a window, field by field."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from streamer.engine.canary.emissions import ResultRow, WindowEmission

MAX_VALUE_CHARS: Final = 200
"""Characters of a value that are shown."""

_MAX_DEPTH: Final = 100
_CONTENT: Final = "content"
_METADATA: Final = "@"
_ERROR: Final = "error"
_ROWS: Final = "rows"
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field that two revisions make differently.

    Attributes:
        path: its path in the document, by dots; `@name` for metadata, `content` for a message
            that is no JSON or another text of the same value, `error` for a processor's error,
            `rows` for the number of messages.
        old: the value of the running revision as JSON, cut; None where it has none.
        new: that of the canary.
        row: the place of the message in the window's batch, from 0.
    """

    path: str
    old: str | None
    new: str | None
    row: int = 0


@dataclass(frozen=True, slots=True)
class ComparisonRules:
    """Rules of a comparison.

    Attributes:
        ignored: paths of fields that do not matter, with all below them; `*` stands for any part.
        metadata: the metadata that are compared; None for all.
    """

    ignored: tuple[str, ...] = ()
    metadata: Collection[str] | None = None

    def ignores(self, path: str) -> bool:
        """Return whether a field does not matter."""
        return any(
            fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}.*")
            for pattern in self.ignored
        )


ALL_FIELDS: Final = ComparisonRules()


def compare_emissions(
    old: WindowEmission, new: WindowEmission, rules: ComparisonRules = ALL_FIELDS
) -> list[FieldDifference]:
    """Return the fields in which two emissions of a window differ.

    Args:
        old: of the running revision.
        new: of the canary.
        rules: what matters.
    """
    if old == new:
        return []
    differences = []
    if len(old) != len(new) and not rules.ignores(_ROWS):
        differences.append(FieldDifference(_ROWS, str(len(old)), str(len(new))))
    for number, (before, after) in enumerate(zip(old, new, strict=False)):
        if before != after:
            differences += [
                FieldDifference(path, _show(was), _show(now), number)
                for path, was, now in _compare_rows(before, after, rules)
                if not rules.ignores(path)
            ]
    return differences


_Pairs = Iterator[tuple[str, Any, Any]]


def _compare_rows(old: ResultRow, new: ResultRow, rules: ComparisonRules) -> _Pairs:
    if old.content != new.content:
        yield from _compare_contents(old.content, new.content)
    if old.metadata != new.metadata:
        yield from _compare_metadata(old.metadata, new.metadata, rules)
    if old.error != new.error:
        yield _ERROR, _or_absent(old.error), _or_absent(new.error)


def _compare_contents(old: bytes, new: bytes) -> _Pairs:
    try:
        documents = json.loads(old), json.loads(new)
    except (ValueError, RecursionError):
        yield _CONTENT, old.decode(errors="replace"), new.decode(errors="replace")
        return
    differences = list(_compare_values("", *documents))
    if differences:
        yield from differences
    else:  # the same value, in another text
        yield _CONTENT, old.decode(errors="replace"), new.decode(errors="replace")


def _compare_metadata(old: str | None, new: str | None, rules: ComparisonRules) -> _Pairs:
    before, after = (json.loads(text) if text else {} for text in (old, new))
    for name in sorted(before.keys() | after.keys()):
        if rules.metadata is not None and name not in rules.metadata:
            continue
        was, now = before.get(name, _ABSENT), after.get(name, _ABSENT)
        if was is _ABSENT or now is _ABSENT or not _is_same(was, now):
            yield f"{_METADATA}{name}", was, now


def _compare_values(path: str, old: Any, new: Any, depth: int = 0) -> _Pairs:
    if isinstance(old, Mapping) and isinstance(new, Mapping) and depth < _MAX_DEPTH:
        names = [*old, *(name for name in new if name not in old)]
        for name in names:
            place = f"{path}.{name}" if path else str(name)
            yield from _compare_items(place, old.get(name, _ABSENT), new.get(name, _ABSENT), depth)
    elif isinstance(old, list) and isinstance(new, list) and depth < _MAX_DEPTH:
        for number in range(max(len(old), len(new))):
            place = f"{path}.{number}" if path else str(number)
            yield from _compare_items(place, _item(old, number), _item(new, number), depth)
    elif not _is_same(old, new):
        yield path or _CONTENT, old, new


def _compare_items(path: str, old: Any, new: Any, depth: int) -> _Pairs:
    if old is _ABSENT or new is _ABSENT:
        yield path, old, new
    else:
        yield from _compare_values(path, old, new, depth + 1)


def _item(values: Sequence[Any], number: int) -> Any:
    return values[number] if number < len(values) else _ABSENT


def _is_same(old: Any, new: Any) -> bool:
    """Return whether two values are the same, of the same type too: 1, 1.0 and true are not."""
    return json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)


def _or_absent(value: Any) -> Any:
    return _ABSENT if value is None else value


def _show(value: Any) -> str | None:
    if value is _ABSENT:
        return None
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 1] + "…"
