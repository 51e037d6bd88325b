"""Values cut for those who look: a page that shows one of a megabyte stands still for seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from streamer.core.json.dump import dump_json
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import Parameter

CUT_FIELD: Final = "cut"
CUT_PARAMETER: Final = Parameter(
    CUT_FIELD,
    "The largest number of characters of a value; longer ones are cut, and `cut` is true.",
    s.INTEGER,
)

_MAX_FIELDS: Final = 100


def truncate_result(result: Mapping[str, Any], max_characters: int) -> dict[str, Any]:
    """Return a result whose values have at most so many characters.

    What is cut is a text, whatever it was; `cut` has the length of each such value's text.
    """
    return _truncate_fields(result, ("key", "content", "metadata", "error"), max_characters)


def truncate_line(line: Mapping[str, Any], max_characters: int) -> dict[str, Any]:
    """Return a line of a log whose text, and whose fields' names and values, are cut likewise."""
    fields: Mapping[str, Any] = line["fields"]
    cut = _truncate_fields(line, ("msg",), max_characters)
    short_fields: dict[str, Any] = {}
    lengths: dict[str, int] = cut.pop(CUT_FIELD, {})
    for name in list(fields)[:_MAX_FIELDS]:
        value, length = _truncate(fields[name], max_characters)
        short_fields[name[:max_characters]] = value
        if length or len(name) > max_characters:
            lengths[f"fields.{name[:max_characters]}"] = length or len(name)
    if len(fields) > _MAX_FIELDS:
        lengths["fields"] = len(fields)
    return {**cut, "fields": short_fields, **({CUT_FIELD: lengths} if lengths else {})}


def _truncate_fields(
    item: Mapping[str, Any], names: Iterable[str], max_characters: int
) -> dict[str, Any]:
    result = dict(item)
    lengths = {}
    for name in names:
        short_value, length = _truncate(result.get(name), max_characters)
        if length:
            result[name], lengths[name] = short_value, length
    return {**result, **({CUT_FIELD: lengths} if lengths else {})}


def _truncate(value: Any, max_characters: int) -> tuple[Any, int]:
    """Return a value, or the beginning of its text and the text's length; 0 when it is whole."""
    if value is None or isinstance(value, bool | int | float):
        return value, 0
    text = value if isinstance(value, str) else dump_json(value).decode(errors="replace")
    return (value, 0) if len(text) <= max_characters else (text[:max_characters], len(text))
