from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from streamer.components.catalog import build_context
from streamer.components.processors import protobuf
from streamer.config import parse_config
from streamer.core.errors import ConfigError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.core.permissions import NONE, NotPermittedError, limit_permissions
from streamer.core.timestamps import Timestamp
from streamer.sdk.worker_resources import WorkerResources

from .changes import outcomes
from .conftest import Make, Run

PERSON = """
syntax = "proto3";
package testing;
import "google/protobuf/timestamp.proto";
import "parts/colour.proto";
message Person {
  string first_name = 1; int64 id = 2; google.protobuf.Timestamp last_updated = 3;
  bytes raw = 4; parts.Colour colour = 5; repeated Other others = 6;
  message Other { double n = 1; }
}
"""
COLOUR = 'syntax = "proto3"; package parts; enum Colour { NONE = 0; RED = 1; }'

DOCUMENT = {
    "firstName": "Ada",
    "id": "9007199254740993",
    "lastUpdated": "2026-01-01T00:00:00.500Z",
    "raw": "AP8=",
    "colour": "RED",
    "others": [{"n": 1.5}],
}
WIRE = bytes.fromhex(
    "0a03416461 1081808080808080 10 1a0c 0880f2d6ca06 1080cab5ee01 2202 00ff 2801 3209 09"
    "000000000000f83f"
)


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("schemas")
    (home / "parts").mkdir()
    (home / "person.proto").write_text(PERSON)
    (home / "parts" / "colour.proto").write_text(COLOUR)
    (home / "parts" / ".hidden.proto").write_text("no schema")
    (home / "notes.txt").write_text("no schema")
    return home


def spec(operator: str, path: Path, **more: object) -> str:
    body = {"operator": operator, "message": "testing.Person", "import_paths": [str(path)], **more}
    return json.dumps({"protobuf": body})


def process(make: Make, yaml: str, raw: bytes) -> Message:
    [[made]] = make(yaml).process([Message(raw)], Execution(lambda: 0))
    assert made.error is None, made.error
    return made


def test_a_document_becomes_the_bytes_of_the_type_and_back(make: Make, schemas: Path) -> None:
    written = process(make, spec("from_json", schemas), json.dumps(DOCUMENT).encode()).raw
    assert written == WIRE
    assert json.loads(process(make, spec("to_json", schemas), WIRE).raw) == DOCUMENT


def test_values_keep_numbers_bytes_and_times(make: Make, schemas: Path) -> None:
    assert process(make, spec("decode", schemas), WIRE).doc == {
        "firstName": "Ada",
        "id": 9007199254740993,
        "lastUpdated": Timestamp(1_767_225_600_500_000_000),
        "raw": b"\x00\xff",
        "colour": "RED",
        "others": [{"n": 1.5}],
    }


@pytest.mark.parametrize("operator", ["to_json", "decode"])
def test_names_and_numbers_as_in_the_file(make: Make, schemas: Path, operator: str) -> None:
    yaml = spec(operator, schemas, use_proto_names=True, use_enum_numbers=True)
    made = process(make, yaml, b"\x0a\x01A\x28\x01")
    assert json.loads(made.raw) == {"first_name": "A", "colour": 1}


def test_an_unknown_number_of_an_enumeration_is_its_default_as_a_value(
    make: Make, schemas: Path
) -> None:
    assert process(make, spec("decode", schemas), b"\x28\x07").doc == {"colour": "NONE"}
    assert json.loads(process(make, spec("to_json", schemas), b"\x28\x07").raw) == {"colour": 7}


def test_what_does_not_fit_marks_its_message_alone(make: Make, a_run: Run, schemas: Path) -> None:
    given = '{"first_name":"A"}', '{"age":1}', "x", '{"id":"y"}'
    found = outcomes(make, Run(), spec("from_json", schemas), *given)
    assert found[0] == "\n\x01A"
    assert all(
        one.startswith("! unmarshalling JSON message 'testing.Person': ") for one in found[1:]
    )
    assert found[1].endswith(': unknown field "age"')
    dropped = spec("from_json", schemas, discard_unknown=True)
    assert outcomes(make, Run(), dropped, '{"age":1,"firstName":"B"}') == ["\n\x01B"]
    assert outcomes(make, Run(), spec("to_json", schemas), "\n\x01A", "\n\x07A") == [
        '{"firstName":"A"}',
        "! Error parsing message with type 'testing.Person': Wire format was corrupt",
    ]


def test_a_set_of_descriptors_needs_no_compiler(
    make: Make, schemas: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "set.binpb"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{schemas}", "--include_imports"]
    subprocess.run([*command, f"--descriptor_set_out={made}", "person.proto"], check=True)
    monkeypatch.setattr(protobuf, "compile_files", None)
    assert json.loads(process(make, spec("to_json", made), WIRE).raw) == DOCUMENT
    made.write_bytes(b"no descriptors")
    with pytest.raises(StreamerError, match="it is no FileDescriptorSet"):
        make(spec("to_json", made))


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({}, "unable to find message 'testing.Person' definition"),
        ({"a.proto": PERSON}, "parts/colour.proto: File not found"),
        ({"a.proto": "nothing"}, "a.proto:1:1: "),
        ({"a.proto": COLOUR, "b.proto": COLOUR}, '"parts.Colour" is already defined'),
    ],
)
def test_schemas_that_cannot_be_used(
    make: Make, tmp_path: Path, files: dict[str, str], error: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(StreamerError, match=error):
        make(spec("to_json", tmp_path))


def test_a_directory_that_is_missing_too_large_or_out_of_reach(
    make: Make, schemas: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StreamerError, match="unable to load protos: .*/none: .*No such file"):
        make(spec("to_json", tmp_path / "none"))
    with limit_permissions(NONE), pytest.raises(NotPermittedError):
        make(spec("to_json", schemas))
    monkeypatch.setattr(protobuf, "_MAX_FILES", 1)
    with pytest.raises(StreamerError, match="has more than 1 files"):
        make(spec("to_json", schemas))


def test_files_are_compiled_once_by_each_worker(
    schemas: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[object] = []
    real = protobuf.compile_files
    monkeypatch.setattr(
        protobuf, "compile_files", lambda *files: compiled.append(files) or real(*files)
    )
    config = parse_config(f"pipeline: {{processors: [{spec('to_json', schemas)}]}}", env={})
    lasting = WorkerResources()
    for _ in range(3):
        build_context(config.resources, worker_resources=lasting).build(config.processors[0])
    assert len(compiled) == 1


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("{operator: to_json, message: a}", "import_paths must name the directory"),
        ("{operator: to_json, message: '', import_paths: [a]}", "message field must not be empty"),
        ("{operator: read, message: a, import_paths: [a]}", "read"),
        ("{operator: to_json, message: a, bsr: [{module: buf.build/a/b}]}", "buf export MODULE"),
    ],
)
def test_lint(body: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        parse_config(f"pipeline: {{processors: [{{protobuf: {body}}}]}}", env={})
