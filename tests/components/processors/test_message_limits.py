"""Messages that would take all memory, in processes with little of it: each is marked as failed."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import resource
import tarfile
import traceback
import zipfile
from collections.abc import Callable, Iterator
from datetime import timedelta

import numpy
import orjson
import pyarrow as pa
import pytest
from pyarrow import parquet

from streamer.core.limits import DEFAULT_LIMITS, Limits, set_limits
from streamer.core.message import Message

from .conftest import Make, Run

_ROOM = 256 << 20
"""Bytes of memory that a processor may take besides what the process has."""

LOWERED = Limits(bytes=1 << 20, elements=10_000, messages=1_000, depth=50)
TREE = '{"type":"record","name":"n","fields":[{"name":"c","type":["null","n"]}]}'
NULLS = '{"type":"array","items":"null"}'
EMPTIES = '{"type":"array","items":{"type":"record","name":"e","fields":[]}}'


@pytest.fixture(autouse=True)
def lowered() -> Iterator[None]:
    set_limits(LOWERED)
    yield
    set_limits(DEFAULT_LIMITS)


def _parquet(table: pa.Table) -> bytes:
    written = io.BytesIO()
    parquet.write_table(table, written)
    return written.getvalue()


def _repeated(rows: int, size: int) -> bytes:
    """A file of a few kilobytes whose rows are megabytes."""
    return _parquet(pa.table({"s": pa.array(["x" * size]).take(pa.array([0] * rows))}))


def _zip(method: int) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", method) as archive:
        for number in range(4):
            archive.writestr(f"{number}", bytes(1 << 19))
    return written.getvalue()


def _sparse_tar() -> bytes:
    """A tar archive whose one file is a hole of 4 GiB."""
    head = tarfile.TarInfo("hole")
    head.type = tarfile.GNUTYPE_SPARSE
    raw = bytearray(head.tobuf(tarfile.GNU_FORMAT))
    raw[386:398] = b"%011o\0" % 0
    raw[398:410] = b"%011o\0" % 0
    raw[483:495] = b"%011o\0" % (1 << 32)
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw) + bytes(1024)


def _tar(count: int) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for number in range(count):
            archive.addfile(tarfile.TarInfo(f"{number}"))
    return written.getvalue()


def _avro(schema: str) -> str:
    return f"avro:\n  operator: to_json\n  encoding: binary\n  schema: '{schema}'"


def _long(value: int) -> bytes:
    """Avro's form of a number."""
    value, out = value << 1, b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


BOMBS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "a deep tree": (_avro(TREE), lambda: b"\x02" * 5000 + b"\0", "limits.depth"),
    "a very deep tree": (_avro(TREE), lambda: b"\x02" * 500_000 + b"\0", "limits.depth"),
    "10^9 nulls": (_avro(NULLS), lambda: _long(10**9) + b"\0", "limits.elements"),
    "2^61 nulls": (_avro(NULLS), lambda: _long(2**61) + b"\0", "limits.elements"),
    "many blocks of nulls": (
        _avro(NULLS),
        lambda: _long(9_000) * 1000 + b"\0",
        "limits.elements",
    ),
    "10^8 empty records": (_avro(EMPTIES), lambda: _long(10**8) + b"\0", "limits.elements"),
    "a dictionary": ("parquet_decode: {}", lambda: _repeated(900, 100_000), "limits.bytes"),
    "rows": (
        "parquet_decode: {}",
        lambda: _parquet(pa.table({"n": pa.nulls(1_000_000)})),
        "limits.messages",
    ),
    "long lists": (
        "parquet_decode: {}",
        lambda: _parquet(pa.table({"n": [[None] * 20_000]}, pa.schema({"n": pa.list_(pa.int8())}))),
        "limits.elements",
    ),
    "a zip file": (
        "unarchive: {format: zip}",
        lambda: _zip(zipfile.ZIP_DEFLATED),
        "limits.bytes",
    ),
    "a bzip2 zip file": (
        "unarchive: {format: zip}",
        lambda: _zip(zipfile.ZIP_BZIP2),
        "limits.bytes",
    ),
    "a hole in a tar": ("unarchive: {format: tar}", _sparse_tar, "limits.bytes"),
    "files in a tar": ("unarchive: {format: tar}", lambda: _tar(1001), "limits.messages"),
    "an array": (
        "unarchive: {format: json_array}",
        lambda: b"[" + b"1," * 1000 + b"1]",
        "limits.messages",
    ),
    "an object": (
        "unarchive: {format: json_map}",
        lambda: orjson.dumps({str(n): n for n in range(1001)}),
        "limits.messages",
    ),
    "documents": (
        "unarchive: {format: json_documents}",
        lambda: b"1 " * 1001,
        "limits.messages",
    ),
    "lines": ("unarchive: {format: lines}", lambda: b"\n" * 1000, "limits.messages"),
    "rows of CSV": ("unarchive: {format: csv}", lambda: b"a\n" * 1002, "limits.messages"),
    "payloads": (
        "unarchive: {format: binary}",
        lambda: (1001).to_bytes(4, "big") + bytes(4 * 1001),
        "limits.messages",
    ),
    "gzip": (
        "decompress: {algorithm: gzip}",
        lambda: gzip.compress(bytes(2 << 20)),
        "limits.bytes",
    ),
    "bzip2": (
        "decompress: {algorithm: bzip2}",
        lambda: bz2.compress(bytes(2 << 20)),
        "limits.bytes",
    ),
    "jq": ("jq: {query: range(.n)}", lambda: b'{"n":1000000000}', "limits.elements"),
    "jq's texts": (
        "jq: {query: '\"x\" * 1000 | range(5000) as $n | .'}",
        lambda: b"{}",
        "limits.bytes",
    ),
    "a repeated text": (
        "mapping: 'root = \"x\".repeat(this.n)'",
        lambda: b'{"n":2000000}',
        "would overflow",
    ),
    "a doubled array": (
        "mapping: |\n  let a = [1]\n" + "  let a = [$a, $a]\n" * 30 + "  root = $a",
        lambda: b"{}",
        "limits.bytes",
    ),
}


def errors_in_little_memory(work: Callable[[], list[str]]) -> list[str]:
    """Run something in a forked process with little memory; return what it returns."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with open("/proc/self/statm") as file:
                size = int(file.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + _ROOM, size + _ROOM))
            os.write(into, orjson.dumps(work()))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(into)
    with open(out, "rb") as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the process ended with the status {status}"
    found: list[str] = orjson.loads(said)
    return found


@pytest.mark.parametrize("what", BOMBS)
def test_a_message_beyond_a_limit_is_marked_and_named(what: str, make: Make, a_run: Run) -> None:
    yaml, bomb, limit = BOMBS[what]
    processor, raw = make(yaml), bomb()

    def work() -> list[str]:
        batches = processor.process([Message(raw)], a_run.ex)
        return [message.error or "" for batch in batches for message in batch]

    [error] = errors_in_little_memory(work)
    assert limit in error


@pytest.mark.parametrize(
    ("yaml", "raw", "count"),
    [
        (_avro(TREE), b"\x02" * 40 + b"\0", 1),
        (_avro(NULLS), _long(9_999) + b"\0", 1),
        ("parquet_decode: {}", _repeated(1000, 100), 1000),
        ("unarchive: {format: lines}", b"\n" * 999, 1000),
        ("unarchive: {format: csv}", b"a\n" * 1001, 1000),
        ("unarchive: {format: tar}", _tar(1000), 1000),
        ("jq: {query: 'range(10000)'}", b"{}", 1),
    ],
)
def test_a_message_within_the_limits_passes(
    yaml: str, raw: bytes, count: int, make: Make, a_run: Run
) -> None:
    [batch] = make(yaml).process([Message(raw)], a_run.ex)
    assert len(batch) == count
    assert not [message.error for message in batch if message.error]


def test_a_tree_in_avro_becomes_json(make: Make, a_run: Run) -> None:
    # The library's writer of JSON knows no types that contain themselves.
    [[found]] = make(_avro(TREE)).process([Message(b"\x02\x02\0")], a_run.ex)
    assert found.error is None
    assert found.raw == b'{"c":{"n":{"c":{"n":{"c":null}}}}}'


def test_a_type_without_an_end_is_no_schema(make: Make) -> None:
    with pytest.raises(Exception, match="contains itself without an end"):
        make(_avro('{"type":"record","name":"n","fields":[{"name":"c","type":"n"}]}'))


@pytest.mark.parametrize(
    ("hexadecimal", "shown"),
    [
        ("000000000000f87f", b"null"),
        ("000000000000f07f", b"1e999"),
        ("000000000000f0ff", b"-1e999"),
    ],
)
def test_floats_that_are_no_numbers_in_avro(
    hexadecimal: str, shown: bytes, make: Make, a_run: Run
) -> None:
    [[found]] = make(_avro('"double"')).process([Message(bytes.fromhex(hexadecimal))], a_run.ex)
    assert (found.error, found.raw) == (None, shown)


def test_values_of_parquet_without_a_form_in_json(make: Make, a_run: Run) -> None:
    table = pa.table(
        {
            "duration": pa.array([timedelta(seconds=1), None]),
            "half": pa.array([numpy.float16(1.5), numpy.float16("nan")], pa.float16()),
            "float": [float("inf"), 0.5],
        }
    )
    [rows] = make("parquet_decode: {}").process([Message(_parquet(table))], a_run.ex)
    assert [row.raw for row in rows] == [
        b'{"duration":1000000,"float":null,"half":1.5}',
        b'{"duration":null,"float":0.5,"half":null}',
    ]
