"""What scanners make of bytes that they cannot read."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import Any

import cramjam
import fastavro
import pytest

from streamer.config import parse_config
from streamer.core import zstd
from streamer.core.execution import Execution
from streamer.core.limits import Limits, stream_limits
from streamer.sdk.input.scanning import ScanError

from .cutting import all_of, cuts, messages, scanner
from .test_all_scanners import LINES, PACKED, container, tarred


def until_error(yaml: str, data: bytes, **how: Any) -> tuple[list[bytes], str]:
    found: list[bytes] = []
    with pytest.raises(ScanError) as raised:
        for cut in cuts(scanner(yaml), data, **how):
            found += [message.raw for message in messages(cut)]
    return found, str(raised.value)


@pytest.mark.parametrize(
    ("yaml", "data", "before", "text"),
    [
        ("csv: {}", b"a,b\n1,2\n3\n4,5\n", 1, "record on line 3: wrong number of fields"),
        ("csv: {}", b'a\n1\n\nx"y\n2\n', 1, 'parse error on line 4, column 2: bare "'),
        ("csv: {}", b'a\n"x\n', 0, "parse error on line 2, column 4: extraneous"),
        ("csv: {}", b'"a\n', 0, "extraneous or missing"),
        ("json_documents: {}", b'{"a":1}\nnope\n{"a":2}', 1, "byte 8: invalid character 'o'"),
        ("json_documents: {}", b'{"a":1}{"a":', 1, "byte 7: unexpected EOF"),
        ("json_documents: {}", b"1 ] 2", 1, "byte 2: invalid character ']' looking for beginning"),
        ("json_array: {}", b'{"a":1}', 0, "byte 0: expected opening '[' but got {"),
        ("json_array: {}", b"[1, 2", 1, "unexpected EOF"),
        ("json_array: {}", b"[1 2]", 1, "expected comma after array element"),
        ("json_array: {}", b"[1,]", 1, "failed to decode element: invalid character ']'"),
        ("json_array: {}", b"[1] 2", 1, "expected opening '[' but got 2"),
        ("json_array: {}", b"[1, x]", 1, "failed to decode element: invalid character 'x'"),
        ("json_array: {}", b"[1", 1, "failed to read closing token"),
        ("re_match: {pattern: x, max_buffer_size: 4}", b"xaxaaaaax", 1, "raise max_buffer_size"),
        ("avro: {}", b"", 0, "unexpected EOF"),
        ("avro: {}", b"Obj\x02", 0, "not an Avro container file"),
        ("avro: {}", container().replace(b"null", b"what", 1), 0, "codec 'what' is not known"),
        ("avro: {}", container().replace(b"record", b"recird", 1), 0, "parsing Avro schema: "),
        ("avro: {}", container()[:-1], 3, "unexpected EOF"),
        ("avro: {}", container()[:-1] + b"x", 3, "the mark at the end of a block is another one"),
        ("avro: {}", b"Obj\1\0" + b"s" * 16 + b"\2" + b"\xff" * 9, 0, "parsing Avro schema: "),
        ("avro: {}", container(number=0) + b"\2" + b"\xff" * 8 + b"\1", 0, "limits.bytes allows"),
        ("avro: {}", container(number=0) + b"\xff" * 11, 0, "a number has no end"),
        ("avro: {}", container("deflate")[:-20] + b"xxxx" + container()[-16:], 3, "byte"),
        ("tar: {}", tarred(a=b"1")[:1024] + b"x" * 512, 1, "invalid tar header"),
        ("tar: {}", tarred(a=b"x" * 600)[:700], 0, "unexpected EOF"),
        ("switch: [{re_match_name: csv, scanner: {csv: {}}}]", b"a", 0, "of no candidate"),
    ],
)
def test_what_stands_before_a_fault_is_given_and_the_fault_is_told(
    yaml: str, data: bytes, before: int, text: str
) -> None:
    for size in (1, 5, 1 << 30):
        found, told = until_error(yaml, data, size=size)
        if yaml.startswith("json_array") and text == "unexpected EOF":
            # A number at the end of what there is could be longer: it is read to the end.
            assert found in ([b"1"], [b"1", b"2"])
            continue
        assert len(found) == before
        assert text in told


@pytest.mark.parametrize("algorithm", PACKED)
def test_what_is_cut_off_or_not_packed_is_an_error(algorithm: str) -> None:
    yaml = f"decompress: {{algorithm: {algorithm}}}"
    whole = PACKED[algorithm].removesuffix(b"behind it")
    for data in (whole[:-3], b"certainly not packed at all" * 3, b""):
        if algorithm == "snappy" and not data:
            continue  # a framed stream without a frame holds nothing
        until_error(yaml, data)


def test_a_bomb_is_unpacked_piece_by_piece() -> None:
    size = 40 << 20
    for algorithm, data in (
        ("gzip", gzip.compress(bytes(size))),
        ("zlib", zlib.compress(bytes(size))),
        ("zstd", zstd.compress(bytes(size))),
        ("snappy", bytes(cramjam.snappy.compress(bytes(size)))),
    ):
        of = scanner(f"decompress: {{algorithm: {algorithm}, into: {{chunker: {{size: 65536}}}}}}")
        sizes = [len(messages(cut)) for cut in cuts(of, data)]
        assert sum(sizes) == size // 65536
        assert max(sizes) <= 4


def test_faulty_rows_are_messages_with_the_error_where_the_config_wants_it() -> None:
    of = scanner("csv: {continue_on_error: true}")
    found = all_of(of, b'a,b\n1,2\n3\n4,x"y\n5,6,7\n8,9\n', most=2)
    assert [(message.raw.decode(), message.meta["csv_row"]) for message in found] == [
        ('{"a":"1","b":"2"}', 0),
        ('{"a":"3"}', 1),
        ('{"a":"4"}', 2),
        ('{"a":"5","b":"6"}', 3),
        ('{"a":"8","b":"9"}', 4),
    ]
    assert [message.error for message in found] == [
        None,
        "record on line 3: wrong number of fields",
        'parse error on line 4, column 4: bare " in non-quoted-field',
        "record on line 5: wrong number of fields",
        None,
    ]


def test_lines_that_are_too_long_are_left_out_and_logged_behind_a_wrapping_too() -> None:
    said: list[tuple[str, Any]] = []
    ex = Execution(lambda: 0, lambda level, text, fields: said.append((level, fields["source"])))
    of = scanner("decompress: {algorithm: gzip, into: {lines: {max_buffer_size: 5}}}")
    found = all_of(of, gzip.compress(LINES), ex=ex, name="x.gz")
    assert [message.raw for message in found] == [b"one", b"two", b""]
    assert said == [("WARN", "x.gz")]


@pytest.mark.parametrize(
    ("yaml", "text"),
    [
        ("chunker: {size: 0}", "expected a number of bytes above 0"),
        ("chunker: {}", "size"),
        ("re_match: {pattern: '('}", "missing closing )"),
        ("switch: [{re_match_name: '(', scanner: {lines: {}}}]", "missing closing )"),
        ("decompress: {algorithm: rar}", "rar"),
        ("csv: {custom_delimiter: '\"'}", "other than a quote"),
    ],
)
def test_lint_refuses_what_a_scanner_cannot_do(yaml: str, text: str) -> None:
    from streamer.core.errors import ConfigError

    with pytest.raises(ConfigError, match=text.replace("(", r"\(").replace(")", r"\)")):
        parse_config(f"input: {{file: {{paths: [x], scanner: {{{yaml}}}}}}}", env={})


def test_a_block_that_unpacks_to_too_much_is_refused() -> None:
    made, packed = io.BytesIO(), io.BytesIO()
    fastavro.writer(made, "string", ["x" * 100_000], "deflate")
    fastavro.writer(packed, "null", [None] * 1000)
    with stream_limits(Limits(bytes=50_000, elements=100)):
        assert "a block has more than 50,000 bytes" in until_error("avro: {}", made.getvalue())[1]
        found, text = until_error("avro: {}", packed.getvalue())
    assert (found, "more than the 100 that limits.elements allows" in text) == ([], True)


def test_metadata_of_a_container_file() -> None:
    made = io.BytesIO()
    fastavro.writer(made, {"type": "int", "logicalType": "date", "doc": "when"}, [5])
    [message] = all_of(scanner("avro: {}"), made.getvalue())
    assert (message.raw, dict(message.meta)) == (
        b"5",
        {"path": "in", "avro_schema": '"int"', "avro_schema_fingerprint": 0x7275D51A3F395C8F},
    )
