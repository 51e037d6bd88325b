"""Resources: the components of the `*_resources` sections, of a config and of resource files.

What refers to them is checked here too: that the resource is there, and does not use itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as MappingType
from dataclasses import dataclass
from typing import Final, NamedTuple

from streamer.config.fields import read_fields
from streamer.config.file import read_file
from streamer.config.findings import did_you_mean
from streamer.config.ignores import find_ignores
from streamer.config.nodes import Mapping, Node, Scalar, Sequence, described
from streamer.config.read import read_source
from streamer.config.reading import Reading, Reference
from streamer.config.sections import SECTIONS
from streamer.config.source import Source
from streamer.config.tests_section import DEFINITION_FIELDS, check_tests
from streamer.errors import ConfigError
from streamer.permissions import ALL, Permissions, limited
from streamer.spec import Kind, Parsed, ParsedComponent

RESOURCE_KINDS: Final = (
    Kind.INPUT,
    Kind.PROCESSOR,
    Kind.OUTPUT,
    Kind.CACHE,
    Kind.RATE_LIMIT,
)
"""The kinds that have a `*_resources` section."""

_LISTED: Final = 20
Key = tuple[Kind, str]
Resources = dict[Key, ParsedComponent]

_NAMES: Final = {f"{kind}_resources": kind for kind in RESOURCE_KINDS}
_SECTIONS: Final = tuple(section for section in SECTIONS if section.name in _NAMES)
FILE_FIELDS: Final = (*_SECTIONS, *DEFINITION_FIELDS)
"""What a resource file may hold: resources, and unit tests, as in Benthos."""


@dataclass(frozen=True, eq=False)
class ResourceText:
    """Resources that do not come from a file of their own.

    Attributes:
        name: what findings call the text.
        text: YAML; what it holds beside resources is not looked at.
        env: the environment's variables.
        permissions: what its components may do, whatever those of the config may.
    """

    name: str
    text: str
    env: MappingType[str, str]
    permissions: Permissions = ALL


class _Written(NamedTuple):
    """A resource as it is written, whether or not it could be read."""

    kind: Kind
    label: Scalar
    place: tuple[str, str]
    """The file, and the path in it."""


def resources_of(reading: Reading, parsed: Parsed, root: Mapping) -> Resources:
    """Return the resources by kind and label; one without a label could never be used."""
    resources = {}
    for section, kind in _NAMES.items():
        for index, component in enumerate(parsed[section] or ()):
            if component is None:
                continue
            node = _item(root, section, index)
            label = _label(node)
            if not label:
                message = f"this {kind} resource has no label"
                reading.findings.at(node, "missing_label", message, "add `label: …`")
            resources[kind, label] = component
    return resources


def read_resource_file(
    reading: Reading, given: str | ResourceText, env: MappingType[str, str]
) -> tuple[Resources, Mapping | None]:
    """Read a file of resources.

    Args:
        reading: the one of the config that they are for, so that labels are told apart.
        given: the file's path, or a text.
        env: the environment's variables, for a file.

    Returns:
        The resources, and the file's tree; None when it cannot be read, with a finding added.
    """
    text = given if isinstance(given, ResourceText) else None
    path, env = (text.name, text.env) if text else (str(given), env)
    try:
        source = Source(path, text.text if text else read_file(path))
    except ConfigError as e:
        for lint in e.lints:
            reading.findings.add(lint)
        return {}, None
    options = reading.options
    source, root = read_source(
        source, env, reading.findings, check=options.check_variables, marks=options.thorough
    )
    if root is None:
        return {}, None
    if not isinstance(root, Mapping):
        message = f"a file of resources is an object, got {described(root)}"
        hint = "begin with `processor_resources:`, for example"
        reading.findings.at(root, "expected_object", message, hint)
        return {}, None
    if text is not None:
        for name in root.entries.keys() - _NAMES.keys():
            del root.entries[name]
    reading.ignores += find_ignores(source, root)
    with limited(text.permissions if text is not None else ALL):
        parsed = read_fields(reading, FILE_FIELDS, root, "", root)
    check_tests(reading.findings, path, parsed["tests"] or ())
    return resources_of(reading, parsed, root), root


def holds_resources_only(root: Mapping) -> bool:
    """Whether a file is one of resources: others may hold what its resources refer to."""
    return bool(_NAMES.keys() & root.entries.keys()) and (
        root.entries.keys() <= {field.name for field in FILE_FIELDS}
    )


def check_references(reading: Reading, roots: Iterable[Mapping]) -> None:
    """Add a finding for each reference to a resource that is not there, or that uses itself.

    Args:
        reading: has the references, and gets the findings.
        roots: the config, and the files with further resources.
    """
    written = [resource for root in roots for resource in _written(root)]
    # Labels in a dict of their own kind: in their order, and looked up where there are thousands.
    known: dict[Kind, dict[str, None]] = {}
    for kind, label in sorted({(resource.kind, resource.label.text) for resource in written}):
        known.setdefault(kind, {})[label] = None
    for reference in reading.references:
        if reference.label not in known.get(reference.kind, {}):
            _missing(reading, reference, known)
    _check_cycles(reading, written)


def _missing(
    reading: Reading, reference: Reference, known: MappingType[Kind, MappingType[str, None]]
) -> None:
    kind, label = reference.kind, reference.label
    labels = known.get(kind, {})
    others = [of for of, names in known.items() if label in names]
    hint = did_you_mean(label, labels)
    if not hint and others:
        hint = f"{label!r} is the label of a resource of kind {others[0]}"
    elif not hint:
        shown = list(labels)[:_LISTED] + (["…"] if len(labels) > _LISTED else [])
        hint = f"{kind}_resources has {', '.join(shown) if shown else 'none'}"
    message = f"there is no {kind} resource with the label {label!r}"
    reading.findings.at(reference.node, "missing_resource", message, hint)


def _check_cycles(reading: Reading, written: list[_Written]) -> None:
    """Find resources that use themselves, which could not be built."""
    owners = {one.place: (one.kind, one.label.text) for one in written}
    uses: dict[Key, list[Reference]] = {}
    for reference in reading.references:
        section = ".".join(reference.path.split(".")[:2])
        owner = owners.get((reference.node.source.name, section))
        if owner is not None:
            uses.setdefault(owner, []).append(reference)
    done: set[Key] = set()
    for start in uses:
        _follow(reading, start, uses, done)


def _follow(
    reading: Reading, start: Key, uses: MappingType[Key, list[Reference]], done: set[Key]
) -> None:
    """Walk along references from one resource; there may be thousands, one behind the other."""
    way: dict[Key, Iterator[Reference]] = {}
    key: Key | None = start
    while key is not None:
        if key not in done and key not in way:
            way[key] = iter(uses.get(key, ()))
        last = next(reversed(way), None)
        if last is None:
            return
        reference = next(way[last], None)
        if reference is None:
            way.popitem()
            done.add(last)
            key = next(reversed(way), None)
            continue
        key = (reference.kind, reference.label)
        if key in way:
            labels = [label for _, label in (*way, key)]
            message = f"the resource {reference.label!r} uses itself: {' → '.join(labels)}"
            reading.findings.at(reference.node, "resource_cycle", message)


def _written(root: Mapping) -> Iterator[_Written]:
    for section, kind in _NAMES.items():
        node = root.entries[section][1] if section in root.entries else None
        for index, item in enumerate(node.items if isinstance(node, Sequence) else ()):
            if isinstance(item, Mapping) and "label" in item.entries:
                label = item.entries["label"][1]
                if isinstance(label, Scalar):
                    yield _Written(kind, label, (label.source.name, f"{section}.{index}"))


def _label(node: Node) -> str:
    """Return the label as it is written: a template may have given the component another one."""
    entry = node.entries.get("label") if isinstance(node, Mapping) else None
    return entry[1].text if entry is not None and isinstance(entry[1], Scalar) else ""


def _item(root: Mapping, section: str, index: int) -> Node:
    node: Node = root.entries[section][1]
    items = getattr(node, "items", [node])
    found: Node = items[index] if index < len(items) else node
    return found
