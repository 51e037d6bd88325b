"""The input cut into documents: lines, JSON documents over several lines, or all of it as one.

Pieces come as they arrive: what a slow pipe has brought is handed on before more is waited for.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, Literal, Protocol

from streamer.core.errors import StreamerError

Split = Literal["auto", "lines", "documents", "whole"]
SPLITS: Final[tuple[Split, ...]] = ("auto", "lines", "documents", "whole")

_READ_BYTES: Final = 1 << 18
# What nesting depends on: strings, which may hold brackets, and brackets.
_NESTING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"?|[{}\[\]]')
_OPENING: Final = (b"{", b"[")


class Readable(Protocol):
    """A binary file, or stdin."""

    def read1(self, size: int = ..., /) -> bytes:
        """Return what there is, at most so much; wait only when there is nothing yet."""


def split_documents(source: Readable, split: Split, max_bytes: int = 0) -> Iterator[list[bytes]]:
    """Return the documents of an input, those that arrived together in one list.

    Args:
        source: what is read.
        split: where a document ends; `auto` looks at the first line, see `_begins_document`.
        max_bytes: how many bytes a document must stay below; 0 for any number.

    Raises:
        StreamerError: a document is longer; those before it have been returned.
    """
    chunks = iter(lambda: source.read1(_READ_BYTES), b"")
    if split == "whole":
        yield from _read_whole(chunks, max_bytes)
        return
    batches = _split_lines(chunks, max_bytes)
    if split == "auto":
        first: list[list[bytes]] = []
        for lines in batches:
            first.append(lines)
            if line := next((line for line in lines if line.strip()), b""):
                split = "documents" if _begins_document(line) else "lines"
                break
        batches = chain(first, batches)
    yield from _join_lines(batches, max_bytes) if split == "documents" else batches


def split_text(text: bytes, split: Split) -> list[bytes]:
    """Return the documents of a text that is there as a whole; see `split_documents`."""
    return [one for some in split_documents(io.BytesIO(text), split) for one in some]


def _begins_document(line: bytes) -> bool:
    """Whether a line is the beginning of a JSON document that is written over several lines.

    A line that was cut off in the middle is not taken for one: who indents JSON breaks the line
    after a bracket or a comma.
    """
    text = line.decode(errors="replace").strip()
    if not text.startswith(("{", "[")) or not text.endswith(("{", "[", ",")):
        return False
    try:
        json.loads(text)
    except json.JSONDecodeError as e:
        return e.pos >= len(text)
    except RecursionError:
        return True
    return False


def _make_length_error(number: int, max_bytes: int) -> StreamerError:
    return StreamerError(
        f"document {number} is too long: token too long; it must stay below {max_bytes} bytes; "
        "give a larger --max-token-length, or 0 for no limit"
    )


def _split_lines(chunks: Iterable[bytes], max_bytes: int) -> Iterator[list[bytes]]:
    """Return lines without their ends, Windows' ones too; the last line needs no end."""
    pending: list[bytes] = []
    size = count = 0
    for chunk in chunks:
        whole, newline, rest = chunk.rpartition(b"\n")
        if newline:
            lines = b"".join((*pending, whole)).split(b"\n")
            pending.clear()
            size = 0
            yield from _check_lengths(
                [line.removesuffix(b"\r") for line in lines], count, max_bytes
            )
            count += len(lines)
        if rest:
            pending.append(rest)
            size += len(rest)
            if max_bytes and size >= max_bytes:
                raise _make_length_error(count + 1, max_bytes)
    if pending:
        yield from _check_lengths([b"".join(pending).removesuffix(b"\r")], count, max_bytes)


def _check_lengths(documents: list[bytes], before: int, max_bytes: int) -> Iterator[list[bytes]]:
    if max_bytes:
        for index, document in enumerate(documents):
            if len(document) >= max_bytes:
                if index:
                    yield documents[:index]
                raise _make_length_error(before + index + 1, max_bytes)
    yield documents


def _join_lines(batches: Iterable[list[bytes]], max_bytes: int) -> Iterator[list[bytes]]:
    """Put lines together until every bracket is closed; several documents may share a line."""
    pending: list[bytes] = []
    depth = size = count = 0
    for lines in batches:
        ready: list[bytes] = []
        for line in lines:
            start = 0
            for match in _NESTING.finditer(line):
                mark = match[0]
                if mark in _OPENING:
                    depth += 1
                elif mark in (b"}", b"]"):
                    depth = max(depth - 1, 0)
                    if depth == 0:
                        pending.append(line[start : match.end()])
                        ready.append(b"\n".join(pending).strip())
                        pending.clear()
                        start, size = match.end(), 0
            rest = line[start:]
            if depth:
                pending.append(rest)
                size += len(rest) + 1
            else:
                # Numbers, strings and so on stand by themselves, and so does what is not JSON.
                ready += [rest.strip()] if rest.strip() else []
            if max_bytes and size > max_bytes:
                if ready:
                    yield ready
                raise _make_length_error(count + len(ready) + 1, max_bytes)
        if ready:
            yield from _check_lengths(ready, count, max_bytes)
            count += len(ready)
    if pending:
        yield from _check_lengths([b"\n".join(pending).strip()], count, max_bytes)


def _read_whole(chunks: Iterable[bytes], max_bytes: int) -> Iterator[list[bytes]]:
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        # One more, for the line end that may be the last byte.
        if max_bytes and size > max_bytes + 1:
            raise _make_length_error(1, max_bytes)
    if parts:
        text = b"".join(parts).removesuffix(b"\n").removesuffix(b"\r")
        yield from _check_lengths([text], 0, max_bytes)
