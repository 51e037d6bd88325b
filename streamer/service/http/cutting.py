"""Values cut for those who look: a page that shows one of a megabyte stands still for seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from streamer.service.http import schemas as s
from streamer.service.http.endpoint import Parameter
from streamer.value import dump_json

CUT: Final = "cut"
PARAMETER: Final = Parameter(
    CUT, "The most characters of a value; what is longer is cut, and `cut` says so.", s.INTEGER
)

_MOST_FIELDS: Final = 100


def cut_result(result: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return a result whose values have at most so many characters.

    What is cut is a text, whatever it was; `cut` has the length of each such value's text.
    """
    return _cut(result, ("key", "content", "metadata", "error"), most)


def cut_line(line: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return a line of a log whose text, and whose fields' names and values, are cut likewise."""
    fields: Mapping[str, Any] = line["fields"]
    cut = _cut(line, ("msg",), most)
    kept: dict[str, Any] = {}
    lengths: dict[str, int] = cut.pop(CUT, {})
    for name in list(fields)[:_MOST_FIELDS]:
        value, length = _short(fields[name], most)
        kept[name[:most]] = value
        if length or len(name) > most:
            lengths[f"fields.{name[:most]}"] = length or len(name)
    if len(fields) > _MOST_FIELDS:
        lengths["fields"] = len(fields)
    return {**cut, "fields": kept, **({CUT: lengths} if lengths else {})}


def _cut(item: Mapping[str, Any], names: Iterable[str], most: int) -> dict[str, Any]:
    made = dict(item)
    lengths = {}
    for name in names:
        made_value, length = _short(made.get(name), most)
        if length:
            made[name], lengths[name] = made_value, length
    return {**made, **({CUT: lengths} if lengths else {})}


def _short(value: Any, most: int) -> tuple[Any, int]:
    """Return a value, or the beginning of its text and the text's length; 0 when it is whole."""
    if value is None or isinstance(value, bool | int | float):
        return value, 0
    text = value if isinstance(value, str) else dump_json(value).decode(errors="replace")
    return (value, 0) if len(text) <= most else (text[:most], len(text))
