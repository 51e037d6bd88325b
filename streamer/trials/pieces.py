"""The input cut into documents: lines, JSON documents over several lines, or all of it as one.

Pieces come as they arrive: what a slow pipe has brought is handed on before more is waited for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, Literal, Protocol

from streamer.errors import StreamerError

Split = Literal["auto", "lines", "documents", "whole"]
SPLITS: Final[tuple[Split, ...]] = ("auto", "lines", "documents", "whole")

_AT_ONCE: Final = 1 << 18
# What nesting depends on: strings, which may hold brackets, and brackets.
_NESTING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"?|[{}\[\]]')
_OPENING: Final = (b"{", b"[")


class Readable(Protocol):
    """What is read from: a binary file, or stdin."""

    def read1(self, size: int = ..., /) -> bytes:
        """Return what there is, at most so much; wait only when there is nothing yet."""


def pieces(source: Readable, split: Split, longest: int = 0) -> Iterator[list[bytes]]:
    """Return the documents of an input, those that arrived together in one list.

    Args:
        source: what is read.
        split: where a document ends; `auto` looks at the first line, see `splits_by_itself`.
        longest: how many bytes a document must stay below; 0 for any number.

    Raises:
        StreamerError: a document is longer; those before it have been returned.
    """
    chunks = iter(lambda: source.read1(_AT_ONCE), b"")
    if split == "whole":
        yield from _whole(chunks, longest)
        return
    found = _lines(chunks, longest)
    if split == "auto":
        first: list[list[bytes]] = []
        for lines in found:
            first.append(lines)
            if line := next((line for line in lines if line.strip()), b""):
                split = "documents" if _goes_on(line) else "lines"
                break
        found = chain(first, found)
    yield from _documents(found, longest) if split == "documents" else found


def _goes_on(line: bytes) -> bool:
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


def _too_long(number: int, longest: int) -> StreamerError:
    return StreamerError(
        f"document {number} is too long: token too long; it must stay below {longest} bytes; "
        "give a larger --max-token-length, or 0 for no limit"
    )


def _lines(chunks: Iterable[bytes], longest: int) -> Iterator[list[bytes]]:
    """Return lines without their ends, Windows' ones too; the last line needs no end."""
    held: list[bytes] = []
    size = count = 0
    for chunk in chunks:
        whole, newline, rest = chunk.rpartition(b"\n")
        if newline:
            lines = b"".join((*held, whole)).split(b"\n")
            held.clear()
            size = 0
            yield from _checked([line.removesuffix(b"\r") for line in lines], count, longest)
            count += len(lines)
        if rest:
            held.append(rest)
            size += len(rest)
            if longest and size >= longest:
                raise _too_long(count + 1, longest)
    if held:
        yield from _checked([b"".join(held).removesuffix(b"\r")], count, longest)


def _checked(documents: list[bytes], before: int, longest: int) -> Iterator[list[bytes]]:
    if longest:
        for index, document in enumerate(documents):
            if len(document) >= longest:
                if index:
                    yield documents[:index]
                raise _too_long(before + index + 1, longest)
    yield documents


def _documents(found: Iterable[list[bytes]], longest: int) -> Iterator[list[bytes]]:
    """Put lines together until every bracket is closed; several documents may share a line."""
    held: list[bytes] = []
    depth = size = count = 0
    for lines in found:
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
                        held.append(line[start : match.end()])
                        ready.append(b"\n".join(held).strip())
                        held.clear()
                        start, size = match.end(), 0
            rest = line[start:]
            if depth:
                held.append(rest)
                size += len(rest) + 1
            else:
                # Numbers, strings and so on stand by themselves, and so does what is not JSON.
                ready += [rest.strip()] if rest.strip() else []
            if longest and size > longest:
                if ready:
                    yield ready
                raise _too_long(count + len(ready) + 1, longest)
        if ready:
            yield from _checked(ready, count, longest)
            count += len(ready)
    if held:
        yield from _checked([b"\n".join(held).strip()], count, longest)


def _whole(chunks: Iterable[bytes], longest: int) -> Iterator[list[bytes]]:
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        # One more, for the line end that may be the last byte.
        if longest and size > longest + 1:
            raise _too_long(1, longest)
    if held:
        text = b"".join(held).removesuffix(b"\n").removesuffix(b"\r")
        yield from _checked([text], 0, longest)
