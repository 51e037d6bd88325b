"""What holds for every scanner: how the bytes arrive does not matter, and marks are places."""

from __future__ import annotations

import bz2
import gzip
import io
import tarfile
import zlib

import cramjam
import fastavro
import lz4.frame
import pytest

from streamer.components.catalog import COMPONENTS
from streamer.core import zstd
from streamer.sdk.input.scanning import START_MARK
from streamer.sdk.spec import Kind

from .cutting import all_of, cuts, messages, raws, scanner, stored

AVRO_CODECS = ("deflate", "snappy", "bzip2", "xz", "zstandard")
LINES = b"one\ntwo\r\n\nthree"


def tarred(**files: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def deflated(data: bytes) -> bytes:
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    return stream.compress(data) + stream.flush()


def framed(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress(data))


def container(codec: str = "null", number: int = 5) -> bytes:
    """Values of a union, two in a block."""
    made, schema = io.BytesIO(), {"type": "record", "name": "R", "fields": FIELDS}
    values = [{"n": n, "s": None if n % 2 else "x" * n} for n in range(number)]
    fastavro.writer(made, schema, values, codec, sync_interval=3)
    return made.getvalue()


FIELDS = [{"name": "n", "type": "long"}, {"name": "s", "type": ["null", "string"]}]
TAGGED = [
    b'{"n":0,"s":{"string":""}}',
    b'{"n":1,"s":null}',
    b'{"n":2,"s":{"string":"xx"}}',
    b'{"n":3,"s":null}',
    b'{"n":4,"s":{"string":"xxxx"}}',
]

PACKED = {
    "bzip2": bz2.compress(LINES[:5]) + bz2.compress(LINES[5:]),
    "flate": deflated(LINES) + b"behind it",
    "gzip": gzip.compress(LINES[:5], mtime=0) + gzip.compress(LINES[5:], mtime=0),
    "lz4": lz4.frame.compress(LINES[:5]) + lz4.frame.compress(LINES[5:]),
    "pgzip": gzip.compress(LINES, mtime=0),
    "snappy": framed(LINES),
    "zlib": zlib.compress(LINES) + b"behind it",
    "zstd": zstd.compress(LINES[:5]) + zstd.compress(LINES[5:]),
}

CASES: list[tuple[str, bytes, list[bytes]]] = [
    ("avro: {}", container(), TAGGED),
    *(("avro: {}", container(codec), TAGGED) for codec in AVRO_CODECS),
    ("avro: {raw_json: true}", container(number=2), [b'{"n":0,"s":""}', b'{"n":1,"s":null}']),
    ("avro: {}", container(number=0), []),
    ("chunker: {size: 4}", b"abcdefghij", [b"abcd", b"efgh", b"ij"]),
    ("chunker: {size: 4}", b"abcdefgh", [b"abcd", b"efgh"]),
    ("chunker: {size: 4}", b"", []),
    ("lines: {}", LINES, [b"one", b"two", b"", b"three"]),
    ("lines: {omit_empty: true}", LINES, [b"one", b"two", b"three"]),
    ("lines: {custom_delimiter: '::'}", b"a:::b::c:", [b"a", b":b", b"c:"]),
    ("lines: {custom_delimiter: 'X'}", b"firstXsecondXthird", [b"first", b"second", b"third"]),
    ("to_the_end: {}", LINES, [LINES]),
    ("to_the_end: {}", b"", [b""]),
    ("csv: {}", b"a,b\n1,2\r\n\n3,4", [b'{"a":"1","b":"2"}', b'{"a":"3","b":"4"}']),
    ("csv: {parse_header_row: false}", b"a,b\n1,\n", [b'["a","b"]', b'["1",""]']),
    ("csv: {custom_delimiter: '|'}", b"a|b\n1|2,2\n", [b'{"a":"1","b":"2,2"}']),
    (
        "csv: {}",
        b'a,b\n1,2\n"x ""y""\nz",4\n5,"6"\n7,8\n',
        [
            b'{"a":"1","b":"2"}',
            b'{"a":"x \\"y\\"\\nz","b":"4"}',
            b'{"a":"5","b":"6"}',
            b'{"a":"7","b":"8"}',
        ],
    ),
    ("csv: {lazy_quotes: true}", b'a,b\nx"y,"z"w"\n', [b'{"a":"x\\"y","b":"z\\"w"}']),
    (
        "csv: {lazy_quotes: true}",
        b'a\n"x\ny\nz',
        [b'{"a":"x\\ny\\nz"}'],
    ),
    ("csv: {}", b"a,b\n", []),
    ("csv: {}", b"", []),
    ("csv: {}", "ä,b\nö,ü\n".encode(), ['{"b":"ü","ä":"ö"}'.encode()]),
    ("json_documents: {}", b'{"b":1, "a":[2]}\n{"c":3}\n', [b'{"a":[2],"b":1}', b'{"c":3}']),
    (
        "json_documents: {}",
        b' {\n "a": "}\\"{"\n}{"b":[[]]}12 "x" true\n\n null[1,\n2]',
        [b'{"a":"}\\"{"}', b'{"b":[[]]}', b"12", b'"x"', b"true", b"null", b"[1,2]"],
    ),
    ("json_documents: {}", b" \n ", []),
    (
        "json_array: {}",
        b' [ {"b": "x y",\n"a": 1}, 2 ,"t",[ ]]\n[true] []',
        [b'{"b":"x y","a":1}', b"2", b'"t"', b"[]", b"true"],
    ),
    ("json_array: {}", b"", []),
    (
        "re_match: {pattern: '(?m)^[0-9]{2}:'}",
        b"head\n10:a\nb\n11:c\n12:d",
        [b"head\n", b"10:a\nb\n", b"11:c\n", b"12:d"],
    ),
    ("re_match: {pattern: 'x'}", b"no match at all", [b"no match at all"]),
    ("re_match: {pattern: '^split:'}", b"split:a split:b", [b"split:a split:b"]),
    ("skip_bom: {into: {lines: {}}}", b"\xef\xbb\xbfa\nb", [b"a", b"b"]),
    ("skip_bom: {into: {lines: {}}}", b"a\nb", [b"a", b"b"]),
    ("skip_bom: {into: {csv: {}}}", b"\xff\xfea\n1", [b'{"a":"1"}']),
    ("skip_bom: {}", b"\xff\xfe\0\0ab", [b"ab"]),
    ("skip_bom: {}", b"\xef\xbb", [b"\xef\xbb"]),
    ("tar: {}", tarred(a=b"1", b=b"x" * 600, c=b""), [b"1", b"x" * 600, b""]),
    ("tar: {}", b"", []),
    ("switch: [{re_match_name: '^out', scanner: {tar: {}}}, {scanner: {lines: {}}}]", LINES, []),
    *[
        (f"decompress: {{algorithm: {name}, into: {{lines: {{}}}}}}", packed, [])
        for name, packed in PACKED.items()
    ],
    (
        "decompress: {algorithm: gzip, into: {tar: {}}}",
        gzip.compress(tarred(a=b"1", b=b"22"), mtime=0),
        [b"1", b"22"],
    ),
    ("decompress: {algorithm: zstd}", PACKED["zstd"], [LINES]),
]
# What holds lines in any wrapping gives them.
CASES = [
    (yaml, data, expected or [b"one", b"two", b"", b"three"])
    if "into: {lines" in yaml and yaml.startswith("decompress") or yaml.startswith("switch")
    else (yaml, data, expected)
    for yaml, data, expected in CASES
]
IDS = [f"{number}-{yaml.partition(':')[0]}" for number, (yaml, _, _) in enumerate(CASES)]
every_case = pytest.mark.parametrize(("yaml", "data", "expected"), CASES, ids=IDS)


def test_every_scanner_is_among_the_cases() -> None:
    assert {yaml.partition(":")[0] for yaml, _, _ in CASES} == set(COMPONENTS[Kind.SCANNER])


@every_case
def test_the_messages_are_the_same_however_the_bytes_arrive(
    yaml: str, data: bytes, expected: list[bytes]
) -> None:
    of = scanner(yaml)
    for size in (1, 2, 3, 7, 1 << 30):
        assert raws(of, data, size=size) == expected
        assert raws(of, data, size=size, most=1) == expected


@every_case
def test_reading_goes_on_from_any_mark_as_if_it_had_not_stopped(
    yaml: str, data: bytes, expected: list[bytes]
) -> None:
    of = scanner(yaml)
    whole = [(message.raw, dict(message.meta)) for message in all_of(of, data)]
    marks = [START_MARK, *(cut.mark for cut in cuts(of, data, most=1))]
    assert [mark.number for mark in marks] == list(range(len(expected) + 1))
    for mark in marks:
        rest = all_of(of, data, since=stored(mark), size=5)
        assert [(message.raw, dict(message.meta)) for message in rest] == whole[mark.number :]


@every_case
def test_cuts_have_at_most_as_many_messages_as_asked_for_and_the_metadata_of_the_source(
    yaml: str, data: bytes, expected: list[bytes]
) -> None:
    for cut in cuts(scanner(yaml), data, most=2, name="x.txt"):
        found = messages(cut)
        assert 0 < len(found) <= 2
        assert {message.meta["path"] for message in found} == {"x.txt"}


@pytest.mark.parametrize(
    ("yaml", "begin", "expected"),
    [
        ("lines: {}", b"a\nb\nc", 2),
        ("csv: {}", b"h\n1\n2\n3", 2),
        ("csv: {}", b'h\n1\n2\n"3\n', 2),
        ("json_documents: {}", b'{"a":1}\n{"a":2}\n{"a', 2),
        ("json_documents: {}", b'{"a":1}{"a":2}{"a', 2),
        ("json_array: {}", b"[1,2,3", 2),
        ("json_array: {}", b"[[1],[2],[3", 2),
        ("chunker: {size: 2}", b"aabbc", 2),
        ("re_match: {pattern: '#'}", b"#a#b#c", 2),
        ("tar: {}", tarred(a=b"1", b=b"2", c=b"3")[: 3 * 1024 - 100], 2),
    ],
)
def test_a_message_that_is_there_is_given_before_more_is_asked_for(
    yaml: str, begin: bytes, expected: int
) -> None:
    class Open:
        """A connection that nothing more comes from yet."""

        def __init__(self) -> None:
            self.data = begin

        def read(self, size: int, /) -> bytes:
            if not self.data:
                raise TimeoutError
            found, self.data = self.data[:size], self.data[size:]
            return found

    from streamer.sdk.input.scanning import silent_input

    found: list[bytes] = []
    with pytest.raises(TimeoutError):
        for cut in scanner(yaml).scan_stream(silent_input(Open())):
            found += [message.raw for message in messages(cut)]
    assert len(found) == expected
