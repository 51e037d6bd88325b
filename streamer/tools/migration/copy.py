"""A copy of a config in which Benthos's behaviour is set where streamer's default differs."""

from __future__ import annotations

import re
from typing import Final

from streamer.config.partial import PartialConfig
from streamer.sdk.spec import ParsedFields
from streamer.tools.migration.review import Review

ALL_ADDRESSES: Final = "0.0.0.0:4195"
"""Where Benthos serves HTTP by default."""

_COMMENT_LINE: Final = re.compile(r"[ \t]*(#.*)?")


def make_copy(review: Review) -> str:
    """Return the text of a config with what is to be changed above it, as comments.

    Settings are added where Benthos's default is another one and the file has no own; what stands
    there stays as it is.

    Args:
        review: of a config that could be read.
    """
    assert review.config is not None
    todo = [
        *(
            f"{one.kind} {one.name} (line {{line{one.line}}}) is missing"
            + (f": {one.replacement}" if one.replacement else "")
            for one in review.missing
        ),
        *(
            f"line {{line{one.line}}}: {one.message}"
            + (f"; {one.suggestion}" if one.suggestion else "")
            for one in review.findings
        ),
    ]
    lines = review.config.text.splitlines()
    added_at, added = _http_address(review.config, lines)
    lines[added_at:added_at] = added
    if not todo:
        return "\n".join(lines) + "\n"
    header = ["# To do before this config runs:"]
    shift = len(todo) + 2
    for text in todo:
        header.append(f"# - {_renumber(text, shift, added_at, len(added))}")
    return "\n".join([*header, "", *lines]) + "\n"


def _renumber(text: str, shift: int, added_at: int, added: int) -> str:
    """Return a text with the numbers that lines of the original have in the copy."""

    def number(match: re.Match[str]) -> str:
        line = int(match[1])
        return str(line + shift + (added if line > added_at else 0))

    return re.sub(r"\{line(\d+)\}", number, text)


def _http_address(config: PartialConfig, lines: list[str]) -> tuple[int, list[str]]:
    """Return lines that let HTTP be served on all addresses, as Benthos does, and where they go."""
    http = config.section("http")
    if not isinstance(http, ParsedFields) or http.is_given("address") or not http["enabled"]:
        return 0, []
    comment = "  # as in Benthos; set credentials, or 127.0.0.1:4195"
    line = config.line_of("http")
    if not line:
        return len(lines), ["", "http:", f"  address: {ALL_ADDRESSES}{comment}"]
    _, _, value = lines[line - 1].partition(":")
    if not _COMMENT_LINE.fullmatch(value):
        return 0, []
    first = next((one for one in lines[line:] if not _COMMENT_LINE.fullmatch(one)), "")
    indent = len(first) - len(first.lstrip())
    return line, [f"{' ' * (indent or 2)}address: {ALL_ADDRESSES}{comment}"]
