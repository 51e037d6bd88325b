"""`grok`: replaces each message by the values that the first matching Grok expression captures.

It tries "a list of Grok expressions, the first expression to result in at least one value replaces
the original message with a JSON object containing the values".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import Any, Final

from streamer.connectors.formats.grok import (
    GrokError,
    GrokExpression,
    PatternSet,
    compile_expression,
    default_patterns,
)
from streamer.connectors.formats.grok.patterns import read_patterns
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.core.permissions import Permissions
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import Change, PerMessageProcessor
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

EXPRESSIONS: Final = "expressions"
PATTERN_DEFINITIONS: Final = "pattern_definitions"
PATTERN_PATHS: Final = "pattern_paths"
NAMED_CAPTURES_ONLY: Final = "named_captures_only"
USE_DEFAULT_PATTERNS: Final = "use_default_patterns"
REMOVE_EMPTY_VALUES: Final = "remove_empty_values"


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    if parsed[PATTERN_PATHS]:
        return  # what the files hold is known when the stream starts
    try:
        patterns = _make_patterns(parsed, {})
    except GrokError as e:
        yield PATTERN_DEFINITIONS, f"failed to create grok compiler: {e}"
        return
    for expression in parsed[EXPRESSIONS]:
        try:
            _compile_one(expression, patterns, parsed)
        except GrokError as e:
            yield EXPRESSIONS, str(e)


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "grok",
    "Parses messages with Grok expressions into objects.",
    description=(
        "`%{PATTERN:name:type}` captures what a pattern matches; without a type (`int`, `float`) "
        "it is a text. A name with dots makes objects in objects. The first expression that "
        "captures a value makes the message; where none does, the message is marked as failed. The "
        "engine is RE2, which has no look-around."
    ),
    fields=(
        Field(
            EXPRESSIONS,
            "string",
            "The expressions, tried in order.",
            access=Access.QUERY,
            shape="array",
        ),
        Field(
            PATTERN_DEFINITIONS,
            "string",
            "Further patterns by name, for expressions and for one another. None of them replaces "
            "a default pattern.",
            default={},
            shape="map",
        ),
        Field(
            PATTERN_PATHS,
            "string",
            "Files with further patterns, one a line: a name, a blank, the pattern. A folder "
            "stands for the files in it, and `*` and `**` may be used.",
            access=Access.FILE,
            default=(),
            shape="array",
        ),
        Field(
            NAMED_CAPTURES_ONLY,
            "bool",
            "True if only references with a name of their own are captured.",
            default=True,
            advanced=True,
        ),
        Field(
            USE_DEFAULT_PATTERNS,
            "bool",
            "True to include the usual patterns.",
            default=True,
            advanced=True,
        ),
        Field(
            REMOVE_EMPTY_VALUES,
            "bool",
            "True to omit empty values.",
            default=True,
            advanced=True,
        ),
    ),
    check=_problems,
    examples=(
        Example(
            "Lines of an access log",
            "pipeline:\n"
            "  processors:\n"
            "    - grok:\n"
            "        expressions:\n"
            "          - '%{IPORHOST:client.ip} %{WORD:verb} %{NOTSPACE:path} %{INT:size:int}'\n",
        ),
    ),
    categories=("Parsing",),
)


def _make_patterns(parsed: ParsedFields, more: dict[str, str]) -> PatternSet:
    patterns = PatternSet(named_only=parsed[NAMED_CAPTURES_ONLY])
    if parsed[USE_DEFAULT_PATTERNS]:
        patterns.add(default_patterns())
    patterns.add({**parsed[PATTERN_DEFINITIONS], **more})
    return patterns


def _compile_one(expression: str, patterns: PatternSet, parsed: ParsedFields) -> GrokExpression:
    try:
        return compile_expression(patterns.expand(expression), not parsed[REMOVE_EMPTY_VALUES])
    except GrokError as e:
        raise GrokError(f"failed to compile Grok pattern '{expression}': {e}") from None


def _list_files(path: str) -> list[Path]:
    if Path(path).is_dir():
        return [file for file in sorted(Path(path).iterdir()) if file.is_file()]
    paths = sorted(glob(path, recursive=True))
    if not paths:
        raise GrokError("there is no such file")
    return [Path(file) for file in paths if Path(file).is_file()]


def _read_pattern_files(paths: Sequence[str], permissions: Permissions) -> dict[str, str]:
    patterns: dict[str, str] = {}
    for path in paths:
        try:
            for file in _list_files(permissions.file(path)):
                with permissions.open(file) as lines:
                    patterns.update(read_patterns(lines))
        except (OSError, ValueError) as e:
            raise StreamerError(f"failed to parse patterns from path '{path}': {e}") from e
    return patterns


def _make_parser(expressions: Sequence[GrokExpression]) -> Change:
    def parse(message: Message, ex: Execution) -> Message:
        raw = message.raw
        for expression in expressions:
            values = expression.capture(raw)
            if values:
                return message.with_doc(_nest_dotted_names(values))
        raise MessageError("no pattern matches found")

    return parse


def _nest_dotted_names(values: dict[str, Any]) -> dict[str, Any]:
    """Return an object in which the dots of names have become objects."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        *outer, last = name.split(".")
        place: Any = result
        for part in outer:
            place = place.setdefault(part, {}) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place[last] = value
    return result


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Read the pattern files and compile the expressions."""
    try:
        patterns = _make_patterns(
            parsed, _read_pattern_files(parsed[PATTERN_PATHS], parsed.permissions)
        )
        expressions = [_compile_one(text, patterns, parsed) for text in parsed[EXPRESSIONS]]
    except GrokError as e:
        raise StreamerError(str(e)) from None
    return PerMessageProcessor(_make_parser(expressions), ComponentRef(context.component))
