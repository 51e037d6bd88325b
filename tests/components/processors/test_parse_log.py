"""`parse_log`: lines of syslog. What comes out of each line is what a real Benthos answered."""

from __future__ import annotations

import json

import pytest

from streamer.core.errors import ConfigError

from .changes import outcomes
from .conftest import Make, Run

OLD = "<34>Oct 11 22:14:15 host "
NEW = "<34>1 2003-10-11T22:14:15.003Z host app 12 ID47 "
OF_2020 = "parse_log: {format: syslog_rfc3164, default_year: '2020'}"
OF_5424 = "parse_log: {format: syslog_rfc5424}"


def _old(**more: object) -> dict[str, object]:
    base = {"facility": 4, "hostname": "host", "priority": 34, "severity": 2}
    return {**base, "timestamp": "2020-10-11T22:14:15Z", **more}


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("su: hello", {"appname": "su", "message": "hello"}),
        ("su[12]: hello", {"appname": "su", "procid": "12", "message": "hello"}),
        ("su hello", {"message": "su hello"}),
        ("foo:bar", {"appname": "foo", "message": "foo:bar"}),
        ("foo[12] bar", {"appname": "foo", "procid": "12", "message": "12] bar"}),
        ("foo[12]: a]: b", {"appname": "foo", "procid": "a", "message": "b"}),
        ("f[1]x[2]: q", {"appname": "f", "procid": "1]x[2", "message": "q"}),
        ("foo[", {"appname": "foo", "message": "foo["}),
        ("-: x", {"message": "x"}),
        ("a" * 33 + ": x", {"message": "a" * 33 + ": x"}),
        ("é: x", {"message": "é: x"}),
        ("su: a\x01b", {"appname": "su"}),
    ],
)
def test_a_line_of_rfc_3164_has_a_tag_and_a_message(
    rest: str, expected: dict[str, object], make: Make, a_run: Run
) -> None:
    [found] = outcomes(make, a_run, OF_2020, OLD + rest)
    assert json.loads(found) == _old(**expected)


@pytest.mark.parametrize(
    ("yaml", "line", "timestamp"),
    [
        (OF_2020, "<34>Oct  1 22:14:15 h x", "2020-10-01T22:14:15Z"),
        (OF_2020, "<34>2020-01-02T03:04:05+01:30 h x", "2020-01-02T03:04:05+01:30"),
        ("parse_log: {format: syslog_rfc3164}", "<34>Feb 29 23:14:15 h x", "1970-03-01T23:14:15Z"),
        (
            "parse_log: {format: syslog_rfc3164, default_year: '2021', "
            "default_timezone: Europe/Berlin}",
            "<34>Oct 11 22:14:15 h x",
            "2021-10-12T00:14:15+02:00",
        ),
        (
            "parse_log: {format: syslog_rfc3164, default_year: '', default_timezone: Europe/Rome}",
            "<34>Feb 29 23:14:15 h x",
            "0000-03-01T00:04:11+00:49",
        ),
        (OF_5424, "<34>1 2003-10-11T22:14:15.1234-00:00 - - - - -", "2003-10-11T22:14:15.1234Z"),
        (OF_5424, "<34>1 2003-10-11T22:14:15+02:00 - - - - -", "2003-10-11T22:14:15+02:00"),
    ],
)
def test_times_are_told_in_rfc_3339(
    yaml: str, line: str, timestamp: str, make: Make, a_run: Run
) -> None:
    [found] = outcomes(make, a_run, yaml, line)
    assert json.loads(found)["timestamp"] == timestamp


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("- msg", {"message": "msg"}),
        ("-", {}),
        ('[a x="y" z="1"][b] hi', {"structureddata": {"a": {"x": "y", "z": "1"}, "b": {}}}),
        ('[a x="\\"q\\\\ \\]"] hi', {"structureddata": {"a": {"x": '"q\\ ]'}}}),
        ('[a x="1" x="é"]  hi', {"structureddata": {"a": {"x": "é"}}, "message": " hi"}),
        ("- \ufeffa\n\x00", {"message": "\ufeffa\n\x00"}),
    ],
)
def test_a_line_of_rfc_5424_has_structured_data(
    rest: str, expected: dict[str, object], make: Make, a_run: Run
) -> None:
    [found] = outcomes(make, a_run, OF_5424, NEW + rest)
    header = {"facility": 4, "priority": 34, "severity": 2, "version": 1}
    header |= {"hostname": "host", "appname": "app", "procid": "12", "msgid": "ID47"}
    header |= {"timestamp": "2003-10-11T22:14:15.003Z"}
    message = {"message": "hi"} if rest.endswith("hi") else {}
    assert json.loads(found) == {**header, **message, **expected}


@pytest.mark.parametrize(
    ("yaml", "line", "error"),
    [
        (OF_2020, "34", "expecting a priority value within angle brackets [col 0]"),
        (
            OF_2020,
            "<192>x",
            "expecting a priority value in the range 1-191 or equal to 0 [col 3]",
        ),
        (OF_2020, "<34>Oct 1 22:14:15 h x", "expecting a Stamp timestamp [col 9]"),
        (
            OF_2020,
            "<34>2020-01-02T03:04:05.5Z h x",
            "expecting a Stamp or a RFC3339 timestamp [col 23]",
        ),
        (
            OF_2020,
            "<34>Feb 31 22:14:15 h x",
            'parsing time "Feb 31 22:14:15": day out of range [col 19]',
        ),
        (
            OF_2020,
            OLD.strip(),
            "expecting an hostname (from 1 to max 255 US-ASCII characters) [col 24]",
        ),
        (OF_2020, OLD, "expecting an alphanumeric tag (max 32 characters) [col 25]"),
        (
            "parse_log: {format: syslog_rfc3164, allow_rfc3339: false}",
            "<34>2020-01-02T03:04:05Z h x",
            "expecting a Stamp timestamp [col 4]",
        ),
        (
            "parse_log: {format: syslog_rfc3164, best_effort: false}",
            OLD + "a\x01",
            "parsing error [col 26]",
        ),
        (OF_5424, "<34>1000 -", "expecting a version value in the range 1-999 [col 7]"),
        (OF_5424, "<34>1", "parsing error [col 5]"),
        (OF_5424, "<34>1 2003", "expecting a RFC3339MICRO timestamp or a nil value [col 10]"),
        (
            OF_5424,
            "<34>1 - h " + "a" * 49 + " - - -",
            "expecting an app-name (from 1 to max 48 US-ASCII characters) or a nil value [col 58]",
        ),
        (OF_5424, NEW + '[a x="y"][a] z', "duplicate structured data element id [col 59]"),
        (
            OF_5424,
            NEW + '[a x="y] z',
            'expecting chars `]`, `"`, and `\\` to be escaped within param value [col 55]',
        ),
        (OF_5424, NEW + "-x", "parsing error [col 49]"),
    ],
)
def test_a_fault_is_told_with_its_column(
    yaml: str, line: str, error: str, make: Make, a_run: Run
) -> None:
    assert outcomes(make, a_run, yaml, line) == [f"! {error}"]


def test_a_fault_after_the_time_gives_what_stands_before(make: Make, a_run: Run) -> None:
    expected = '{"facility":4,"priority":34,"severity":2}'
    given = ("<34>Oct 11 22:14:15", "<34>2020-0x")
    assert outcomes(make, a_run, OF_2020, *given) == [expected, expected]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("default_year: x", "is 'x'; expected current, a year, or nothing"),
        ("default_timezone: Nope", "unknown time zone Nope"),
    ],
)
def test_a_year_and_a_zone_must_be_known(field: str, text: str, make: Make) -> None:
    with pytest.raises(ConfigError, match=text):
        make(f"parse_log: {{format: syslog_rfc3164, {field}}}")
