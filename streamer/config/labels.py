"""Labels: their spelling, and that each is used once."""

from __future__ import annotations

import re
from typing import Final

from streamer.config.nodes import Mapping, Scalar, describe_node, to_python
from streamer.config.read_context import ReadContext
from streamer.config.source_map import NO_SOURCE
from streamer.sdk.spec import Kind

_LABEL: Final = re.compile(r"[a-z0-9][a-z0-9_\-]*")


def read_label(
    context: ReadContext, kind: Kind, name: str, node: Mapping, *, has_label: bool = False
) -> str:
    """Read the label of a component, or return an empty string when it has none.

    Args:
        context: has the labels so far, and gets the findings.
        kind: the component's kind.
        name: its name.
        node: the object that it stands in.
        has_label: it may have one at this place, whatever its kind.
    """
    if not kind.has_label and not has_label:
        return ""
    entry = node.entries.get("label")
    if entry is None:
        if context.options.labels and name != "resource" and node.source is not NO_SOURCE:
            context.findings.add_at(node, "missing_label", f"label is required for {name}")
        return ""
    value = entry[1]
    if not isinstance(value, Scalar):
        message = f"field label: expected string value, got {describe_node(value)}"
        context.findings.add_at(value, "expected_string", message)
        return ""
    try:
        to_python(value)  # the text counts, but a tag that means nothing is told
    except ValueError as e:
        context.findings.add_at(value, "bad_tag", str(e), "remove it")
        return ""
    if not value.text:
        return ""
    if name == "resource":
        message = "label field should be omitted when pointing to a resource"
        context.findings.add_at(value, "should_omit", message)
    elif not _LABEL.fullmatch(value.text):
        context.findings.add_at(
            value,
            "bad_label",
            f"invalid label {value.text!r}",
            "a label has lower case letters, digits, _ and -, and starts with a letter or digit",
        )
    elif (earlier := context.labels.setdefault(value.text, value)) is not value:
        context.labels[value.text] = _report_collision(context, earlier, value)
    return value.text


def _report_collision(context: ReadContext, earlier: Scalar, later: Scalar) -> Scalar:
    """Add the finding that a label is used twice; return the one that stands first."""
    if earlier.source is later.source and later.start < earlier.start:
        # Sections are not read in the order in which the file has them.
        earlier, later = later, earlier
    place = earlier.source.locate(earlier.start)
    where = f"line {place.line}"
    if earlier.source.name != later.source.name:
        where = f"{earlier.source.name}({place.line},{place.column})"
    message = f"label {later.text!r} collides with a previously defined label at {where}"
    context.findings.add_at(later, "duplicate_label", message)
    return earlier
