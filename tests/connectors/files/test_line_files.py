"""Byte ranges: every line exactly once, in order, however the files are cut."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.connectors.files.line_files import (
    BytePosition,
    ByteRange,
    LineFiles,
    find_line_end,
    read_blocks,
    split_range,
)
from streamer.sdk.input.replayable import Limit

lines = st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"x")), max_size=60)


def series(paths: list[Path], delimiter: bytes = b"\n") -> LineFiles:
    return LineFiles(
        0, len(paths) - 1, lambda n: str(paths[n]), lambda n: paths[n].stat().st_size, delimiter
    )


def read(piece: ByteRange) -> bytes:
    return b"".join(read_blocks(piece, b"\n"))


@settings(max_examples=60, deadline=None)
@given(st.lists(lines, max_size=4), st.integers(1, 50), st.integers(1, 400), st.booleans())
def test_every_byte_is_read_once_and_in_order(
    tmp_path_factory, files, messages, size, ends_with_newline
):
    root = tmp_path_factory.mktemp("series")
    paths = []
    for number, content in enumerate(files):
        paths.append(root / str(number))
        body = b"\n".join(content) + (b"\n" if ends_with_newline and content else b"")
        paths[-1].write_bytes(body)
    whole = series(paths)
    spot, out, at_end, steps = BytePosition(0, 0), b"", not paths, 0
    while not at_end:
        reach = whole.find_batch_end(spot, Limit(messages, size))
        pieces = whole.split(spot, reach.position, 3)
        out += b"".join(read(piece) for piece in pieces)
        assert reach.is_at_end or reach.position > spot, "no progress"
        spot, at_end = reach.position, reach.is_at_end
        steps += 1
        assert steps < 1000
    assert out == b"".join(path.read_bytes() for path in paths)


@settings(max_examples=60, deadline=None)
@given(lines, st.integers(1, 7))
def test_cuts_are_ends_of_lines(tmp_path_factory, content, parts):
    path = tmp_path_factory.mktemp("cut") / "f"
    body = b"".join(line + b"\n" for line in content)
    path.write_bytes(body)
    pieces = split_range(ByteRange(str(path), 0, len(body)), parts, b"\n", min_bytes=1)
    assert b"".join(read(piece) for piece in pieces) == body
    for piece in pieces:
        assert body[piece.end - 1 : piece.end] == b"\n"


def test_a_position_that_is_an_end_of_a_line_is_kept(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"ab\ncd\nef")
    ends = [find_line_end(path, position, 8, b"\n") for position in range(1, 9)]
    assert ends == [3, 3, 3, 6, 6, 6, 8, 8]


def test_a_long_delimiter_is_found_across_blocks(tmp_path):
    path = tmp_path / "f"
    body = b"x" * ((1 << 16) - 1) + b"ENDtail"
    path.write_bytes(body)
    assert find_line_end(path, 1, len(body), b"END") == (1 << 16) + 2


def test_a_line_longer_than_the_limit_is_taken_whole(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"y" * 1000 + b"\nz\n")
    reach = series([path]).find_batch_end(BytePosition(0, 0), Limit(messages=1, size=10))
    assert reach.position == BytePosition(0, 1001)


def test_a_file_that_became_shorter_ends_the_reading(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"a\nb\n")
    assert read(ByteRange(str(path), 0, 400)) == b"a\nb\n"


def split(body: bytes, delimiter: bytes) -> list[bytes]:
    """Cut bytes into lines as the scanner does: there is none behind the last delimiter."""
    *lines, last = body.split(delimiter)
    return [*lines, last] if last else lines


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([b"\n\n", b"--", b"aba", b"ab"]),
    st.lists(st.sampled_from([b"a", b"b", b"\n", b"-", b"x" * 9]), max_size=80).map(b"".join),
    st.integers(1, 30),
    st.integers(1, 7),
)
def test_a_long_delimiter_cuts_as_if_the_file_were_read_at_once(
    tmp_path_factory, delimiter, body, size, parts
):
    path = tmp_path_factory.mktemp("long") / "f"
    path.write_bytes(body)
    whole = series([path], delimiter)
    spot, lines, at_end = BytePosition(0, 0), [], False
    while not at_end:
        reach = whole.find_batch_end(spot, Limit(size=size))
        taken = ByteRange(str(path), spot.position, reach.position.position)
        for piece in split_range(taken, parts, delimiter, min_bytes=1):
            for block in read_blocks(piece, delimiter):
                lines += split(block, delimiter)
        spot, at_end = reach.position, reach.is_at_end
    assert lines == split(body, delimiter)


def test_blocks_end_at_delimiters_that_count(tmp_path, monkeypatch):
    monkeypatch.setattr("streamer.connectors.files.line_files.BLOCK_BYTES", 5)
    path = tmp_path / "f"
    body = b"a\n\n\nb\n\nc"
    path.write_bytes(body)
    given_blocks = read_blocks(ByteRange(str(path), 0, len(body)), b"\n\n")
    lines = [line for block in given_blocks for line in split(block, b"\n\n")]
    assert lines == [b"a", b"\nb", b"c"]
