"""The log: lines as Benthos writes them, levels, files, and nothing secret in them."""

from __future__ import annotations

import gzip
import io
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from streamer.cli.log_output import LogConfig, Logger
from streamer.cli.log_output import log_file as logfile
from streamer.core.errors import StreamerError
from streamer.core.log_format import (
    FieldNames,
    LogRecord,
    format_value,
    quote_text,
    to_json,
    to_logfmt,
    to_terminal,
)
from streamer.core.value import Number

NOON = 1_795_262_400_000_000_000  # 2026-11-21T12:00:00Z


@pytest.fixture(autouse=True)
def _in_utc() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def record(
    message: str = "hello world",
    level: str = "INFO",
    fields: Mapping[str, Any] | None = None,
    time_ns: int | None = None,
) -> LogRecord:
    return LogRecord(level, message, fields or {}, time_ns)


def test_logfmt_has_time_level_and_message_first_and_then_sorted_fields() -> None:
    line = to_logfmt(
        record(fields={"path": "root.input", "@service": "benthos"}, time_ns=NOON), FieldNames()
    )
    assert line == (
        'time="2026-11-21T12:00:00Z" level=info msg="hello world" @service=benthos path=root.input'
    )


def test_a_line_without_a_message_has_no_message_field() -> None:
    assert to_logfmt(record("", "DEBUG"), FieldNames()) == "level=debug"


@pytest.mark.parametrize(
    ("level", "name"),
    [("WARN", "warning"), ("ERROR", "error"), ("TRACE", "trace"), ("FATAL", "fatal")],
)
def test_levels_have_the_names_of_benthos(level: str, name: str) -> None:
    assert to_logfmt(record("x", level), FieldNames()) == f"level={name} msg=x"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain-._/@^+09aZ", "plain-._/@^+09aZ"),
        ("", '""'),
        ("a b", '"a b"'),
        ("a:b", '"a:b"'),
        ("a=b", '"a=b"'),
        ('say "hi"\\', '"say \\"hi\\"\\\\"'),
        ("line\nbreak\ttab\x00\x7f", '"line\\nbreak\\ttab\\x00\\x7f"'),
        ("grüße", '"grüße"'),
        ("\u200b\U000e0001", '"\\u200b\\U000e0001"'),
        ("\udcff", '"\\xff"'),
        (7, "7"),
        (True, "true"),
        (None, '"<nil>"'),
        (0.5, "0.5"),
        (3.0, "3"),
        (Number("1.50"), "1.50"),
        ([1, "a"], '"[1 a]"'),
        ({"b": 1, "a": [True]}, '"map[a:[true] b:1]"'),
    ],
)
def test_values_are_quoted_as_go_quotes_them(value: Any, written: str) -> None:
    assert (
        to_logfmt(record("m", fields={"k": value}), FieldNames()) == f"level=info msg=m k={written}"
    )


def test_bytes_are_written_as_go_prints_a_slice() -> None:
    assert format_value(b"ab") == "[97 98]"


def test_a_field_called_like_one_of_the_three_is_renamed() -> None:
    fields = {"level": "mine", "msg": "mine", "other": 1}
    assert to_logfmt(record("m", fields=fields), FieldNames()) == (
        "level=info msg=m fields.level=mine fields.msg=mine other=1"
    )


def test_json_lines_are_sorted_use_the_configured_names_and_are_safe_in_html() -> None:
    names = FieldNames("at", "severity", "text")
    line = to_json(record("<a> & b", "WARN", {"n": 1.0, "z": None}, NOON), names)
    assert line == (
        '{"at":"2026-11-21T12:00:00Z","n":1,"severity":"warning",'
        '"text":"\\u003ca\\u003e \\u0026 b","z":null}'
    )


def test_a_terminal_gets_colours_but_no_control_characters_from_the_message() -> None:
    line = to_terminal(record("evil \x1b[2J", "ERROR", {"k": "a b"}), FieldNames())
    assert line.startswith("\x1b[31mERRO\x1b[0m evil \\x1b[2J ")
    assert line.endswith(' \x1b[31mk\x1b[0m="a b"')


FORGED = {
    "x\nlevel=error msg=forged": '"x\\nlevel=error msg=forged"',
    "\x1b[31mred\x1b[0m": '"\\x1b[31mred\\x1b[0m"',
    "a b": '"a b"',
    "a=b": '"a=b"',
    'a"b': '"a\\"b"',
    "a\\nb": '"a\\\\nb"',
    "": '""',
    "\u202ereversed": '"\\u202ereversed"',
    "\u2028": '"\\u2028"',
    "\x9b31m": '"\\u009b31m"',
    "größe.@x-1/2": "größe.@x-1/2",
}


@pytest.mark.parametrize("name", FORGED)
def test_a_field_s_name_forges_neither_lines_nor_fields_nor_colours(name: str) -> None:
    one = record("m", fields={name: "v"})
    assert to_logfmt(one, FieldNames()) == f"level=info msg=m {FORGED[name]}=v"
    shown = to_terminal(one, FieldNames()).replace("\x1b[36m", "").replace("\x1b[0m", "")
    assert shown.endswith(f" {FORGED[name]}=v") and shown.isprintable()
    assert to_json(one, FieldNames()).isprintable()
    assert json.loads(to_json(one, FieldNames()))[name] == "v"


def test_quote_escapes_the_bell_and_its_kin_by_their_short_names() -> None:
    assert quote_text("\a\b\f\v\r") == '"\\a\\b\\f\\v\\r"'


def logger(stream: io.StringIO, **settings: Any) -> Logger:
    config = LogConfig(**{"add_timestamp": False, **settings})
    return Logger(config, stream)


@pytest.mark.parametrize(
    ("level", "written"),
    [
        ("OFF", []),
        ("NONE", []),
        ("ERROR", ["error"]),
        ("INFO", ["error", "warning", "info"]),
        ("ALL", ["error", "warning", "info", "debug", "trace"]),
    ],
)
def test_only_records_of_an_enabled_level_are_written(level: str, written: list[str]) -> None:
    stream = io.StringIO()
    log = logger(stream, level=level)
    for each in ("ERROR", "WARN", "INFO", "DEBUG", "TRACE"):
        log.emit(each, "x", {}, NOON)
    found = [line.split()[0].removeprefix("level=") for line in stream.getvalue().splitlines()]
    assert found == written


def test_a_records_fields_win_over_the_static_ones() -> None:
    stream = io.StringIO()
    log = logger(stream, static_fields={"@service": "benthos", "a": "static"})
    log.emit("INFO", "x\n", {"a": "own"}, NOON)
    assert stream.getvalue() == "level=info msg=x @service=benthos a=own\n"


def test_secrets_and_passwords_in_urls_do_not_appear() -> None:
    stream = io.StringIO()
    log = Logger(LogConfig(add_timestamp=False, format="json"), stream, secrets=["hunter2", ""])
    fields = {"deep": {"list": ["hunter2"]}, "url": "kafka://joe:pw@host:9092/x"}
    log.emit("INFO", "password hunter2", fields, NOON)
    line = json.loads(stream.getvalue())
    assert line["msg"] == "password !!!SECRET_SCRUBBED!!!"
    assert line["deep"] == {"list": ["!!!SECRET_SCRUBBED!!!"]}
    assert line["url"] == "kafka://joe:!!!SECRET_SCRUBBED!!!@host:9092/x"


class _Overlay:
    def __init__(self, stream: io.StringIO) -> None:
        self.stream = stream

    @contextmanager
    def hide(self) -> Iterator[None]:
        self.stream.write("<clear>")
        yield
        self.stream.write("<redraw>")


def test_the_status_line_makes_room_for_a_line_of_the_log() -> None:
    stream = io.StringIO()
    log = logger(stream)
    log.attach(_Overlay(stream))
    log.emit("INFO", "x", {}, NOON)
    assert stream.getvalue() == "<clear>level=info msg=x\n<redraw>"


def test_a_closed_stream_does_not_stop_the_program() -> None:
    stream = io.StringIO()
    log = logger(stream)
    stream.close()
    log.emit("INFO", "x", {}, NOON)
    assert stream.closed


def test_with_a_file_nothing_goes_to_the_stream(tmp_path: Path) -> None:
    stream = io.StringIO()
    log = logger(stream, path=str(tmp_path / "log.txt"))
    log.emit("INFO", "x", {}, NOON)
    log.close()
    assert (stream.getvalue(), (tmp_path / "log.txt").read_text()) == ("", "level=info msg=x\n")


def test_a_file_that_is_full_is_compressed_and_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logfile, "ROTATE_AT_BYTES", 30)
    path = tmp_path / "log.txt"
    log = logger(io.StringIO(), path=str(path), rotate=True)
    for text in ("first", "second"):
        log.emit("INFO", text, {}, NOON)
    log.close()
    assert path.read_text() == "level=info msg=second\n"
    with gzip.open(f"{path}.1.gz", "rt") as packed:
        assert packed.read() == "level=info msg=first\n"


def test_an_old_compressed_file_is_removed(tmp_path: Path) -> None:
    packed = tmp_path / "log.txt.1.gz"
    packed.write_bytes(b"")
    os.utime(packed, (0, 0))
    logger(
        io.StringIO(), path=str(tmp_path / "log.txt"), rotate=True, rotate_max_age_days=1
    ).close()
    assert not packed.exists()


def test_a_file_that_cannot_be_opened_is_an_error_that_names_the_field(tmp_path: Path) -> None:
    with pytest.raises(StreamerError, match=r"logger.file.path: cannot open .*missing"):
        logger(io.StringIO(), path=str(tmp_path / "missing" / "log.txt"))


@pytest.mark.parametrize(
    ("settings", "text"),
    [({"level": "LOUD"}, "logger.level is LOUD"), ({"format": "xml"}, "'xml' not recognized")],
)
def test_unknown_settings_are_refused(settings: dict[str, str], text: str) -> None:
    with pytest.raises(StreamerError, match=text):
        logger(io.StringIO(), **settings)
