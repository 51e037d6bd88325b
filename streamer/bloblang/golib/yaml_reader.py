"""One YAML document as a value, the way Go's yaml.v3 decodes it into plain types.

Source: `gopkg.in/yaml.v3`. libyaml reads the text, so that its errors are the same; tags, numbers,
merges and repeated keys follow yaml.v3. Different on purpose: keys that are no strings become
their text, where Benthos makes an object that nothing can use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.text import to_text
from streamer.core.timestamps import SECOND, Timestamp
from streamer.core.value import INT64_MAX, UInt
from streamer.core.yaml_scalars import resolve_scalar

_PREFIX: Final = "failed to parse value as YAML: yaml: "
_MAX_DEPTH: Final = 300
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"
_TIMESTAMP_TAG: Final = "tag:yaml.org,2002:timestamp"
_TIME: Final = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)"
    r"(?:(?:[Tt ])(\d\d?):(\d\d?):(\d\d?)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)?)?"
)


@dataclass(slots=True)
class _Node:
    """A scalar (`value` is its text), a list of nodes, or a list of pairs of nodes."""

    event: Any
    value: Any = None
    open: bool = True


def read_yaml(raw: bytes) -> Any:
    """Return the value of the first document of a text; None when there is none.

    Raises:
        QueryError: it cannot be read; the text is Benthos's.
    """
    loader: Any = None
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(raw)
        events = iter(loader.get_event, None)
        next(events)
        if isinstance(next(events), yaml.StreamEndEvent):
            return None
        root = _read_node(next(events), events, {}, 0)
        next(events)
    except yaml.YAMLError as e:
        raise QueryError(_PREFIX + _describe_problem(e)) from None
    finally:
        if loader is not None:
            loader.dispose()
    return _Decoder().decode(root)


def _describe_problem(error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError):
        return str(getattr(error, "reason", error))  # of bytes that are no text
    problem = error.problem or str(error)
    for mark in (error.context_mark, error.problem_mark):
        # yaml.v3 leaves out the first line's number, and counts from 0 when all tokens are good.
        if mark is not None and mark.line:
            line = mark.line + isinstance(error, yaml.scanner.ScannerError)
            return f"line {line}: {problem}"
    return problem


def _read_node(event: Any, events: Iterator[Any], anchors: dict[str, _Node], depth: int) -> _Node:
    """Return the node that begins with an event."""
    if depth > _MAX_DEPTH:
        raise QueryError(f"{_PREFIX}exceeded max depth of {_MAX_DEPTH}")
    if isinstance(event, yaml.AliasEvent):
        if event.anchor not in anchors:
            raise QueryError(f"{_PREFIX}unknown anchor '{event.anchor}' referenced")
        return _Node(event, anchors[event.anchor])
    node = _Node(event)
    if event.anchor:
        anchors[event.anchor] = node
    if isinstance(event, yaml.ScalarEvent):
        node.value = event.value
        return node
    parts: list[Any] = []
    while not isinstance(inner := next(events), yaml.CollectionEndEvent):
        part = _read_node(inner, events, anchors, depth + 1)
        if isinstance(event, yaml.MappingStartEvent):
            parts.append((part, _read_node(next(events), events, anchors, depth + 1)))
        else:
            parts.append(part)
    node.value = parts
    return node


class _Decoder:
    """Turns nodes into values, and counts what aliases make of them."""

    def __init__(self) -> None:
        self._decoded = 0
        self._aliased = 0
        self._in_alias = 0
        self._following: set[int] = set()

    def decode(self, node: _Node) -> Any:
        """Return the value of a node."""
        self._count_decoded()
        event = node.event
        if isinstance(event, yaml.AliasEvent):
            return self._decode_alias(node)
        if isinstance(event, yaml.ScalarEvent):
            return _decode_scalar(event)
        if isinstance(event, yaml.MappingStartEvent):
            return self._decode_mapping(node)
        return [self.decode(part) for part in node.value]

    def _count_decoded(self) -> None:
        self._decoded += 1
        self._aliased += self._in_alias > 0
        if self._aliased > 100 and self._decoded > 1000:
            share = 0.99 - 0.89 * (min(max(self._decoded, 400_000), 4_000_000) - 400_000) / 3.6e6
            if self._aliased / self._decoded > share:
                raise QueryError(f"{_PREFIX}document contains excessive aliasing")

    def _decode_alias(self, node: _Node) -> Any:
        target: _Node = node.value
        if id(target) in self._following or target.value is None:
            raise QueryError(f"{_PREFIX}anchor '{node.event.anchor}' value contains itself")
        self._following.add(id(target))
        self._in_alias += 1
        try:
            return self.decode(target)
        finally:
            self._in_alias -= 1
            self._following.discard(id(target))

    def _decode_mapping(self, node: _Node) -> dict[str, Any]:
        merges: list[_Node] = []
        result: dict[str, Any] = {}
        lines: dict[str, int] = {}
        repeated: list[str] = []
        for key_node, value_node in node.value:
            if _is_merge(key_node.event):
                merges.append(value_node)
                continue
            key = self._decode_key(key_node)
            line = key_node.event.start_mark.line + 1
            if key in lines:
                repeated.append(
                    f'\n  line {line}: mapping key "{key}" already defined at line {lines[key]}'
                )
            lines.setdefault(key, line)
            result[key] = self.decode(value_node)
        if repeated:
            raise QueryError(f"{_PREFIX}unmarshal errors:{''.join(repeated)}")
        for merge in merges:
            for key, value in self._decode_merge(merge).items():
                result.setdefault(key, value)
        return result

    def _decode_key(self, node: _Node) -> str:
        value = self.decode(node)
        if isinstance(value, list | dict):
            raise QueryError(f"{_PREFIX}invalid map key: {_format_go_value(value)}")
        return to_text(value)

    def _decode_merge(self, node: _Node) -> dict[str, Any]:
        target = node.value if isinstance(node.event, yaml.AliasEvent) else node
        if isinstance(target.event, yaml.MappingStartEvent):
            mapping: dict[str, Any] = self.decode(node)
            return mapping
        result: dict[str, Any] = {}
        if isinstance(target.event, yaml.SequenceStartEvent):
            parts = [self.decode(part) for part in target.value]
            if all(isinstance(part, dict) for part in parts):
                for part in parts:
                    result = {**part, **result}
                return result
        raise QueryError(f"{_PREFIX}map merge requires map or sequence of maps as the value")


def _is_merge(event: Any) -> bool:
    if not isinstance(event, yaml.ScalarEvent) or event.value != "<<":
        return False
    return event.tag == _MERGE_TAG or (event.tag in (None, "!") and bool(event.implicit[0]))


def _format_go_value(value: Any) -> str:
    """Return a key that can be none as Go's `%#v` prints it."""
    if isinstance(value, dict):
        pairs = (f'"{key}":{_format_go_value(value[key])}' for key in sorted(value))
        return f"map[string]interface {{}}{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_format_go_value, value))}}}"
    return f'"{value}"' if isinstance(value, str) else to_text(value)


def _decode_scalar(event: Any) -> Any:
    text: str = event.value
    tag: str = event.tag or ""
    plain = event.style is None or event.style == ""
    if (plain and not tag) or tag == _TIMESTAMP_TAG:
        time = parse_time(text)
        if time is not None:
            return time
    if tag and not tag.startswith("tag:yaml.org,2002:"):
        # A tag of one's own says nothing about plain types.
        tag = "tag:yaml.org,2002:str"
    try:
        value = resolve_scalar(text, event.style or "", tag)
        return UInt(value) if type(value) is int and value > INT64_MAX else value
    except ValueError:
        tags = {bool: "!!bool", int: "!!int", float: "!!float", type(None): "!!null"}
        kind = tags.get(type(resolve_scalar(text)), "!!str")
        short = tag.replace("tag:yaml.org,2002:", "!!")
        raise QueryError(f"{_PREFIX}cannot decode {kind} `{text}` as a {short}") from None


def parse_time(text: str) -> Timestamp | None:
    """Return a time that yaml.v3 would see in a plain scalar."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    # A "T" wants a zone, a space wants none.
    if hour is not None and (text[len(f"{year}-{month}-{day}")] == " ") is (zone is not None):
        return None
    import datetime

    try:
        date = datetime.datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0),
            tzinfo=datetime.UTC,
        )  # fmt: skip
    except ValueError:
        return None
    ns = int(date.timestamp()) * SECOND + int((fraction or "0").ljust(9, "0"))
    if zone in (None, "Z"):
        return Timestamp(ns)
    offset = (int(zone[1:3]) * 60 + int(zone[4:6])) * (-60 if zone[0] == "-" else 60)
    return Timestamp(ns - offset * SECOND, offset, "", "")
