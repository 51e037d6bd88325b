"""Checks of the path of an output that may be a URL of an object."""

from __future__ import annotations

from collections.abc import Iterator

from streamer.connectors.files.message_path import PATH
from streamer.core.locations import is_location, location_problem, parse_location
from streamer.sdk.spec import ParsedFields


def location_path_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Give what is wrong with the URL of an output, and with the fields beside it."""
    path = parsed[PATH]
    if not is_location(path):
        return
    if "${!" not in path:
        if problem := location_problem(path):
            yield PATH, problem
    else:
        fixed = path.partition("${!")[0]
        if fixed.count("/") < 3:
            yield PATH, "takes its bucket from a message; expected its name in the config"
        else:
            try:
                parse_location(fixed)
            except ValueError as error:
                yield PATH, str(error)
