"""Checks of JSON Schema's `format`, as in gojsonschema; every text fits an unknown one."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any, Final

import re2

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib import urls

_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])?"
_HOST: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_TEMPLATE: Final = re.compile(r"[^{]*(?:\{[^}]*\}[^{]*)*")
_UUID: Final = re.compile("[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}")
_POINTER: Final = re.compile(r"(?:/(?:[^~/]|~0|~1)*)*")
_RELATIVE: Final = re.compile(r"(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~0|~1)*)*)")
_ATOM: Final = r"[a-zA-Z0-9!#$%&'*+\-/=?^_`{|}~\x80-\U0010ffff]+"
_ADDRESS: Final = re.compile(
    rf'(?:{_ATOM}(?:\.{_ATOM})*|"(?:[^"\\\n]|\\.)+")@(?:{_ATOM}(?:\.{_ATOM})*|\[[^\[\]\s]+\])'
)
_NAMED_ADDRESS: Final = re.compile(
    r"\s*(?:[^<>@,;:\"\[\]()\\]*|\"(?:[^\"\\]|\\.)*\")\s*<([^<>]+)>\s*"
)
_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_TIME: Final = re.compile(r"(\d\d?):(\d\d):(\d\d)(?:[.,]\d+)?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_DATE_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)T(\d\d?:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d))"
)


def _is_email(text: str) -> bool:
    named = _NAMED_ADDRESS.fullmatch(text)
    return _ADDRESS.fullmatch(named[1] if named else text.strip()) is not None


def _parse_ip(text: str) -> Any:
    try:
        return ipaddress.ip_address(text if "%" not in text else "")
    except ValueError:
        return None


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return 1 <= month <= 12 and 1 <= day <= days[month - 1]


def _is_time(text: str) -> bool:
    match = _TIME.fullmatch(text)
    if match is None or int(match[1]) > 23 or int(match[2]) > 59 or int(match[3]) > 59:
        return False
    zone = match[4]
    return zone in (None, "Z") or (int(zone[1:3]) <= 24 and int(zone[4:]) < 60)


def _is_date_time(text: str) -> bool:
    match = _DATE_TIME.fullmatch(text)
    whole = match is not None and _is_date(match[1]) and _is_time(match[2])
    return whole or _is_time(text) or _is_date(text)


def _parse_url(text: str) -> dict[str, Any] | None:
    if "\\" in text:
        return None
    try:
        return urls.split_url(text)
    except QueryError:
        return None


def _is_uri(text: str) -> bool:
    url = _parse_url(text)
    return url is not None and bool(url.get("scheme"))


def _is_uri_template(text: str) -> bool:
    url = _parse_url(text)
    return url is not None and _TEMPLATE.fullmatch(str(url.get("path", ""))) is not None


def _is_regex(text: str) -> bool:
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(text, options)
    except re2.error:
        return False
    return True


def _matches_fully(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _is_uri_reference(text: str) -> bool:
    return _parse_url(text) is not None


FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "date": _is_date,
    "time": _is_time,
    "date-time": _is_date_time,
    "hostname": lambda text: len(text) < 256 and _HOST.fullmatch(text) is not None,
    "email": _is_email,
    "idn-email": _is_email,
    "ipv4": lambda text: _parse_ip(text) is not None and "." in text,
    "ipv6": lambda text: _parse_ip(text) is not None and ":" in text,
    "uri": _is_uri,
    "iri": _is_uri,
    "uri-reference": _is_uri_reference,
    "iri-reference": _is_uri_reference,
    "uri-template": _is_uri_template,
    "uuid": _matches_fully(_UUID),
    "regex": _is_regex,
    "json-pointer": _matches_fully(_POINTER),
    "relative-json-pointer": _matches_fully(_RELATIVE),
}
