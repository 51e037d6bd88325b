"""A value as YAML, the way Go's yaml.v3 encodes plain types: four spaces, keys in natural order.

Source: `gopkg.in/yaml.v3`. Different on purpose: numbers that came with a document are written as
numbers, where Benthos quotes them, and texts are quoted where yaml.v3 could not read its own
output again (several lines that begin with white space, the key `<<`).
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from functools import cmp_to_key
from typing import Any, Final

import yaml
from yaml.emitter import Emitter

from streamer.bloblang.golib.yaml_reader import parse_time
from streamer.core.timestamps import Timestamp
from streamer.core.value import DELETED, NOTHING, Number, format_float
from streamer.core.yaml_scalars import parse_bool, resolve_scalar

_INDENT: Final = 4
_MAX_SIMPLE_KEY_BYTES: Final = 128
# What is escaped, besides all that is beyond 16 bits: other line breaks, the byte order mark.
_ESCAPED_CHARS: Final = "\x85\u2028\u2029\ufeff"
_TAB_FIRST: Final = re.compile(r"^ *\t", re.MULTILINE)
_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")


class _Emitter(Emitter):
    """PyYAML's emitter with yaml.v3's indentation."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent by four; within a list's item by the two columns that its dash takes."""
        self.indents.append(self.indent)
        if self.indent is None:
            self.indent = _INDENT if flow else 0
        elif self.states[-1] == self.expect_block_sequence_item:
            self.indent += 2
        else:
            self.indent = (self.indent + _INDENT) // _INDENT * _INDENT

    def check_simple_key(self) -> bool:
        """Allow empty keys, and such as are not too long in bytes, on their value's line."""
        if not isinstance(self.event, yaml.ScalarEvent):
            return bool(super().check_simple_key())
        if self.analysis is None:
            self.analysis = self.analyze_scalar(self.event.value)
        return (
            not self.analysis.multiline and len(self.event.value.encode()) <= _MAX_SIMPLE_KEY_BYTES
        )

    def analyze_scalar(self, scalar: str) -> Any:
        """Allow tabs in texts of several lines, where no line begins with one."""
        if "\t" not in scalar or "\n" not in scalar or _TAB_FIRST.search(scalar):
            return super().analyze_scalar(scalar)
        analysis = super().analyze_scalar(scalar.replace("\t", "-"))
        analysis.scalar, analysis.allow_single_quoted = scalar, False
        return analysis


def write_yaml(value: Any) -> bytes:
    """Return a value as one YAML document."""
    out = io.StringIO()
    emitter = _Emitter(out, indent=_INDENT, width=1 << 31, allow_unicode=True)
    emitter.emit(yaml.StreamStartEvent())
    emitter.emit(yaml.DocumentStartEvent(explicit=False))
    for event in _iterate_events(value):
        emitter.emit(event)
    emitter.emit(yaml.DocumentEndEvent(explicit=False))
    emitter.emit(yaml.StreamEndEvent())
    return out.getvalue().removesuffix("...\n").encode(errors="replace")


def _iterate_events(value: Any) -> Iterator[yaml.Event]:
    """Return the events of a value; what is still to come is kept on a stack, however deep."""
    pending: list[Any] = [value]
    while pending:
        part = pending.pop()
        kind = type(part)
        if isinstance(part, yaml.Event):
            yield part
        elif kind is dict:
            yield yaml.MappingStartEvent(None, None, True, flow_style=not part)
            pending.append(yaml.MappingEndEvent())
            for key in sorted(part, key=cmp_to_key(_compare_natural), reverse=True):
                pending += [part[key], _key_event(key)]
        elif kind is list or kind is bytes:
            yield yaml.SequenceStartEvent(None, None, True, flow_style=not part)
            pending.append(yaml.SequenceEndEvent())
            pending += reversed(part)
        else:
            yield _text_event(part) if kind is str else _scalar_event(_format_scalar(part))


def _format_scalar(value: Any) -> str:
    if value is None or value is DELETED or value is NOTHING:
        return "null"
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is Number:
        text: str = value.text
        return text
    if type(value) is Timestamp:
        return str(value)
    if isinstance(value, float):
        text = format_float(value)
        return {"NaN": ".nan", "+Inf": ".inf", "-Inf": "-.inf"}.get(text, text)
    return str(value)


def _scalar_event(text: str, style: str | None = None) -> yaml.ScalarEvent:
    return yaml.ScalarEvent(None, None, (True, True), text, style=style)


def _text_event(text: str) -> yaml.ScalarEvent:
    if "\n" in text:
        # A block that begins with white space needs its indentation told, which yaml.v3 gets wrong.
        return _scalar_event(text, '"' if text[0] in " \n" or _needs_escapes(text) else "|")
    return _scalar_event(text, None if _is_plain_text(text) else '"')


def _key_event(key: str) -> yaml.ScalarEvent:
    # As a key, the sign for a merge would be taken for one.
    return _scalar_event(key, '"') if key == "<<" else _text_event(key)


def _needs_escapes(text: str) -> bool:
    return not text.isascii() and (max(text) > "\uffff" or any(c in text for c in _ESCAPED_CHARS))


def _is_plain_text(text: str) -> bool:
    """Whether a text may go without quotes: it is read as that text again, by everybody."""
    if not text or not isinstance(resolve_scalar(text), str) or parse_bool(text) is not None:
        return False
    if _needs_escapes(text):
        return False
    return _BASE_60.fullmatch(text) is None and parse_time(text) is None


def _compare_natural(left: str, right: str) -> int:
    """Order keys as yaml.v3 does: letters after all else, digits by the numbers they make."""
    digits = False
    for at, (a, b) in enumerate(zip(left, right, strict=False)):
        if a == b:
            digits = a.isdigit()
        elif a.isalpha() and b.isalpha():
            return -1 if a < b else 1
        elif a.isalpha() or b.isalpha():
            return -1 if a.isalpha() is digits else 1
        else:
            return _compare_numbers(left, right, at)
    return (len(left) > len(right)) - (len(left) < len(right))


def _compare_numbers(left: str, right: str, at: int) -> int:
    in_number = "0" in (left[at], right[at]) and re.search(r"[1-9]\d*\Z", left[:at]) is not None
    runs = []
    for text in (left, right):
        match = re.compile(r"[0-9]*").match(text, at)
        assert match is not None
        digits = f"{int(in_number)}{match[0]}".lstrip("0")
        # The longer of two numbers is the larger one, however many digits they have.
        runs.append(((len(digits), digits), match.end(), text[at]))
    return -1 if runs[0] < runs[1] else 1
