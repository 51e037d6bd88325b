"""Lines of a log as the API gives them: of a stream, and of the service itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamer.service.api import schemas as s
from streamer.service.api.endpoint import Parameter
from streamer.service.api.request_parsing import parse_number
from streamer.service.api.truncation import CUT_FIELD, CUT_PARAMETER, truncate_line
from streamer.service.fleet.log_tail import MAX_LINES, LogTail

LOG_PARAMETERS: Final = (
    Parameter("after", "The number of a line: only those after it.", s.INTEGER),
    Parameter("lines", f"How many of the newest at most ({MAX_LINES}).", s.INTEGER),
    Parameter("number", "The number of a line: only this one.", s.INTEGER),
    CUT_PARAMETER,
)


def select_log_lines(tail: LogTail, query: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the lines that a query asks for, for JSON.

    Raises:
        BadRequestError: a parameter is no number.
    """
    after = parse_number(query.get("after", "0"), "after")
    limit = parse_number(query.get("lines", str(MAX_LINES)), "lines")
    if "number" in query:
        number = parse_number(query["number"], "number")
        entries = [one for one in tail.lines_after(number - 1) if one.number == number]
    else:
        entries = tail.lines_after(after, limit)
    lines = [line.as_dict() for line in entries]
    if CUT_FIELD in query:
        max_characters = parse_number(query[CUT_FIELD], CUT_FIELD)
        lines = [truncate_line(line, max_characters) for line in lines]
    return lines
