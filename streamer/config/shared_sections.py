"""Sections of the top level from which components take what they do not say themselves."""

from __future__ import annotations

from collections.abc import Mapping as MappingType
from dataclasses import replace
from typing import Final

from streamer.config.fields import read_field, read_fields
from streamer.config.findings import Findings
from streamer.config.nodes import Mapping, Scalar
from streamer.config.read_context import ReadContext
from streamer.config.sections import SECTIONS
from streamer.connectors.kafka.redpanda_section import SECTION
from streamer.sdk.spec import ParsedFields, Spec

SHARED: Final = tuple(section for section in SECTIONS if section.name == SECTION)


def read_shared_sections(context: ReadContext, root: Mapping) -> MappingType[str, ParsedFields]:
    """Return the sections that components share, before the components are read.

    What is wrong with them is found when all of the config is read.
    """
    sections: dict[str, ParsedFields] = {}
    for section in SHARED:
        key, node = root.entries.get(section.name, (None, None))
        if key is None or not isinstance(node, Mapping):
            continue
        quiet = replace(context, findings=Findings(), references=[], code_chars=0)
        parsed = read_field(quiet, section, node, section.name, key)
        if isinstance(parsed, ParsedFields) and not quiet.findings.harmful_count:
            sections[section.name] = parsed
    return sections


def take_shared_fields(
    context: ReadContext, spec: Spec, config: ParsedFields, key: Scalar
) -> ParsedFields:
    """Return the fields of a component with those that it takes from a section.

    Args:
        context: has the sections, and gets the finding that there is none.
        spec: the component's.
        config: its fields.
        key: its name.
    """
    shared = spec.shared
    if shared is None or config.get(shared.needed):
        return config
    section = context.shared_sections.get(shared.section)
    if section is None or not section[shared.needed]:
        if not context.lacks_sections:
            own = any(field.name == shared.needed for field in spec.fields)
            message = f"{spec.kind} {spec.name} has no {shared.needed}"
            hint = f"name them in the section {shared.section}, which components share"
            hint = f"name the brokers in {shared.needed}, or {hint}" if own else hint
            context.findings.add_at(key, "missing_field", message, hint)
        section = _read_defaults(context, shared.section, key)
    taken = {name: section[name] for name in shared.names if not config.is_given(name)}
    places = {name: config.place(name) for name in config if config.is_given(name)}
    return ParsedFields({**config, **taken}, places)


def _read_defaults(context: ReadContext, name: str, key: Scalar) -> ParsedFields:
    """Return the defaults of a section, so that the other fields can be checked."""
    quiet = replace(context, findings=Findings())
    (section,) = (one for one in SHARED if one.name == name)
    empty = Mapping(key.source, key.start, key.start)
    return read_fields(quiet, section.children, empty, name, key)
