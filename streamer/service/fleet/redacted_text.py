"""The texts of configs as they were typed, comments and all: without secrets, and with them again.

A text is changed in a few places and stays as it is otherwise. What comes out is read again, and
where it does not say what it should, the document is written anew instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from streamer.config import Config
from streamer.config.findings import Findings
from streamer.config.nodes import Mapping, Node, Scalar, Sequence
from streamer.config.placeholders import find_variables
from streamer.config.secrets import add_variable_values
from streamer.config.source_map import Source
from streamer.config.yaml_reader import read_yaml
from streamer.core.redaction import SCRUBBED, Redaction
from streamer.service.fleet import redacted_document
from streamer.service.fleet.errors import BadConfigError

# What was a setting once, and is a comment now.
_COMMENTED_SECRET: Final = re.compile(
    r"(?im)((?:^|(?<=\s))#[^\n]*?(?:secret|password|passwd|token|access.?key|credential)\w*[\"']?\s*[:=]\s*)(\S+)"
)
_Edit = tuple[int, int, str]


def redact_text(text: str, config: Config) -> str:
    """Return the text of a config without its secrets: each has a mark in its place.

    Raises:
        BadConfigError: it cannot be read.
    """
    secrets = add_variable_values(config.secrets, config.inputs)
    redaction = Redaction(secrets)
    edits = []
    for scalar in _iter_scalars(_parse_tree(text)):
        if scalar.text and scalar.text in secrets:
            edits.append((scalar.start, scalar.end, json.dumps(secrets[scalar.text])))
            continue
        redacted, written = redaction.redact_text(scalar.text), text[scalar.start : scalar.end]
        if redacted != scalar.text and redaction.redact_text(written) == written:
            edits.append((scalar.start, scalar.end, json.dumps(redacted)))
    redacted = _COMMENTED_SECRET.sub(
        rf"\1{SCRUBBED}", redaction.redact_text(_apply_edits(text, edits))
    )
    document = redacted_document.redact_document(text, config)
    return redacted if _parses_to(redacted, document) else redacted_document.format_yaml(document)


def restore_secrets(text: str, former: str) -> str:
    """Return a text with the secrets that it only has marks for, from the text before it.

    Who edits what was shown does not see secrets; a mark at the place of one stands for it.

    Raises:
        BadConfigError: one of the texts cannot be read.
    """
    if SCRUBBED not in text:
        return text
    expected = redacted_document.restore_secrets(
        redacted_document.parse_document(text), redacted_document.parse_document(former)
    )
    edits = [
        (scalar.start, scalar.end, json.dumps(value, ensure_ascii=False))
        for scalar, value in _pair_scalars(_parse_tree(text), expected)
        if SCRUBBED in scalar.text and not (isinstance(value, str) and SCRUBBED in value)
    ]
    restored = _apply_edits(text, edits)
    return restored if _parses_to(restored, expected) else redacted_document.format_yaml(expected)


def _parse_tree(text: str) -> Node:
    """Return a text as a tree, whose offsets are those of the text.

    A variable's braces would mean something to YAML: letters stand in their place.
    """
    pieces, position = [], 0
    for variable in find_variables(text):
        pieces += [
            text[position : variable.start],
            re.sub(r"[^\n]", "x", text[variable.start : variable.end]),
        ]
        position = variable.end
    findings = Findings()
    root = read_yaml(Source("", "".join(pieces) + text[position:]), findings)
    if root is None:
        raise BadConfigError.from_lints(findings.to_sorted())
    return root


def _iter_scalars(node: Node) -> Iterator[Scalar]:
    if isinstance(node, Mapping):
        for _, value in node.entries.values():
            yield from _iter_scalars(value)
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _iter_scalars(item)
    elif isinstance(node, Scalar):
        yield node


def _pair_scalars(node: Node, value: Any) -> Iterator[tuple[Scalar, Any]]:
    """Return the scalars of a tree, each with what stands in its place in a document."""
    if isinstance(node, Mapping) and isinstance(value, dict):
        for (_, child), one in zip(node.entries.values(), value.values(), strict=False):
            yield from _pair_scalars(child, one)
    elif isinstance(node, Sequence) and isinstance(value, list):
        for child, one in zip(node.items, value, strict=False):
            yield from _pair_scalars(child, one)
    elif isinstance(node, Scalar):
        yield node, value


def _apply_edits(text: str, edits: list[_Edit]) -> str:
    parts, position = [], 0
    # What an alias repeats stands in the text once.
    for start, end, replacement in sorted(
        {start: (start, end, new) for start, end, new in edits}.values()
    ):
        replaced = text[start:end]
        # A block of text ends with its last line.
        parts += [text[position:start], replacement, replaced[len(replaced.rstrip()) :]]
        position = end
    return "".join(parts) + text[position:]


def _parses_to(text: str, document: Any) -> bool:
    try:
        return bool(redacted_document.parse_document(text) == document)
    except BadConfigError:
        return False
