"""compress and decompress: what Benthos and other programs read, its errors, and back again."""
# ruff: noqa: E501 - tables of whole error texts

import bz2
import gzip
import json
import os
import random
import zlib

import cramjam
import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.bloblang import BloblangError, compile_mapping
from streamer.bloblang.errors import QueryError
from streamer.bloblang.methods.compression import compress, decompress
from streamer.core import zstd
from tests.bloblang.running import run

BOTH_WAYS = ["flate", "gzip", "lz4", "pgzip", "snappy", "zlib", "zstd"]
LEVELS = [-2, -1, 0, 1, 2, 5, 6, 9]
FOX = "The quick brown fox jumps over the lazy dog. "


@pytest.mark.parametrize("algorithm", BOTH_WAYS)
@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=300), st.integers(1, 40), st.sampled_from(LEVELS))
def test_what_is_compressed_comes_back(algorithm, data, times, level):
    assert decompress(algorithm)(compress(algorithm, level)(data * times)) == data * times


@pytest.mark.parametrize("algorithm", BOTH_WAYS)
def test_payloads_beyond_every_block_size_come_back(algorithm):
    chance = random.Random(5)
    data = b"".join(chance.choice([b"a" * 5000, os.urandom(3000), b"xyz"]) for _ in range(60))
    assert decompress(algorithm)(compress(algorithm, -1)(data)) == data


OTHER_PROGRAMS = {
    "flate": lambda data: zlib.decompress(data, -15),
    "gzip": gzip.decompress,
    "lz4": lz4.frame.decompress,
    "pgzip": gzip.decompress,
    "zlib": zlib.decompress,
    "zstd": lambda data: bytes(cramjam.zstd.decompress(data)),
}


@pytest.mark.parametrize("algorithm", OTHER_PROGRAMS)
@pytest.mark.parametrize("level", LEVELS)
def test_what_is_compressed_is_read_by_other_programs(algorithm, level):
    for data in (b"", b"x", b"hello", b"a" * 100, FOX.encode() * 2, os.urandom(3_000)):
        assert OTHER_PROGRAMS[algorithm](compress(algorithm, level)(data)) == data


# What Benthos gives for these, as hexadecimal; only what they hold is the same here.
@pytest.mark.parametrize(
    ("call", "given", "result"),
    [
        ('"gzip"', "x", "1f8b080000096e8800ff000100feff7803008316dc8c01000000"),
        ('"gzip", 1', "x", "1f8b080000096e8804ff000100feff7803008316dc8c01000000"),
        ('"gzip"', "", "1f8b080000096e8800ff03000000000000000000"),
        ('"pgzip"', "", "1f8b080000096e8800ff000000ffff03000000000000000000"),
        ('"zlib"', "hello", "789c000500faff68656c6c6f0300062c0215"),
        ('"zlib", 0', "hello", "7801000500faff68656c6c6f0300062c0215"),
        ('"flate"', "hello", "000500faff68656c6c6f0300"),
        ('"lz4"', "", "04224d186470b900000000055dcc02"),
        ('"lz4"', "x", "04224d186470b9010000807800000000ea30c42e"),
    ],
)
def test_what_benthos_compresses_holds_what_ours_does(call, given, result):
    algorithm = call.split('"')[1]
    found = run(
        f'root.theirs = this.hex.decode("hex").decompress("{algorithm}").string()\n'
        f'root.ours = this.text.compress({call}).decompress("{algorithm}").string()',
        json.dumps({"hex": result, "text": given}),
    )
    assert json.loads(found) == {"theirs": given, "ours": given}


@pytest.mark.parametrize(("algorithm", "size"), [("gzip", 114), ("lz4", 85)])
def test_a_repeated_sentence_is_about_as_small_as_documented(algorithm, size):
    text = (FOX * 2).strip()
    found = int(run(f'root = content().compress("{algorithm}").length()', text))
    assert found <= size + 8


@pytest.mark.parametrize("algorithm", ["gzip", "pgzip", "lz4", "zstd"])
def test_files_behind_each_other_are_read_on(algorithm):
    made = [compress(algorithm, -1)(data) for data in (b"one", b"two")]
    assert decompress(algorithm)(b"".join(made)) == b"onetwo"


@pytest.mark.parametrize("algorithm", ["flate", "zlib"])
def test_what_stands_behind_a_stream_is_not_looked_at(algorithm):
    assert decompress(algorithm)(compress(algorithm, -1)(b"one") + b"rest") == b"one"


FRAME = zstd.compress(b"hello " * 100)
SKIPPABLE = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
CHECKED = bytearray(zstd.compress(b"hello", options={zstd.CompressionParameter.checksum_flag: 1}))
CHECKED[-1] ^= 1


@pytest.mark.parametrize(
    ("data", "result"),
    [
        (b"", 0),
        (SKIPPABLE, 0),
        (SKIPPABLE + FRAME + SKIPPABLE + FRAME, 1200),
        (FRAME[:-3], "unexpected EOF"),
        (FRAME[:4], "unexpected EOF"),
        (FRAME + FRAME[:6], "unexpected EOF"),
        (FRAME + b"rest of it", "zstd: Unknown frame descriptor"),
        (FRAME[:4] + b"\xff" * 20, "zstd: Unsupported frame parameter"),
        (bytes(CHECKED), "zstd: Restored data doesn't match checksum"),
    ],
)
def test_zstd_frames_are_read_on_and_what_is_none_is_refused(data, result):
    if isinstance(result, int):
        assert len(decompress("zstd")(data)) == result
        return
    with pytest.raises(QueryError) as refused:
        decompress("zstd")(data)
    assert str(refused.value) == result


def test_what_another_program_packs_with_zstd_is_read_and_the_other_way_round():
    data = FOX.encode() * 5_000
    assert decompress("zstd")(bytes(cramjam.zstd.compress(data, level=19))) == data
    assert bytes(cramjam.zstd.decompress(compress("zstd", 9)(data))) == data


def test_a_bzip2_stream_with_a_broken_block_is_refused_and_not_cut_short():
    blocks = bytearray(bz2.compress(os.urandom(400_000), 1))
    blocks[-50_000] ^= 255
    with pytest.raises(QueryError, match="bzip2 data invalid: corrupt block"):
        decompress("bzip2")(bytes(blocks))


@pytest.mark.parametrize("rest", [b"rest", b"BZh9rest of it"])
def test_what_stands_behind_a_bzip2_stream_is_not_looked_at(rest):
    data = os.urandom(200_000)
    assert decompress("bzip2")(bz2.compress(data) + rest) == data


def test_bzip2_is_read_only():
    assert decompress("bzip2")(bz2.compress(b"hello")) == b"hello"
    with pytest.raises(BloblangError, match="compression type not recognised: bzip2"):
        compile_mapping('root = this.compress("bzip2")')


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ('"x".compress("gzip", 10)', "gzip: invalid compression level: 10"),
        ('"x".compress("gzip", -4)', "gzip: invalid compression level: -4"),
        ('"x".compress("pgzip", -3)', "gzip: invalid compression level: -3"),
        ('"x".compress("zlib", -3)', "zlib: invalid compression level: -3"),
        ('"x".compress("flate", 10)', "flate: invalid compression level 10: want value in range [-2, 9]"),
        ('"x".compress("lz4", 10)', "lz4: invalid compression level: 262144"),
        ('5.compress("gzip")', "expected bytes value, got number (5)"),
        ('null.decompress("gzip")', "expected bytes value, got null"),
        ('"x".compress(this.n)', "compression type not recognised: nope"),
        ('"".decompress("gzip")', "EOF"),
        ('"x".decompress("gzip")', "unexpected EOF"),
        ('"hello world, hello".decompress("gzip")', "gzip: invalid header"),
        ('"x".decompress("zlib")', "unexpected EOF"),
        ('"hello world, hello".decompress("zlib")', "zlib: invalid header"),
        ('"hello world, hello".decompress("flate")', "flate: corrupt input before offset 5"),
        ('"x".decompress("lz4")', "unexpected EOF"),
        ('"hello".decompress("lz4")', "lz4: bad magic number"),
        ('"".decompress("snappy")', "s2: corrupt input"),
        ('"hello".decompress("snappy")', "s2: corrupt input"),
        ('"hello".decompress("zstd")', "magic number mismatch"),
        ('"x".decompress("bzip2")', "unexpected EOF"),
        ('"hello".decompress("bzip2")', "bzip2 data invalid: bad magic value"),
        ('"x".compress("gzip").slice(0, -5).decompress("gzip")', "unexpected EOF"),
        ('"x".compress("lz4").slice(0, -5).decompress("lz4")', "unexpected EOF"),
        ('"x".compress("zlib").slice(0, -1).decompress("zlib")', "unexpected EOF"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said_in_benthos_words(call, error):
    assert run(f"root = {call}", '{"n":"nope"}') == f'Error("failed assignment (line 1): {error}")'


@pytest.mark.parametrize("algorithm", ["gzip", "zlib", "lz4"])
def test_a_changed_checksum_is_noticed(algorithm):
    data = bytearray(compress(algorithm, -1)(b"hello hello"))
    data[-5 if algorithm == "gzip" else -1] ^= 1
    with pytest.raises(Exception, match="checksum"):
        decompress(algorithm)(bytes(data))


@pytest.mark.parametrize("algorithm", [*BOTH_WAYS, "bzip2"])
@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_give_bytes_or_an_error_of_ours(algorithm, data):
    heads = {"gzip": b"\x1f\x8b\x08\0\0\0\0\0\0\xff", "lz4": b"\x04\x22\x4d\x18", "bzip2": b"BZh9"}
    heads |= {"zstd": b"\x28\xb5\x2f\xfd", "zlib": b"\x78\x9c"}
    for given_data in (data, heads.get(algorithm, b"") + data):
        try:
            assert type(decompress(algorithm)(given_data)) is bytes
        except QueryError as e:
            assert str(e)
