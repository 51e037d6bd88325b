"""The `tests` section: Benthos's unit tests of processors, and ours of whole streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from streamer.config.findings import Findings
from streamer.config.unit_tests.fields import (
    MESSAGE_FIELDS,
    OUTPUT_BATCHES,
    STREAM_FIELDS,
    make_optional_field,
)
from streamer.core.errors import Lint
from streamer.sdk.spec import Field, ParsedFields, Place

TARGET_STREAM: Final = "stream"


def _check_environment(variables: dict[str, str]) -> str | None:
    for name, value in variables.items():
        if not name or "=" in name or "\0" in name + (value or ""):
            return f"has the variable {name!r}, which no environment can hold"
    return None


CASE_FIELDS: Final = (
    Field("name", "string", "What is tested, as a sentence."),
    make_optional_field(
        "environment",
        "string",
        "Environment variables that are set for the test.",
        shape="map",
        check=_check_environment,
    ),
    Field(
        "target",
        "string",
        "What is run: `processors`, or `stream`, which is the buffer and everything after it, on "
        "a scripted clock.",
        default="processors",
        options=("processors", TARGET_STREAM),
    ),
    Field(
        "target_processors",
        "string",
        "The processors to run: a JSON Pointer to one or to a list, or a label; `FILE#POINTER` "
        "for those of another file.",
        default="/pipeline/processors",
        examples=("foo_processor", "/pipeline/processors/0", "target.yaml#/pipeline/processors"),
    ),
    Field(
        "target_mapping",
        "string",
        "A file with a Bloblang mapping to run instead of processors, or the mapping itself.",
        default="",
        examples=("./mapping.blobl", "root.sum = this.a + this.b"),
    ),
    make_optional_field(
        "mocks",
        "unknown",
        "Components to put in the place of others, by label or JSON Pointer.",
        shape="map",
        examples=({"get_foobar_api": {"mapping": 'root = content().string() + " mock"'}},),
    ),
    make_optional_field(
        "input_batch",
        "object",
        "The messages of one batch.",
        shape="array",
        children=MESSAGE_FIELDS,
    ),
    make_optional_field(
        "input_batches",
        "object",
        "Batches of messages; `input_batch` comes after them.",
        shape="2darray",
        children=MESSAGE_FIELDS,
    ),
    *STREAM_FIELDS,
    OUTPUT_BATCHES,
)

TESTS_SECTION: Final = Field(
    "tests",
    "object",
    "Unit tests of the config, run by `streamer test`.",
    optional=True,
    shape="array",
    advanced=True,
    children=CASE_FIELDS,
)

DEFINITION_FIELDS: Final = (
    TESTS_SECTION,
    make_optional_field("parallel", "bool", "Taken for compatibility.", deprecated=True),
)
"""The fields of a file that holds nothing but tests."""

_STREAM_ONLY_FIELDS: Final = tuple(field.name for field in STREAM_FIELDS)
_PROCESSORS_ONLY_FIELDS: Final = (
    "target_processors",
    "target_mapping",
    "input_batch",
    "input_batches",
)


class _Problem(NamedTuple):
    place: Place
    message: str
    suggestion: str = ""


def check_tests(findings: Findings, file: str, tests: tuple[ParsedFields | None, ...]) -> None:
    """Check cases as a whole, once their fields have been read."""
    for case in tests:
        if case is None:
            continue
        problems = (
            _check_stream_case(case)
            if case["target"] == TARGET_STREAM
            else _check_processors_case(case)
        )
        for problem in problems:
            findings.add(Lint(file, *problem.place, "bad_test", *problem[1:]))


def _check_processors_case(case: ParsedFields) -> Iterator[_Problem]:
    for name in _STREAM_ONLY_FIELDS:
        if case.is_given(name):
            yield _Problem(
                case.place(name), f"field {name} belongs to stream tests", "add `target: stream`"
            )


def _check_stream_case(case: ParsedFields) -> Iterator[_Problem]:
    for name in _PROCESSORS_ONLY_FIELDS:
        if case.is_given(name):
            text = f"field {name} does not go with `target: stream`"
            yield _Problem(case.place(name), text, "what goes in are the messages of `steps`")
    if case["clock"] is None and not case.is_given("clock"):
        yield _Problem(
            case.place("target"),
            "a test with `target: stream` needs the field clock",
            "write where the clock starts: `clock: 2026-01-01T00:00:00Z`",
        )
    if not case["steps"] and not (case.is_given("steps") and case["steps"] is None):
        yield _Problem(case.place("target"), "a test with `target: stream` needs steps")
    ended = False
    for number, step in enumerate(case["steps"] or ()):
        if step is not None:
            if not any(map(step.is_given, step)):
                yield _Problem(case.place("steps"), f"step {number} is empty", "remove it")
            yield from _check_step(step, ended)
            ended = (ended or bool(step["end_of_input"])) and not step["restart"]


def _check_step(step: ParsedFields, ended: bool) -> Iterator[_Problem]:
    if step.is_given("advance") and step.is_given("clock"):
        text = "a step moves the clock by `advance` or by `clock`, not by both"
        yield _Problem(step.place("clock"), text, "make two steps of it")
    if step["restart"]:
        for name in ("send", "advance", "clock", "end_of_input"):
            if step.is_given(name):
                text = f"field {name} does not go with restart, which runs no micro-batch"
                yield _Problem(step.place(name), text, "make two steps of it")
    if ended and step["send"]:
        text = "nothing can be sent after the end of the input"
        yield _Problem(step.place("send"), text, "put a step with `restart: true` before it")
