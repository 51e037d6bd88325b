"""From the fields of the top level to a `Config`."""

from __future__ import annotations

from collections.abc import Mapping as MappingType
from typing import Final

from streamer.config.model import Config
from streamer.config.nodes import Mapping, Node
from streamer.config.reading import Reading
from streamer.spec import Kind, Parsed, ParsedComponent

RESOURCE_KINDS: Final = (
    Kind.INPUT,
    Kind.PROCESSOR,
    Kind.OUTPUT,
    Kind.CACHE,
    Kind.RATE_LIMIT,
)
"""The kinds that have a `*_resources` section."""

Resources = dict[tuple[Kind, str], ParsedComponent]


def resources_of(reading: Reading, parsed: Parsed, root: Mapping) -> Resources:
    """Return the resources by kind and label; one without a label could never be used."""
    resources = {}
    for kind in RESOURCE_KINDS:
        for index, component in enumerate(parsed[f"{kind}_resources"] or ()):
            if component is None:
                continue
            if not component.label:
                node = _item(root, f"{kind}_resources", index)
                reading.findings.at(
                    node, "missing_label", f"this {kind} resource has no label", "add `label: …`"
                )
            resources[kind, component.label] = component
    return resources


def _item(root: Mapping, section: str, index: int) -> Node:
    node: Node = root.entries[section][1]
    items = getattr(node, "items", [node])
    found: Node = items[index] if index < len(items) else node
    return found


def assemble(
    parsed: Parsed,
    resources: MappingType[tuple[Kind, str], ParsedComponent],
    name: str,
    text: str,
) -> Config:
    """Return the config of a top level in which nothing was found to be wrong.

    Args:
        parsed: the top level's fields.
        resources: by kind and label.
        name: the file's name.
        text: the file's text.
    """
    return Config(
        input=parsed["input"],
        buffer=parsed["buffer"],
        processors=parsed["pipeline"]["processors"],
        output=parsed["output"],
        resources=resources,
        logger=parsed["logger"],
        http=parsed["http"],
        spark=parsed["spark"],
        metrics=parsed["metrics"],
        tracer=parsed["tracer"],
        error_handling=parsed["error_handling"],
        shutdown_delay=parsed["shutdown_delay"] or 0,
        shutdown_timeout=parsed["shutdown_timeout"] or 0,
        threads=parsed["pipeline"]["threads"],
        tests=parsed["tests"] or (),
        path=name,
        text=text,
    )
