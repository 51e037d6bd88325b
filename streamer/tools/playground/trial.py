"""One trial of a mapping that is being written: what it says, or what it makes of the input.

The answer is plain data, since it goes from the process that tries to the one that shows.
"""

from __future__ import annotations

import re
import time
from typing import Any, Final, TypedDict

import orjson

from streamer.bloblang import BloblangError, Mapping, compile_mapping
from streamer.bloblang.carets import find_culprit, format_caret
from streamer.bloblang.methods.parsing import indent_json
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.keyed_state import TransientState
from streamer.core.message import Message
from streamer.tools.playground.apply import DocumentStyle, format_failure, format_result
from streamer.tools.playground.mapping_environment import (
    find_import_directory,
    substitute_variables,
)
from streamer.tools.playground.split_documents import Split, split_text

MAX_SHOWN_BYTES: Final = 1 << 20
"""How many bytes of results are shown; those after them are left out."""
_LINE_NUMBER: Final = re.compile(r"failed assignment \(line (\d+)\)")


class Request(TypedDict, total=False):
    """A mapping and its input.

    Attributes:
        mapping: its text.
        input: documents: one, or several when all of the text is not one.
        raw: whether the input is one string instead.
        file: where the mapping is from, for its imports.
        variables: whether `${VARIABLES}` in the mapping are replaced.
        compact: whether results are JSON on one line.
        metadata: what documents have as metadata.
        batch: whether the input is several documents, a line each, which are one batch.
        group_by: a mapping; documents for which it gives the same value are a batch. Empty for
            one batch of all.
    """

    mapping: str
    input: str
    raw: bool
    file: str | None
    variables: bool
    compact: bool
    metadata: dict[str, Any]
    batch: bool
    group_by: str


class Problem(TypedDict):
    """A problem and its place.

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
    """The outcome for one document: `output`, or `deleted`, or a `problem`.

    Attributes:
        output: as it is printed.
        deleted: whether the mapping deletes it.
        metadata: what the message has then, as JSON; left out when it has none.
        problem: why the mapping failed.
        batch: the number of its batch, from 1; left out unless documents are batches.
    """

    output: str
    deleted: bool
    metadata: str
    problem: Problem
    batch: int


class Answer(TypedDict, total=False):
    """The outcome: a `problem` with the mapping, or `results` for the documents of the input.

    Attributes:
        problem: why there are no results.
        results: one for each document.
        cut: whether there would have been more than is shown.
    """

    problem: Problem
    results: list[Result]
    cut: bool


def run_trial(request: Request, impure: bool) -> Answer:
    """Compile a mapping and apply it to the input; whatever goes wrong is part of the answer."""
    text = request["mapping"]
    try:
        if request.get("variables"):
            text = substitute_variables(text, request.get("file"))
        directory = find_import_directory(request.get("file"))
        mapping = compile_mapping(text, impure=impure, directory=directory)
    except BloblangError as e:
        return {"problem": _explain_syntax_error(e, text)}
    except StreamerError as e:
        return {"problem": make_problem(str(e))}
    style = DocumentStyle(request.get("raw", False), not request.get("compact", False))
    ex = Execution(time.time_ns)
    ex.keyed_state = TransientState()
    batches = _make_batches(request, style, impure, ex)
    if not isinstance(batches, list):
        return {"problem": batches}
    results: list[Result] = []
    shown = 0
    for number, batch in enumerate(batches, 1):
        for index in range(len(batch)):
            result = _apply_to_document(mapping, batch, index, style, ex)
            if request.get("batch"):
                result["batch"] = number
            shown += len(result.get("output", "")) + len(result.get("metadata", ""))
            if shown > MAX_SHOWN_BYTES:
                output = result.get("output", "")
                results.append(
                    {"output": output[: max(len(output) - (shown - MAX_SHOWN_BYTES), 0)]}
                )
                return {"results": results, "cut": True}
            results.append(result)
    return {"results": results}


def _make_batches(
    request: Request, style: DocumentStyle, impure: bool, ex: Execution
) -> list[list[Message]] | Problem:
    """Return the input as batches, or why it cannot be grouped."""
    text = request["input"].encode(errors="replace")
    if request.get("batch"):
        split: Split = "lines" if style.raw else "auto"
        documents = [one for one in split_text(text, split) if one.strip()]
    else:
        documents = _split_input(text, style.raw)
    messages = [_make_message(one, style, request.get("metadata")) for one in documents]
    if not request.get("batch"):
        return [[message] for message in messages]
    group_by = request.get("group_by", "")
    if not group_by.strip():
        return [messages] if messages else []
    try:
        key = compile_mapping(group_by, impure=impure)
        groups: dict[str, list[Message]] = {}
        for index, message in enumerate(messages):
            value = key.query(messages, index, ex)
            groups.setdefault(repr(value), []).append(message)
    except (BloblangError, MessageError) as e:
        return make_problem(f"group by: {e}")
    return list(groups.values())


def _make_message(
    document: bytes, style: DocumentStyle, metadata: dict[str, Any] | None
) -> Message:
    message = Message(document, doc=document) if style.raw else Message(document)
    message.meta = dict(metadata or {})
    return message


def _split_input(text: bytes, raw: bool) -> list[bytes]:
    """Return several documents only when the text is nothing else: Benthos takes all as one."""
    text = text.removesuffix(b"\n")
    if raw or _is_json(text):
        return [text]
    several = split_text(text, "documents")
    return several if len(several) > 1 and all(map(_is_json, several)) else [text]


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _apply_to_document(
    mapping: Mapping, batch: list[Message], index: int, style: DocumentStyle, ex: Execution
) -> Result:
    document = batch[index].raw
    try:
        mapped = mapping.apply(batch, index, ex)
        if mapped is None:
            return {"deleted": True}
        # What the mapping left alone is shown as JSON when it is JSON.
        value: Any = mapped.doc if mapped.has_doc() or mapped.raw is document else mapped.raw
        result: Result = {"output": format_result(value, mapped, style).decode(errors="replace")}
        if mapped.meta:
            result["metadata"] = indent_json(dump_json(dict(mapped.meta)).decode(), "  ")
        return result
    except MessageError as e:
        if "message as JSON" in str(e):
            return {"output": document.decode(errors="replace")}
        return {"problem": _explain_failure(e)}
    except ValueError as e:
        return {"problem": _explain_failure(e)}


def make_problem(text: str, line: int = 0) -> Problem:
    """Return a problem of which no more than a line is known."""
    return {"text": text, "shown": text, "line": line, "column": 0, "length": 0}


def _explain_failure(error: Exception) -> Problem:
    match = _LINE_NUMBER.search(str(error))
    text = format_failure(error)
    if text.endswith("MemoryError"):
        text = f"{text.removesuffix('MemoryError')}it takes more memory than is given to it here"
    return make_problem(text, int(match[1]) if match else 0)


def _explain_syntax_error(error: BloblangError, text: str) -> Problem:
    """Return why a mapping cannot be read, and which of its words is meant."""
    culprit = find_culprit(error, text)
    return {
        "text": str(error),
        "shown": format_caret(error, text),
        "line": culprit.line,
        "column": culprit.column,
        "length": culprit.length,
    }
