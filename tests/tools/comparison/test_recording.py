"""Recordings: lines, records, stages of `streamer tap`, and envelopes."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import pytest

from streamer.core.errors import StreamerError
from streamer.tools.comparison.recording import (
    RecordedMessage,
    RecordingForm,
    read_envelope,
    read_recording,
    write_envelopes,
    write_records,
)


def read(path: Path, form: str = "auto", limit: int = 100) -> list[RecordedMessage]:
    return read_recording(str(path), RecordingForm(form), limit)


def test_lines_are_messages_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "in"
    file.write_bytes(b'{"content":"x","more":1}\n\n\xff\r\n')
    assert [one.content for one in read(file)] == [b'{"content":"x","more":1}', b"\xff"]
    assert len(read(file, limit=1)) == 1
    assert read_recording("-", RecordingForm.AUTO, 9, io.BytesIO(b"a\nb")) == [
        RecordedMessage(b"a", {}),
        RecordedMessage(b"b", {}),
    ]


def test_records_have_metadata_keys_and_times(tmp_path: Path) -> None:
    file = tmp_path / "in"
    records = [
        {"json_content": {"b": 1, "a": 2}, "metadata": {"x": "y"}, "key": "k"},
        {"base64_content": base64.b64encode(b"\x00\xff").decode()},
        {"content": "text", "timestamp": "2026-01-01T00:00:00.25Z"},
    ]
    file.write_text("".join(json.dumps(one) + "\n" for one in records))
    first, second, third = read(file)
    assert first == RecordedMessage(b'{"a":2,"b":1}', {"x": "y", "kafka_key": "k"})
    assert second.content == b"\x00\xff"
    assert third.metadata == {
        "kafka_timestamp_unix": 1767225600,
        "kafka_timestamp_ms": 1767225600250,
    }
    assert read(file, "lines")[0].content == json.dumps(records[0]).encode()


def test_a_stage_of_tap_gives_the_messages_of_the_input(tmp_path: Path) -> None:
    file = tmp_path / "in"
    stages = [
        {"path": "input", "component": "file", "batches": [[{"content": "a"}], [{"content": "b"}]]},
        {"path": "output", "component": "drop", "batches": [[{"content": "z"}]]},
    ]
    file.write_text("".join(json.dumps(one) + "\n" for one in stages))
    assert [one.content for one in read(file)] == [b"a", b"b"]


def test_a_directory_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    (tmp_path / "2").write_text("c\n")
    (tmp_path / "1").write_text("a\nb\n")
    assert b"".join(one.content for one in read(tmp_path)) == b"abc"


@pytest.mark.parametrize(
    ("text", "form", "error"),
    [
        ("", "auto", "has no messages"),
        ('{"content":"a"}\nb\n', "records", "line 2 is no record"),
        ('{"base64_content":"*"}\n', "auto", "line 1: the record cannot be read"),
        ('{"content":"a","timestamp":"noon"}\n', "auto", "the record cannot be read"),
    ],
)
def test_a_bad_recording_is_refused(tmp_path: Path, text: str, form: str, error: str) -> None:
    file = tmp_path / "in"
    file.write_text(text)
    with pytest.raises(StreamerError, match=error):
        read(file, form)
    with pytest.raises(StreamerError, match="no such file"):
        read(tmp_path / "none")


def test_records_and_envelopes_come_back_as_they_were(tmp_path: Path) -> None:
    messages = [RecordedMessage(b"\xfe\n", {"a": [1]}), RecordedMessage("ü".encode(), {})]
    file = tmp_path / "kept"
    with file.open("wb") as out:
        write_records(messages, out)
    assert read(file) == messages
    pipe = io.BytesIO()
    write_envelopes(messages, pipe, {"delay": "PT1S"})
    lines = pipe.getvalue().splitlines()
    back = [read_envelope(line)[0] for line in lines]
    assert [one.content for one in back] == [one.content for one in messages]
    assert back[0].metadata == {"a": [1], "delay": "PT1S"}
