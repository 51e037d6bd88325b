"""`stdout`, `file` and `drop`: the very bytes that Benthos writes, and where they go."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.connectors.files.message_path import clean_path
from streamer.connectors.formats.codec import read_codec
from streamer.core.errors import ConfigError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.output import protocols as sending


def output(yaml: str) -> Any:
    config = parse_config(f"output:\n  {yaml}\n", env={})
    return build_context(config.resources).build(config.output).output


def encoded(yaml: str, *payloads: str) -> list[tuple[str, bytes]]:
    batch = [Message(payload.encode()) for payload in payloads]
    found: list[tuple[str, bytes]] = output(yaml).encode(batch, Execution(now=lambda: 0))
    return found


@pytest.mark.parametrize(
    ("codec", "payloads", "written"),
    [
        ("lines", ["a"], b"a\n"),
        ("lines", ["a", "b"], b"a\nb\n"),
        ("lines", ["a\n", "", "b\n\n"], b"a\n\nb\n\n"),
        ("append", ["a", "b"], b"ab"),
        ("delim:||", ["a", "b||", "c|"], b"a||b||c|||"),
        ("delim:\t", ["a", "b"], b"a\tb\t"),
        ("all-bytes", ["a", "b"], b"ab"),
    ],
)
def test_a_codec_ends_every_message_once(codec: str, payloads: list[str], written: bytes) -> None:
    assert read_codec(codec).encode_all([p.encode() for p in payloads]) == written


def test_stdout_has_no_route_and_nothing_marks_the_end_of_a_batch() -> None:
    assert encoded("stdout: {}", "a", "b") == [("", b"a\nb\n")]


def test_a_failed_message_is_written_like_any_other() -> None:
    batch = [Message(b"a", error="bad")]
    assert output("stdout: {}").encode(batch, Execution(now=lambda: 0)) == [("", b"a\n")]


def test_nothing_is_written_for_an_empty_batch() -> None:
    assert [encoded(yaml) for yaml in ("stdout: {}", "file: {path: x}", "drop: {}")] == [[]] * 3


def test_drop_writes_nothing() -> None:
    assert encoded("drop: {}", "a") == []


def test_a_file_gets_the_whole_batch_at_once() -> None:
    assert encoded("file: {path: ./out//a.txt}", "a", "b") == [("out/a.txt", b"a\nb\n")]


def test_neighbours_that_go_to_the_same_file_are_joined() -> None:
    found = encoded("file: {path: '${! content() }.txt', codec: append}", "a", "a", "b", "a")
    assert found == [("a.txt", b"aa"), ("b.txt", b"b"), ("a.txt", b"a")]


def test_the_path_is_resolved_for_a_message_by_itself() -> None:
    found = encoded("file: {path: 'x${! batch_index() }-${! batch_size() }'}", "a", "b")
    assert found == [("x0-1", b"a\nb\n")]


def test_all_bytes_keeps_messages_apart_for_each_replaces_the_file() -> None:
    yaml = "file: {path: a.txt, codec: all-bytes}"
    assert encoded(yaml, "a", "b") == [("a.txt", b"a"), ("a.txt", b"b")]
    assert output(yaml).append is False
    assert output("file: {path: a.txt}").append is True


def test_a_success_file_comes_with_windows_that_have_closed() -> None:
    file = output("file: {path: './${! content() }/x', success_file: _SUCCESS}")
    reasons = {"a": "final", "b": "changes", "c": "flush", "d": "idle", "e": ""}
    batch = [
        Message(name.encode(), {"window_emit": reason} if reason else {})
        for name, reason in reasons.items()
    ]
    found = file.encode([batch[0], *batch], Execution(lambda: 0))
    assert [path for path, body in found if body] == ["a/x", "b/x", "c/x", "d/x", "e/x"]
    marks = [(path, b"") for path in ("a/_SUCCESS", "c/_SUCCESS", "d/_SUCCESS")]
    assert found[5:] == marks


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("path: out/x, success_file: _SUCCESS", "needs a path that is another one for each window"),
        ("path: 'out/${! @w }/x', success_file: a/b", "expected the name of a file"),
    ],
)
def test_a_success_file_needs_a_name_and_a_directory_for_each_window(
    fields: str, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        output(f"file: {{{fields}}}")


def test_a_message_whose_path_cannot_be_found_harms_no_other() -> None:
    batch = [Message(b'{"id":"a"}'), Message(b"no json")]
    file = output("file: {path: '${! json(\"id\") }', codec: append}")
    found, error = sending.encode_batch(file, batch, Execution(lambda: 0))
    assert found == [("a", b'{"id":"a"}')]
    assert error is not None and error.is_rejected and [*error.errors] == [1]
    assert error.errors[1].startswith("path interpolation error: ")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a\\u0000b", "it has a NUL in it"),
        ("x" * 256, "a name in it is longer than 255 bytes"),
        ("yy/" * 2_000 + "z", "it is longer than 4096 bytes"),
        ("..", "it is that of a folder"),
    ],
)
def test_a_message_whose_path_can_be_no_file_is_rejected(name: str, why: str) -> None:
    batch = [Message(b'{"id":"%s"}' % name.encode()), Message(b'{"id":"fine"}')]
    file = output("file: {path: '${! json(\"id\") }'}")
    found, error = sending.encode_batch(file, batch, Execution(lambda: 0))
    assert found == [("fine", b'{"id":"fine"}\n')]
    assert error is not None and error.is_rejected and error.errors[0].endswith(why)


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("gzip", "'gzip' is not a codec; expected lines"),
        ("'delim:'", "custom delimiter codec requires a non-empty delimiter"),
    ],
)
def test_a_codec_that_is_none_is_refused(codec: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        output(f"stdout: {{codec: {codec}}}")


@pytest.mark.parametrize(
    ("path", "clean"),
    [("", "."), ("a/../b", "b"), ("//a", "/a"), ("./a/", "a"), ("/..", "/"), ("../a", "../a")],
)
def test_paths_are_cleaned_as_go_cleans_them(path: str, clean: str) -> None:
    assert clean_path(path) == clean


@pytest.mark.parametrize(
    "value",
    ["../x", "a/../../x", "/etc/passwd", "..", "", "b/../..", "../output/x", "../out"],
)
def test_a_path_that_leaves_the_base_is_not_written(value: str) -> None:
    made = output('file: { path: \'${! json("p") }${! json("v") }\', base: ./out }')
    before = "" if value.startswith("/") else "out/"
    batch = [
        Message.from_value({"p": before, "v": value}),
        Message.from_value({"p": "out/", "v": "a/../b/..c"}),
    ]
    found, error = sending.encode_batch(made, batch, Execution(lambda: 0))
    assert found == [("out/b/..c", f"{batch[1].raw.decode()}\n".encode())]
    assert error is not None and error.is_rejected
    assert "is not below the base './out'" in error.errors[0]


def test_a_path_that_is_written_out_must_be_below_the_base() -> None:
    with pytest.raises(ConfigError, match="which is not below base"):
        output("file: { path: /tmp/x, base: /tmp/y }")
    assert encoded("file: { path: /tmp/y/x, base: /tmp/y/ }", "a") == [("/tmp/y/x", b"a\n")]
    assert encoded("file: { path: /x, base: / }", "a") == [("/x", b"a\n")]
