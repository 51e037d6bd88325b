"""`archive` and `unarchive`: every format there and back, and read by other programs."""

from __future__ import annotations

import io
import tarfile
import zipfile

import pytest

from streamer.connectors.formats.archives import write_binary
from streamer.core.errors import ConfigError
from streamer.core.message import Message

from .conftest import Make, Run, messages, payloads

DOCUMENTS = ('{"id":"a"}', '{"id":"b","x":[1]}', "3")


@pytest.mark.parametrize("form", ["binary", "json_array", "lines", "tar", "zip"])
def test_what_is_archived_is_taken_out_again(form: str, make: Make, a_run: Run) -> None:
    archive = make(f"archive: {{format: {form}, path: '${{! batch_index() }}.json'}}")
    [[packed]] = archive.process(messages(*DOCUMENTS), a_run.ex)
    found = make(f"unarchive: {{format: {form}}}").process([packed], a_run.ex)
    assert payloads(found) == [list(DOCUMENTS)]
    if form in ("tar", "zip"):
        names = [message.meta["archive_filename"] for message in found[0]]
        assert names == ["0.json", "1.json", "2.json"]
    assert a_run.logged == []


def test_an_archive_has_the_metadata_of_the_first_message(make: Make, a_run: Run) -> None:
    batch = [Message(b"1", {"k": "v"}), Message(b"2", {"k": "w"})]
    [[made]] = make("archive: {format: concatenate}").process(batch, a_run.ex)
    assert (made.raw, dict(made.meta)) == (b"12", {"k": "v"})


def test_other_programs_read_the_archives(make: Make, a_run: Run) -> None:
    long = "directory/" * 30 + "ä.txt"
    a_run.ex.now = lambda: 1_700_000_000_000_000_000
    batch = [Message(b"1" * 600, {"n": "a.txt"}), Message(b"", {"n": long})]
    [[packed]] = make("archive: {format: tar, path: '${! @n }'}").process(batch, a_run.ex)
    with tarfile.open(fileobj=io.BytesIO(packed.raw)) as archive:
        entries = archive.getmembers()
        assert [(e.name, e.size, e.mode, e.mtime) for e in entries] == [
            ("a.txt", 600, 0o666, 1_700_000_000),
            (long, 0, 0o666, 1_700_000_000),
        ]
    [[packed]] = make("archive: {format: zip, path: '${! @n }'}").process(batch, a_run.ex)
    with zipfile.ZipFile(io.BytesIO(packed.raw)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["a.txt", long]
        assert archive.infolist()[0].date_time == (2023, 11, 14, 22, 13, 20)


def test_the_binary_format_is_benthos_own() -> None:
    assert write_binary([b"hello", b""]) == b"\0\0\0\2\0\0\0\5hello\0\0\0\0"


@pytest.mark.parametrize(
    ("form", "payload", "expected"),
    [
        ("lines", "a\nb\n", ["a", "b", ""]),
        ("lines", "", [""]),
        ("json_documents", '{"b":1}  {"a":2}\n[3] 4', ['{"b":1}', '{"a":2}', "[3]", "4"]),
        ("json_array", "[]", []),
        ("json_array", '[{"a":1},2,null]', ['{"a":1}', "2", "null"]),
        ("json_map", '{"b":[1],"a":"x"}', ['"x"', "[1]"]),
        ("csv", 'a,b\n1,2\n"3",4\n', ['{"a":"1","b":"2"}', '{"a":"3","b":"4"}']),
        ("csv:|", "a|b\n1|2,", ['{"a":"1","b":"2,"}']),
        ("csv:\t", "a\tb\n1\t2", ['{"a":"1","b":"2"}']),
        ("csv", "", []),
        ("csv", "a,b\n", []),
    ],
)
def test_messages_take_the_place_of_the_one_that_they_were_in(
    form: str, payload: str, expected: list[str], make: Make, a_run: Run
) -> None:
    batch = [Message(b"before"), Message(payload.encode(), {"k": 1}), Message(b"after")]
    only = make(f"unarchive: {{format: {form!r}}}".replace("\\t", "\t"))
    found = only.process(batch[1:2], a_run.ex)
    assert payloads(found) == ([expected] if expected else [])
    assert all(message.meta["k"] == 1 for part in found for message in part)


def test_the_key_of_a_map_is_metadata(make: Make, a_run: Run) -> None:
    [found] = make("unarchive: {format: json_map}").process(messages('{"b":1,"a":2}'), a_run.ex)
    assert [(m.meta["archive_key"], m.raw) for m in found] == [("a", b"2"), ("b", b"1")]


@pytest.mark.parametrize(
    ("form", "payload", "error"),
    [
        ("json_array", "{}", "JSON array: invalid type 'map[string]interface {}'"),
        ("json_array", "nope", "failed to parse message into JSON array: invalid character"),
        ("json_map", "[1]", "JSON map: invalid type '[]interface {}'"),
        ("json_map", "1.5", "JSON map: invalid type 'json.Number'"),
        ("json_map", "null", "JSON map: invalid type '<nil>'"),
        ("json_documents", '{"a":1} x', "invalid character 'x' looking for beginning of value"),
        ("csv", "a,b\n1", "message as csv: record on line 2: wrong number of fields"),
        ("csv", 'a\nx"', 'message as csv: parse error on line 2, column 2: bare "'),
        ("binary", "abc", "serialised message bytes were in unexpected format"),
        ("binary", "\0\0\0\1\0\0\0\7abc", "serialised message bytes were in unexpected format"),
        ("tar", "x" * 512, "archive/tar: invalid tar header"),
        ("zip", "nope", "zip: not a valid zip file"),
    ],
)
def test_a_message_that_cannot_be_read_stays_and_is_marked(
    form: str, payload: str, error: str, make: Make, a_run: Run
) -> None:
    [[found]] = make(f"unarchive: {{format: {form}}}").process(messages(payload), a_run.ex)
    assert found.raw == payload.encode()
    assert error in str(found.error)
    assert a_run.logged == [("ERROR", f"Failed to unarchive message part: {found.error}")]


def test_a_batch_that_cannot_be_archived_stays_with_every_message_marked(
    make: Make, a_run: Run
) -> None:
    batch = messages('{"a":1}', "nope")
    [found] = make("archive: {format: json_array}").process(batch, a_run.ex)
    assert [message.raw for message in found] == [b'{"a":1}', b"nope"]
    assert {str(message.error).partition(":")[0] for message in found} == {
        "failed to parse message as JSON"
    }
    assert [level for level, _ in a_run.logged] == ["ERROR"]


def test_a_path_that_cannot_be_found_is_logged_and_left_empty(make: Make, a_run: Run) -> None:
    archive = make("archive: {format: tar, path: '${! this.id.uppercase() }'}")
    [[packed]] = archive.process(messages('{"id":"a"}', '{"id":2}'), a_run.ex)
    [found] = make("unarchive: {format: tar}").process([packed], a_run.ex)
    # As in Benthos, metadata that are set to an empty text are not there.
    assert [dict(message.meta) for message in found] == [{"archive_filename": "A"}, {}]
    assert a_run.logged[0][1].startswith("Name interpolation error: ")


@pytest.mark.parametrize("form", ["rar", "'csv:'", "csv:ab", "'csv:\"'"])
def test_lint_knows_the_formats(form: str, make: Make) -> None:
    with pytest.raises(ConfigError, match="format"):
        make(f"unarchive: {{format: {form}}}")
