"""Methods that parse and format: JSON, CSV, logfmt, forms, URLs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Final

from streamer.bloblang.declare import CONNECT, Example, Param, declare
from streamer.bloblang.environment import MappingEnvironment
from streamer.bloblang.errors import ArgumentError, BloblangError, QueryError
from streamer.bloblang.golib.convert import bytes_of, text_of
from streamer.bloblang.golib.gocsv import read_csv
from streamer.bloblang.limits import check_bytes
from streamer.core.errors import MessageError
from streamer.core.json.dump import dump_json
from streamer.core.json.json_fault import find_end_of_value
from streamer.core.json.parse import parse_json as read_json
from streamer.core.message import Message
from streamer.core.value import NOTHING, Number

_CATEGORY = "Parsing"


def _numbers_to_floats(value: Any) -> Any:
    """Return a document whose numbers are all float64."""
    if type(value) is dict:
        return {key: _numbers_to_floats(item) for key, item in value.items()}
    if type(value) is list:
        return [_numbers_to_floats(item) for item in value]
    if type(value) is Number and math.isinf(value):
        raise ValueError(
            f"json: cannot unmarshal number {value.text} into Go value of type float64"
        )
    return float(value) if type(value) is not bool and isinstance(value, int | float) else value


@declare(
    "parse_json",
    _CATEGORY,
    Param("use_number", "bool", default=None),
    examples=(
        Example(
            "root = this.payload.parse_json()",
            '{"payload":"{\\"id\\":7,\\"tags\\":[\\"a\\"]}"}',
            '{"id":7,"tags":["a"]}',
        ),
    ),
)
def parse_json(value: Any, use_number: bool | None) -> Any:
    """The document in a text; an option keeps the text of its numbers."""
    raw = bytes_of(value)
    try:
        try:
            document = read_json(raw)
        except ValueError:
            # Like Benthos, stop where the first value ends, whatever comes behind it.
            document = read_json(raw[: find_end_of_value(raw)])
        return document if use_number else _numbers_to_floats(document)
    except ValueError as e:
        raise QueryError(f"failed to parse value as JSON: {e}") from None


@declare(
    "format_json",
    _CATEGORY,
    Param("indent", "string", default="    "),
    Param("no_indent", "bool", default=False),
    Param("escape_html", "bool", default=True),
    examples=(
        Example(
            "root.payload = this.order.format_json(no_indent: true).string()",
            '{"order":{"id":7,"lines":[1,2]}}',
            '{"payload":"{\\"id\\":7,\\"lines\\":[1,2]}"}',
        ),
    ),
)
def format_json(value: Any, indent: str, no_indent: bool, escape_html: bool) -> bytes:
    """The value as JSON bytes, indented and with HTML characters escaped by default."""
    text = dump_json(value).decode()
    if escape_html:
        for mark, escape in (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e")):
            text = text.replace(mark, escape)
    return (indent_json(text, indent) if indent and not no_indent else text).encode()


def indent_json(text: str, indent: str) -> str:
    """Return compact JSON with line breaks and indentation; spellings stay as they are."""
    parts: list[str] = []
    depth, at, size = 0, 0, len(text)
    while at < len(text):
        c = text[at]
        if c == '"':
            end = at + 1
            while text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            parts.append(text[at : end + 1])
            at = end
        elif c in "{[" and text[at + 1] in "}]":
            parts.append(text[at : at + 2])
            at += 1
        elif c in "{[,":
            depth += c != ","
            size += len(indent) * depth
            check_bytes(size, "indented JSON")
            parts.append(f"{c}\n{indent * depth}")
        elif c in "}]":
            depth -= 1
            parts.append(f"\n{indent * depth}{c}")
        else:
            parts.append(": " if c == ":" else c)
        at += 1
    return "".join(parts)


@declare(
    "parse_parquet",
    _CATEGORY,
    Param("byte_array_as_string", "bool", default=False),
    summary=(
        "The rows of a Parquet file as an array of objects. Columns of texts are texts, whatever "
        "`byte_array_as_string` says; times are the numbers that are stored, and decimals texts."
    ),
    origin=CONNECT,
)
def parse_parquet(value: Any, byte_array_as_string: bool) -> list[Any]:
    """The rows of a Parquet file as an array of objects."""
    import pyarrow as pa

    from streamer.bloblang.runtime.parquet_rows import read_rows, row_documents

    rows: list[Any] = []
    try:
        for batch in read_rows(bytes_of(value)):
            rows += row_documents(batch, as_stored=True)
    except (pa.ArrowException, OSError, ValueError) as e:
        raise QueryError(" ".join(str(e).split())) from None
    return rows


@declare(
    "parse_csv",
    _CATEGORY,
    Param("parse_header_row", "bool", default=True),
    Param("delimiter", "string", default=","),
    Param("lazy_quotes", "bool", default=False),
    examples=(
        Example(
            "root = this.text.parse_csv()",
            '{"text":"city,celsius\\nLyon,31\\nBonn,28"}',
            '[{"celsius":"31","city":"Lyon"},{"celsius":"28","city":"Bonn"}]',
        ),
    ),
)
def parse_csv(value: Any, parse_header_row: bool, delimiter: str, lazy_quotes: bool) -> list[Any]:
    """The rows of a CSV text: objects by the header row, or arrays."""
    if len(delimiter) != 1:
        raise QueryError("delimiter value must be exactly one character")
    mark = delimiter.encode("utf-8", "surrogateescape")
    rows = [
        [field.decode("utf-8", "surrogateescape") for field in record]
        for record in read_csv(bytes_of(value), mark, lazy_quotes)
    ]
    if not rows:
        raise QueryError("zero records were parsed")
    if not parse_header_row:
        return rows
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


_LOGFMT_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "n": "\n", "r": "\r", "t": "\t"}
_LOGFMT_ESCAPES |= {"b": "\b", "f": "\f"}


@declare(
    "parse_logfmt",
    _CATEGORY,
    examples=(
        Example(
            "root = this.line.parse_logfmt()",
            '{"line":"level=error msg=\\"disk full\\" retry"}',
            '{"level":"error","msg":"disk full","retry":true}',
        ),
    ),
)
def parse_logfmt(value: Any) -> dict[str, Any]:
    """The pairs of a logfmt line as an object; a key without a value is true."""
    text = text_of(value)
    result: dict[str, Any] = {}
    at, size = 0, len(text)
    while at < size:
        if text[at] in " \t=":
            at += 1
            continue
        end = at
        while end < size and text[end] not in "= \t":
            end += 1
        key, at = text[at:end], end
        if at >= size or text[at] != "=":
            result[key] = True
        elif text[at + 1 : at + 2] == '"':
            result[key], at = _read_quoted(text, at + 2, key)
        else:
            end = at + 1
            while end < size and text[end] not in " \t":
                end += 1
            result[key], at = text[at + 1 : end], end
    return result


def _read_quoted(text: str, at: int, key: str) -> tuple[str, int]:
    letters = []
    while at < len(text) and text[at] != '"':
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
            letters.append(_LOGFMT_ESCAPES.get(text[at], "\\" + text[at]))
        else:
            letters.append(text[at])
        at += 1
    if at >= len(text):
        raise QueryError(f"logfmt: unterminated quoted value for key {json.dumps(key)}")
    return "".join(letters), at + 1


@declare(
    "parse_form_url_encoded",
    _CATEGORY,
    examples=(
        Example(
            "root = this.body.parse_form_url_encoded()",
            '{"body":"name=Ada&tag=a&tag=b"}',
            '{"name":"Ada","tag":["a","b"]}',
        ),
    ),
    own_errors=True,
)
def parse_form_url_encoded(value: Any) -> dict[str, Any]:
    """The fields of a URL-encoded form; one that repeats becomes an array."""
    from streamer.bloblang.methods.encoding import unescape_url_query

    result: dict[str, list[str]] = {}
    for part in text_of(value).split("&"):
        try:
            if ";" in part:
                raise QueryError("invalid semicolon separator in query")
            if part:
                key, _, item = part.partition("=")
                result.setdefault(unescape_url_query(key), []).append(unescape_url_query(item))
        except QueryError as e:
            raise QueryError(f"failed to parse value as url-encoded data: {e}") from None
    return {key: items[0] if len(items) == 1 else items for key, items in result.items()}


@declare(
    "parse_url",
    _CATEGORY,
    examples=(
        Example(
            "root.host = this.url.parse_url().host",
            '{"url":"https://example.com:8443/search?q=tea"}',
            '{"host":"example.com:8443"}',
        ),
    ),
)
def parse_url(value: Any) -> dict[str, Any]:
    """The parts of a URL as an object."""
    from streamer.bloblang.golib.urls import split_url

    return split_url(text_of(value))


@declare(
    "bloblang",
    _CATEGORY,
    Param("mapping", "string"),
    examples=(Example('root = this.bloblang("root.b = this.a")', '{"a":1}', '{"b":1}'),),
    needs=("ex",),
    binds=True,
    own_errors=True,
    uses=("batch", "meta", "content", "now", "random", "error"),
    takes_environment=True,
)
def bloblang(environment: MappingEnvironment, mapping: str) -> Callable[[Any, Any], Any]:
    """The result of a mapping in a text on the value; it has access to nothing else.

    Neither the message's content and metadata, nor files, environment variables and the host's
    name, wherever the config is from.
    """
    try:
        compiled = environment.compile_nested(mapping)
    except BloblangError as e:
        reason = _describe_syntax_error(e, mapping)
        raise ArgumentError(
            reason + (_NEVER_IMPURE_HINT if "--no-impure" in e.suggestion else "")
        ) from None

    def run(ex: Any, value: Any) -> Any:
        try:
            result = compiled.query([Message.from_value(value)], 0, ex)
        except MessageError as e:
            raise QueryError(str(e)) from None
        return value if result is NOTHING else result

    return run


_NEVER_IMPURE_HINT: Final = (
    ": a mapping that is given to bloblang() sees neither files, the environment nor the host"
)


def _describe_syntax_error(error: Any, mapping: str) -> str:
    """Return why a mapping cannot be read, and what stands where something else was expected."""
    if "expected" not in error.message.removeprefix("required: ")[:8]:
        return str(error.message)
    lines = mapping.split("\n")[error.line - 1 :]
    rest = "\n".join([lines[0][error.column - 1 :], *lines[1:]]) if lines else ""
    remainder = f"got: {rest[:5]}" if rest else "but reached end of input"
    return f"{error.message}, {remainder}"
