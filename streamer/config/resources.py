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
from streamer.config.findings import suggest_name
from streamer.config.lint.ignores import find_ignores
from streamer.config.nodes import Mapping, Node, Scalar, Sequence, describe_node
from streamer.config.read_context import ReadContext, Reference
from streamer.config.sections import SECTIONS
from streamer.config.source_map import Source
from streamer.config.unit_tests.section import DEFINITION_FIELDS, check_tests
from streamer.config.yaml_reader import read_source
from streamer.core.errors import ConfigError
from streamer.core.permissions import ALL, Permissions, limit_permissions
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields

RESOURCE_KINDS: Final = (
    Kind.INPUT,
    Kind.PROCESSOR,
    Kind.OUTPUT,
    Kind.CACHE,
    Kind.RATE_LIMIT,
    Kind.TABLE,
)
"""The kinds that have a `*_resources` section."""

_MAX_LISTED_LABELS: Final = 20
Key = tuple[Kind, str]
Resources = dict[Key, ParsedComponent]

_SECTION_KINDS: Final = {f"{kind}_resources": kind for kind in RESOURCE_KINDS}
_SECTIONS: Final = tuple(section for section in SECTIONS if section.name in _SECTION_KINDS)
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


class _ResourceNode(NamedTuple):
    """A resource as it is written, whether or not it could be read."""

    kind: Kind
    label: Scalar
    place: tuple[str, str]
    """The file, and the path in it."""


def collect_resources(context: ReadContext, parsed: ParsedFields, root: Mapping) -> Resources:
    """Return the resources by kind and label; one without a label could never be used."""
    resources = {}
    for section, kind in _SECTION_KINDS.items():
        for index, component in enumerate(parsed[section] or ()):
            if component is None:
                continue
            node = _find_item(root, section, index)
            label = _read_label_text(node)
            if not label:
                message = f"this {kind} resource has no label"
                context.findings.add_at(node, "missing_label", message, "add `label: …`")
            resources[kind, label] = component
    return resources


def read_resource_file(
    context: ReadContext, file: str | ResourceText, env: MappingType[str, str]
) -> tuple[Resources, Mapping | None]:
    """Read a file of resources.

    Args:
        context: the one of the config that they are for, so that labels are told apart.
        file: the file's path, or a text.
        env: the environment's variables, for a file.

    Returns:
        The resources, and the file's tree; None when it cannot be read, with a finding added.
    """
    text = file if isinstance(file, ResourceText) else None
    path, env = (text.name, text.env) if text else (str(file), env)
    try:
        source = Source(path, text.text if text else read_file(path))
    except ConfigError as e:
        for lint in e.lints:
            context.findings.add(lint)
        return {}, None
    options = context.options
    permissions = text.permissions if text is not None else ALL
    with limit_permissions(permissions):
        source, root = read_source(
            source, env, context.findings, check=options.check_variables, marks=options.thorough
        )
    if root is None:
        return {}, None
    if not isinstance(root, Mapping):
        message = f"a file of resources is an object, got {describe_node(root)}"
        hint = "begin with `processor_resources:`, for example"
        context.findings.add_at(root, "expected_object", message, hint)
        return {}, None
    if text is not None:
        for name in root.entries.keys() - _SECTION_KINDS.keys():
            del root.entries[name]
    context.ignores += find_ignores(source, root)
    with limit_permissions(permissions):
        parsed = read_fields(context, FILE_FIELDS, root, "", root)
    check_tests(context.findings, path, parsed["tests"] or ())
    return collect_resources(context, parsed, root), root


def holds_resources_only(root: Mapping) -> bool:
    """Whether a file is one of resources: others may hold what its resources refer to."""
    return bool(_SECTION_KINDS.keys() & root.entries.keys()) and (
        root.entries.keys() <= {field.name for field in FILE_FIELDS}
    )


def check_references(context: ReadContext, roots: Iterable[Mapping]) -> None:
    """Add a finding for each reference to a resource that is not there, or that uses itself.

    Args:
        context: has the references, and gets the findings.
        roots: the config, and the files with further resources.
    """
    resource_nodes = [resource for root in roots for resource in _find_resource_nodes(root)]
    # Labels in a dict of their own kind: in their order, and looked up where there are thousands.
    known: dict[Kind, dict[str, None]] = {}
    for kind, label in sorted(
        {(resource.kind, resource.label.text) for resource in resource_nodes}
    ):
        known.setdefault(kind, {})[label] = None
    for reference in context.references:
        if reference.label not in known.get(reference.kind, {}):
            _report_missing(context, reference, known)
    _check_cycles(context, resource_nodes)


def _report_missing(
    context: ReadContext, reference: Reference, known: MappingType[Kind, MappingType[str, None]]
) -> None:
    kind, label = reference.kind, reference.label
    labels = known.get(kind, {})
    others = [of for of, names in known.items() if label in names]
    hint = suggest_name(label, labels)
    if not hint and others:
        hint = f"{label!r} is the label of a resource of kind {others[0]}"
    elif not hint:
        shown = list(labels)[:_MAX_LISTED_LABELS] + (
            ["…"] if len(labels) > _MAX_LISTED_LABELS else []
        )
        hint = f"{kind}_resources has {', '.join(shown) if shown else 'none'}"
    message = f"there is no {kind} resource with the label {label!r}"
    context.findings.add_at(reference.node, "missing_resource", message, hint)


def _check_cycles(context: ReadContext, resource_nodes: list[_ResourceNode]) -> None:
    """Find resources that use themselves, which could not be built."""
    owners = {one.place: (one.kind, one.label.text) for one in resource_nodes}
    uses: dict[Key, list[Reference]] = {}
    for reference in context.references:
        section = ".".join(reference.path.split(".")[:2])
        owner = owners.get((reference.node.source.name, section))
        if owner is not None:
            uses.setdefault(owner, []).append(reference)
    done: set[Key] = set()
    for start in uses:
        _follow_references(context, start, uses, done)


def _follow_references(
    context: ReadContext, start: Key, uses: MappingType[Key, list[Reference]], done: set[Key]
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
            context.findings.add_at(reference.node, "resource_cycle", message)


def _find_resource_nodes(root: Mapping) -> Iterator[_ResourceNode]:
    for section, kind in _SECTION_KINDS.items():
        node = root.entries[section][1] if section in root.entries else None
        for index, item in enumerate(node.items if isinstance(node, Sequence) else ()):
            if isinstance(item, Mapping) and "label" in item.entries:
                label = item.entries["label"][1]
                if isinstance(label, Scalar):
                    yield _ResourceNode(kind, label, (label.source.name, f"{section}.{index}"))


def _read_label_text(node: Node) -> str:
    """Return the label as it is written: a template may have given the component another one."""
    entry = node.entries.get("label") if isinstance(node, Mapping) else None
    return entry[1].text if entry is not None and isinstance(entry[1], Scalar) else ""


def _find_item(root: Mapping, section: str, index: int) -> Node:
    node: Node = root.entries[section][1]
    items = getattr(node, "items", [node])
    item: Node = items[index] if index < len(items) else node
    return item
