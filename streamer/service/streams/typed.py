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
from streamer.config.read import read_yaml
from streamer.config.secrets import with_variables
from streamer.config.source import Source
from streamer.redaction import SCRUBBED, Redaction
from streamer.service.streams import raw
from streamer.service.streams.faults import BadConfigError

# What was a setting once, and is a comment now.
_IN_COMMENT: Final = re.compile(
    r"(?im)((?:^|(?<=\s))#[^\n]*?(?:secret|password|passwd|token|access.?key|credential)\w*[\"']?\s*[:=]\s*)(\S+)"
)
_Edit = tuple[int, int, str]


def without_secrets(text: str, config: Config) -> str:
    """Return the text of a config without its secrets: each has a mark in its place.

    Raises:
        BadConfigError: it cannot be read.
    """
    secrets = with_variables(config.secrets)
    redaction = Redaction(secrets)
    edits = []
    for scalar in _scalars(_tree(text)):
        if scalar.text and scalar.text in secrets:
            edits.append((scalar.start, scalar.end, json.dumps(secrets[scalar.text])))
            continue
        found, written = redaction.text(scalar.text), text[scalar.start : scalar.end]
        if found != scalar.text and redaction.text(written) == written:
            edits.append((scalar.start, scalar.end, json.dumps(found)))
    found = _IN_COMMENT.sub(rf"\1{SCRUBBED}", redaction.text(_edited(text, edits)))
    document = raw.shown(text, config)
    return found if _says(found, document) else raw.written(document)


def with_secrets(text: str, former: str) -> str:
    """Return a text with the secrets that it only has marks for, from the text before it.

    Who edits what was shown does not see secrets; a mark at the place of one stands for it.

    Raises:
        BadConfigError: one of the texts cannot be read.
    """
    if SCRUBBED not in text:
        return text
    wanted = raw.restored(raw.document(text), raw.document(former))
    edits = [
        (scalar.start, scalar.end, json.dumps(value, ensure_ascii=False))
        for scalar, value in _beside(_tree(text), wanted)
        if SCRUBBED in scalar.text and not (isinstance(value, str) and SCRUBBED in value)
    ]
    found = _edited(text, edits)
    return found if _says(found, wanted) else raw.written(wanted)


def _tree(text: str) -> Node:
    """Return a text as a tree, whose offsets are those of the text.

    A variable's braces would mean something to YAML: letters stand in their place.
    """
    pieces, done = [], 0
    for found in find_variables(text):
        pieces += [text[done : found.start], re.sub(r"[^\n]", "x", text[found.start : found.end])]
        done = found.end
    findings = Findings()
    root = read_yaml(Source("", "".join(pieces) + text[done:]), findings)
    if root is None:
        raise BadConfigError.of(findings.sorted())
    return root


def _scalars(node: Node) -> Iterator[Scalar]:
    if isinstance(node, Mapping):
        for _, value in node.entries.values():
            yield from _scalars(value)
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _scalars(item)
    elif isinstance(node, Scalar):
        yield node


def _beside(node: Node, value: Any) -> Iterator[tuple[Scalar, Any]]:
    """Return the scalars of a tree, each with what stands in its place in a document."""
    if isinstance(node, Mapping) and isinstance(value, dict):
        for (_, child), one in zip(node.entries.values(), value.values(), strict=False):
            yield from _beside(child, one)
    elif isinstance(node, Sequence) and isinstance(value, list):
        for child, one in zip(node.items, value, strict=False):
            yield from _beside(child, one)
    elif isinstance(node, Scalar):
        yield node, value


def _edited(text: str, edits: list[_Edit]) -> str:
    parts, done = [], 0
    # What an alias repeats stands in the text once.
    for start, end, instead in sorted(
        {start: (start, end, new) for start, end, new in edits}.values()
    ):
        kept = text[start:end]
        # A block of text ends with its last line.
        parts += [text[done:start], instead, kept[len(kept.rstrip()) :]]
        done = end
    return "".join(parts) + text[done:]


def _says(text: str, document: Any) -> bool:
    try:
        return bool(raw.document(text) == document)
    except BadConfigError:
        return False
