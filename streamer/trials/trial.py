"""One trial of a mapping that is being written: what it says, or what it makes of the input.

The answer is plain data, since it goes from the process that tries to the one that shows.
"""

from __future__ import annotations

import re
import time
from typing import Any, Final, TypedDict

import orjson

from streamer.bloblang import BloblangError, Mapping, compile_mapping
from streamer.bloblang.diagnostics import caret
from streamer.bloblang.methods.parsing import indented
from streamer.errors import MessageError, StreamerError
from streamer.message import Execution, Message
from streamer.trials.apply import Style, failure_text, printed
from streamer.trials.given import directory_of, with_variables
from streamer.trials.pieces import pieces
from streamer.value import dump_json

MOST_SHOWN: Final = 1 << 20
"""How many bytes of results are shown; those after them are left out."""
_NAMED: Final = re.compile(r"^(?:unrecognised )?(?:function|method) '([^']+)'")
_WORD: Final = re.compile(r"[\w$@]+|[^\s\w]")
_LINE: Final = re.compile(r"failed assignment \(line (\d+)\)")


class Request(TypedDict, total=False):
    """What is to be tried.

    Attributes:
        mapping: its text.
        input: documents: one, or several when all of the text is not one.
        raw: whether the input is one string instead.
        file: where the mapping is from, for its imports.
        variables: whether `${VARIABLES}` in the mapping are replaced.
        compact: whether results are JSON on one line.
        metadata: what documents have as metadata.
    """

    mapping: str
    input: str
    raw: bool
    file: str | None
    variables: bool
    compact: bool
    metadata: dict[str, Any]


class Problem(TypedDict):
    """What is wrong, and where.

    Attributes:
        text: what is said about it.
        shown: the same with the line and a mark under the place, when that is known.
        line: counts from 1; 0 when it is unknown.
        column: counts characters from 1; 0 when it is unknown.
        length: how many characters are meant; 0 with the column.
    """

    text: str
    shown: str
    line: int
    column: int
    length: int


class Result(TypedDict, total=False):
    """What became of one document: `output`, or `deleted`, or a `problem`.

    Attributes:
        output: as it is printed.
        deleted: whether the mapping deletes it.
        metadata: what the message has then, as JSON; left out when it has none.
        problem: why the mapping failed.
    """

    output: str
    deleted: bool
    metadata: str
    problem: Problem


class Answer(TypedDict, total=False):
    """What came out: a `problem` with the mapping, or `results` for the documents of the input.

    Attributes:
        problem: why there are no results.
        results: one for each document.
        cut: whether there would have been more than is shown.
    """

    problem: Problem
    results: list[Result]
    cut: bool


def attempt(request: Request, impure: bool) -> Answer:
    """Compile a mapping and apply it to the input; whatever goes wrong is part of the answer."""
    text = request["mapping"]
    try:
        if request.get("variables"):
            text = with_variables(text, request.get("file"))
        directory = directory_of(request.get("file"))
        mapping = compile_mapping(text, impure=impure, directory=directory)
    except BloblangError as e:
        return {"problem": _misread(e, text)}
    except StreamerError as e:
        return {"problem": problem(str(e))}
    style = Style(request.get("raw", False), not request.get("compact", False))
    ex = Execution(time.time_ns)
    results: list[Result] = []
    shown = 0
    for document in _documents(request["input"].encode(errors="replace"), style.raw):
        result = _result(mapping, document, style, ex, request.get("metadata"))
        shown += len(result.get("output", "")) + len(result.get("metadata", ""))
        if shown > MOST_SHOWN:
            output = result.get("output", "")
            results.append({"output": output[: max(len(output) - (shown - MOST_SHOWN), 0)]})
            return {"results": results, "cut": True}
        results.append(result)
    return {"results": results}


class _Text:
    """A text that is read in one piece."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    def read1(self, size: int = -1, /) -> bytes:
        text, self._text = self._text, b""
        return text


def _documents(text: bytes, raw: bool) -> list[bytes]:
    """Return several documents only when the text is nothing else: Benthos takes all as one."""
    text = text.removesuffix(b"\n")
    if raw or _is_json(text):
        return [text]
    several = [one for some in pieces(_Text(text), "documents") for one in some]
    return several if len(several) > 1 and all(map(_is_json, several)) else [text]


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _result(
    mapping: Mapping,
    document: bytes,
    style: Style,
    ex: Execution,
    metadata: dict[str, Any] | None = None,
) -> Result:
    message = Message(document, doc=document) if style.raw else Message(document)
    message.meta = dict(metadata or {})
    try:
        made = mapping.apply([message], 0, ex)
        if made is None:
            return {"deleted": True}
        # What the mapping left alone is shown as JSON when it is JSON.
        value: Any = made.doc if made.has_doc() or made.raw is document else made.raw
        result: Result = {"output": printed(value, made, style).decode(errors="replace")}
        if made.meta:
            result["metadata"] = indented(dump_json(dict(made.meta)).decode(), "  ")
        return result
    except MessageError as e:
        if "message as JSON" in str(e):
            return {"output": document.decode(errors="replace")}
        return {"problem": _failed(e)}
    except ValueError as e:
        return {"problem": _failed(e)}


def problem(text: str, line: int = 0) -> Problem:
    """Return a problem of which no more than a line is known."""
    return {"text": text, "shown": text, "line": line, "column": 0, "length": 0}


def _failed(error: Exception) -> Problem:
    found = _LINE.search(str(error))
    text = failure_text(error)
    if text.endswith("MemoryError"):
        text = f"{text.removesuffix('MemoryError')}it takes more memory than is given to it here"
    return problem(text, int(found[1]) if found else 0)


def _misread(error: BloblangError, text: str) -> Problem:
    """Return why a mapping cannot be read, and which of its words is meant.

    The place that an error names is where reading stopped, which may be behind the culprit: a name
    that does not exist is reported at the end of its call.
    """
    lines = text.split("\n")
    number = min(error.line, len(lines))
    at = error.column - 1
    while number > 1 and not lines[number - 1].strip():
        number, at = number - 1, len(lines[number - 2])
    line = lines[number - 1]
    at = min(at, len(line))
    named = _NAMED.search(error.message)
    start = line.rfind(named[1], 0, at + len(named[1])) if named else -1
    if named and start >= 0:
        end = start + len(named[1])
    else:
        # The word at the place; at the end of the line, the last one.
        words = [word.span() for word in _WORD.finditer(line)]
        start, end = next((span for span in words if span[1] > at), (words or [(at, at + 1)])[-1])
        start = max(start, at) if end > at else start
    return {
        "text": str(error),
        "shown": caret(error, text),
        "line": number,
        "column": start + 1,
        "length": max(end - start, 1),
    }
