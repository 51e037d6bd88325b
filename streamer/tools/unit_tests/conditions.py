"""The conditions that a test sets for a message, by their names.

Source: Benthos `internal/config/test/output.go`. Numbers are compared by value (1 is 1.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import re2

from streamer.bloblang import compile_mapping
from streamer.bloblang.golib.operations import is_equal
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.parse import parse_json
from streamer.core.message import Message
from streamer.sdk.mapping_query import query_bool
from streamer.sdk.spec import ParsedFields
from streamer.tools.unit_tests.difference import (
    find_differences,
    format_differences,
    format_text_difference,
)
from streamer.tools.unit_tests.failed_comparison import explain_false_query
from streamer.tools.unit_tests.failure import (
    Failure,
    Line,
    add_place,
    format_pair,
    label_lines,
    make_failure,
    to_json_text,
)
from streamer.tools.unit_tests.files import read_relative_file

_CONDITION_NAME: Final = "the condition"

Check = Callable[[Any, Message, Path, Execution], Iterator[Failure]]


def check_message(
    conditions: ParsedFields, message: Message, directory: Path, ex: Execution
) -> list[Failure]:
    """Return what a message does not fulfil, in the order of the conditions' names, with lines.

    Args:
        conditions: those that the test sets.
        message: the message.
        directory: where the files are that conditions name.
        ex: what mappings may ask for.
    """
    return [
        add_place(f"{name} [line {conditions.place(name).line}]", reason)
        for name in sorted(_CHECKS)
        if conditions.is_given(name)
        for reason in _CHECKS[name](conditions[name], message, directory, ex)
    ]


def _check_bloblang(
    text: str, message: Message, directory: Path, ex: Execution
) -> Iterator[Failure]:
    try:
        if not query_bool(compile_mapping(text, directory=str(directory)), [message], 0, ex):
            lines = [*_format_mapping(text), *explain_false_query(text, message, directory, ex)]
            yield make_failure("the mapping's result is false", lines)
    except MessageError as e:
        yield make_failure(str(e), _format_mapping(text))


def _check_content_equals(
    text: str, message: Message, directory: Path, ex: Execution
) -> Iterator[Failure]:
    if text.encode() != message.raw:
        yield make_failure(
            "content mismatch", format_text_difference(text, _decode_message(message))
        )


def _check_content_matches(
    pattern: str, message: Message, directory: Path, ex: Execution
) -> Iterator[Failure]:
    if re2.search(pattern.encode(), message.raw) is None:
        yield make_failure("pattern mismatch", label_lines("  pattern: ", pattern, "expected"))


def _check_metadata_equals(
    expected: dict[str, Any], message: Message, directory: Path, ex: Execution
) -> Iterator[Failure]:
    for key, value in sorted(expected.items()):
        if key not in message.meta:
            yield make_failure(f"metadata key {key!r} expected but not found")
            continue
        received = message.meta[key]
        if not (value is None and received is None) and not is_equal(value, received):
            both_texts = isinstance(value, str) and isinstance(received, str)
            shown = (
                (value, received) if both_texts else (to_json_text(value), to_json_text(received))
            )
            yield make_failure(f"metadata key {key!r} mismatch", format_pair(*shown))


def _check_file_equals(
    name: str, message: Message, directory: Path, ex: Execution
) -> Iterator[Failure]:
    content, problem = read_relative_file(directory, name)
    if problem:
        yield make_failure(f"failed to read comparison file: {problem}")
    elif content != message.raw:
        yield make_failure(
            "content mismatch",
            format_text_difference(content.decode(errors="replace"), _decode_message(message)),
        )


def _make_json_check(superset: bool) -> Check:
    def check(expected: Any, message: Message, directory: Path, ex: Execution) -> Iterator[Failure]:
        # As in Benthos, a text is the text of a JSON document.
        raw = expected.encode() if isinstance(expected, str) else to_json_text(expected).encode()
        yield from _compare_json(raw, _CONDITION_NAME, message, superset)

    return check


def _make_file_json_check(superset: bool) -> Check:
    def check(name: str, message: Message, directory: Path, ex: Execution) -> Iterator[Failure]:
        content, problem = read_relative_file(directory, name)
        if problem:
            yield make_failure(f"failed to read comparison JSON file: {problem}")
        else:
            yield from _compare_json(content, name, message, superset)

    return check


def _compare_json(
    expected: bytes, whose: str, message: Message, superset: bool
) -> Iterator[Failure]:
    try:
        expected_value = parse_json(expected)
    except ValueError as e:
        hint = "; a string is written as '\"text\"'" if whose == _CONDITION_NAME else ""
        yield make_failure(f"{whose} is no JSON document: {e}{hint}")
        return
    try:
        # What is compared is JSON: a time or bytes within a document are texts there.
        received_value = Message(message.raw).doc
    except MessageError as e:
        yield make_failure(
            str(e), label_lines("  expected: ", to_json_text(expected_value), "expected")
        )
        return
    differing = find_differences(expected_value, received_value, superset)
    if differing:
        what = "JSON superset mismatch" if superset else "JSON content mismatch"
        yield make_failure(what, format_differences(differing))


def _format_mapping(text: str) -> list[Line]:
    return label_lines("  mapping: ", text.strip(), "expected")


def _decode_message(message: Message) -> str:
    return message.raw.decode(errors="replace")


_CHECKS: Final[dict[str, Check]] = {
    "bloblang": _check_bloblang,
    "content_equals": _check_content_equals,
    "content_matches": _check_content_matches,
    "metadata_equals": _check_metadata_equals,
    "file_equals": _check_file_equals,
    "file_json_equals": _make_file_json_check(superset=False),
    "file_json_contains": _make_file_json_check(superset=True),
    "json_equals": _make_json_check(superset=False),
    "json_contains": _make_json_check(superset=True),
}
