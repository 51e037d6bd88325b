"""`parse_log`: parses messages that are lines of syslog into objects.

It "parses common log formats into structured data. This is easier and often much faster than
grok." The formats are RFC 5424 and RFC 3164.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from streamer.bloblang.errors import ArgumentError
from streamer.bloblang.golib import zones
from streamer.connectors.formats.syslog import Rfc3164Parser, parse_rfc5424
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import Change, PerMessageProcessor
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

FORMAT: Final = "format"
BEST_EFFORT: Final = "best_effort"
ALLOW_RFC3339: Final = "allow_rfc3339"
DEFAULT_YEAR: Final = "default_year"
DEFAULT_TIMEZONE: Final = "default_timezone"
CODEC: Final = "codec"

RFC5424: Final = "syslog_rfc5424"
RFC3164: Final = "syslog_rfc3164"
CURRENT: Final = "current"

_YEAR_PATTERN: Final = re.compile(r"[+-]?\d{1,4}", re.ASCII)


def _year_problem(text: str) -> str | None:
    if text in ("", CURRENT) or _YEAR_PATTERN.fullmatch(text):
        return None
    return f"is {text!r}; expected {CURRENT}, a year, or nothing"


def _zone_problem(name: str) -> str | None:
    try:
        zones.load_zone(name)
    except ArgumentError:
        return f"failed to lookup timezone: unknown time zone {name}"
    return None


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "parse_log",
    "Parses messages that are lines of syslog into objects.",
    description=(
        "The object has those of `priority`, `facility`, `severity`, `timestamp`, `hostname`, "
        "`appname`, `procid` and `message` that are in the line; with `syslog_rfc5424` also "
        "`version`, `msgid` and `structureddata`."
    ),
    fields=(
        Field(FORMAT, "string", "The format of lines.", options=(RFC5424, RFC3164)),
        Field(
            BEST_EFFORT,
            "bool",
            "True if a line of `syslog_rfc3164` that goes wrong after its time gives what stands "
            "before. Other faults mark the message as failed, whatever is set.",
            default=True,
            advanced=True,
        ),
        Field(
            ALLOW_RFC3339,
            "bool",
            "True if lines of `syslog_rfc3164` may have times as RFC 3339 has them.",
            default=True,
            advanced=True,
        ),
        Field(
            DEFAULT_YEAR,
            "string",
            "The year of times of `syslog_rfc3164`, which have none: `current`, a number, or "
            "nothing for the year 0.",
            default=CURRENT,
            check=_year_problem,
            advanced=True,
        ),
        Field(
            DEFAULT_TIMEZONE,
            "string",
            "The time zone of times of `syslog_rfc3164`; they are taken to be in UTC.",
            default="UTC",
            check=_zone_problem,
            advanced=True,
        ),
        Field(
            CODEC,
            "string",
            "Has no effect, as in Benthos: what is made is JSON.",
            optional=True,
            deprecated=True,
        ),
    ),
    examples=(
        Example(
            "Lines of syslog",
            "pipeline:\n  processors:\n    - parse_log:\n        format: syslog_rfc5424\n",
        ),
    ),
    categories=("Parsing",),
)


def _parse_rfc5424_message(message: Message, ex: Execution) -> Message:
    return message.with_doc(parse_rfc5424(message.raw))


def _make_rfc3164_parser(parsed: ParsedFields) -> Change:
    zone = zones.load_zone(parsed[DEFAULT_TIMEZONE])
    lines = Rfc3164Parser(parsed[BEST_EFFORT], parsed[ALLOW_RFC3339], zone)
    year = parsed[DEFAULT_YEAR]

    def parse(message: Message, ex: Execution) -> Message:
        of = int(year or 0) if year != CURRENT else _year_of(ex.now())
        return message.with_doc(lines.parse(message.raw, of))

    return parse


def _year_of(now: int) -> int:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=now // 10**9)).year


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Choose the format."""
    change = _parse_rfc5424_message if parsed[FORMAT] == RFC5424 else _make_rfc3164_parser(parsed)
    return PerMessageProcessor(change, ComponentRef(context.component))
