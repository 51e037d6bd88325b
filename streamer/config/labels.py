"""Labels: their spelling, and that each is used once."""

from __future__ import annotations

import re
from typing import Final

from streamer.config.nodes import Mapping, Scalar, described, plain
from streamer.config.reading import Reading
from streamer.config.source import NO_SOURCE
from streamer.spec import Kind

_LABEL: Final = re.compile(r"[a-z0-9][a-z0-9_\-]*")


def read_label(reading: Reading, kind: Kind, name: str, node: Mapping) -> str:
    """Read the label of a component, or return an empty string when it has none."""
    if not kind.has_label:
        return ""
    entry = node.entries.get("label")
    if entry is None:
        if reading.options.labels and name != "resource" and node.source is not NO_SOURCE:
            reading.findings.at(node, "missing_label", f"label is required for {name}")
        return ""
    value = entry[1]
    if not isinstance(value, Scalar):
        message = f"field label: expected string value, got {described(value)}"
        reading.findings.at(value, "expected_string", message)
        return ""
    try:
        plain(value)  # the text counts, but a tag that means nothing is told
    except ValueError as e:
        reading.findings.at(value, "bad_tag", str(e), "remove it")
        return ""
    if not value.text:
        return ""
    if name == "resource":
        message = "label field should be omitted when pointing to a resource"
        reading.findings.at(value, "should_omit", message)
    elif not _LABEL.fullmatch(value.text):
        reading.findings.at(
            value,
            "bad_label",
            f"invalid label {value.text!r}",
            "a label has lower case letters, digits, _ and -, and starts with a letter or digit",
        )
    elif (earlier := reading.labels.setdefault(value.text, value)) is not value:
        reading.labels[value.text] = _collision(reading, earlier, value)
    return value.text


def _collision(reading: Reading, earlier: Scalar, later: Scalar) -> Scalar:
    """Add the finding that a label is used twice; return the one that stands first."""
    if earlier.source is later.source and later.start < earlier.start:
        # Sections are not read in the order in which the file has them.
        earlier, later = later, earlier
    place = earlier.source.place(earlier.start)
    where = f"line {place.line}"
    if earlier.source.name != later.source.name:
        where = f"{earlier.source.name}({place.line},{place.column})"
    message = f"label {later.text!r} collides with a previously defined label at {where}"
    reading.findings.at(later, "duplicate_label", message)
    return earlier
