"""The conditions that a test sets for a message, by their names.

Source: Benthos `internal/config/test/output.go`. Numbers are compared by value (1 is 1.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import re2

from streamer.bloblang import compile_mapping
from streamer.bloblang.runtime.operations import equal
from streamer.errors import MessageError
from streamer.message import Execution, Message
from streamer.query import query_bool
from streamer.spec import Parsed
from streamer.unit_tests.difference import difference_lines, differences, text_lines
from streamer.unit_tests.failure import Failure, Line, as_json, at, failure, labelled, pair
from streamer.unit_tests.files import read_beside
from streamer.unit_tests.operands import sides
from streamer.value import parse_json

_CONDITION: Final = "the condition"

Check = Callable[[Any, Message, Path, Execution], Iterator[Failure]]


def check_message(
    conditions: Parsed, message: Message, directory: Path, ex: Execution
) -> list[Failure]:
    """Return what a message does not fulfil, in the order of the conditions' names, with lines.

    Args:
        conditions: those that the test sets.
        message: the message.
        directory: where the files are that conditions name.
        ex: what mappings may ask for.
    """
    return [
        at(f"{name} [line {conditions.place(name).line}]", found)
        for name in sorted(_CHECKS)
        if conditions.given(name)
        for found in _CHECKS[name](conditions[name], message, directory, ex)
    ]


def _bloblang(text: str, message: Message, directory: Path, ex: Execution) -> Iterator[Failure]:
    try:
        if not query_bool(compile_mapping(text, directory=str(directory)), [message], 0, ex):
            shown = [*_mapping(text), *sides(text, message, directory, ex)]
            yield failure("the mapping's result is false", shown)
    except MessageError as e:
        yield failure(str(e), _mapping(text))


def _content_equals(
    text: str, message: Message, directory: Path, ex: Execution
) -> Iterator[Failure]:
    if text.encode() != message.raw:
        yield failure("content mismatch", text_lines(text, _text(message)))


def _content_matches(
    pattern: str, message: Message, directory: Path, ex: Execution
) -> Iterator[Failure]:
    if re2.search(pattern.encode(), message.raw) is None:
        yield failure("pattern mismatch", labelled("  pattern: ", pattern, "expected"))


def _metadata_equals(
    expected: dict[str, Any], message: Message, directory: Path, ex: Execution
) -> Iterator[Failure]:
    for key, value in sorted(expected.items()):
        if key not in message.meta:
            yield failure(f"metadata key {key!r} expected but not found")
            continue
        found = message.meta[key]
        if not (value is None and found is None) and not equal(value, found):
            both_texts = isinstance(value, str) and isinstance(found, str)
            shown = (value, found) if both_texts else (as_json(value), as_json(found))
            yield failure(f"metadata key {key!r} mismatch", pair(*shown))


def _file_equals(name: str, message: Message, directory: Path, ex: Execution) -> Iterator[Failure]:
    content, problem = read_beside(directory, name)
    if problem:
        yield failure(f"failed to read comparison file: {problem}")
    elif content != message.raw:
        yield failure(
            "content mismatch", text_lines(content.decode(errors="replace"), _text(message))
        )


def _json(superset: bool) -> Check:
    def check(expected: Any, message: Message, directory: Path, ex: Execution) -> Iterator[Failure]:
        # As in Benthos, a text is the text of a JSON document.
        raw = expected.encode() if isinstance(expected, str) else as_json(expected).encode()
        yield from _compare(raw, _CONDITION, message, superset)

    return check


def _file_json(superset: bool) -> Check:
    def check(name: str, message: Message, directory: Path, ex: Execution) -> Iterator[Failure]:
        content, problem = read_beside(directory, name)
        if problem:
            yield failure(f"failed to read comparison JSON file: {problem}")
        else:
            yield from _compare(content, name, message, superset)

    return check


def _compare(expected: bytes, whose: str, message: Message, superset: bool) -> Iterator[Failure]:
    try:
        wanted = parse_json(expected)
    except ValueError as e:
        hint = "; a string is written as '\"text\"'" if whose == _CONDITION else ""
        yield failure(f"{whose} is no JSON document: {e}{hint}")
        return
    try:
        # What is compared is JSON: a time or bytes within a document are texts there.
        found = Message(message.raw).doc
    except MessageError as e:
        yield failure(str(e), labelled("  expected: ", as_json(wanted), "expected"))
        return
    differing = differences(wanted, found, superset)
    if differing:
        what = "JSON superset mismatch" if superset else "JSON content mismatch"
        yield failure(what, difference_lines(differing))


def _mapping(text: str) -> list[Line]:
    return labelled("  mapping: ", text.strip(), "expected")


def _text(message: Message) -> str:
    return message.raw.decode(errors="replace")


_CHECKS: Final[dict[str, Check]] = {
    "bloblang": _bloblang,
    "content_equals": _content_equals,
    "content_matches": _content_matches,
    "metadata_equals": _metadata_equals,
    "file_equals": _file_equals,
    "file_json_equals": _file_json(superset=False),
    "file_json_contains": _file_json(superset=True),
    "json_equals": _json(superset=False),
    "json_contains": _json(superset=True),
}
