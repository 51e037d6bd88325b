"""A template, and which ones there are while a command works."""

from __future__ import annotations

from collections.abc import Mapping as MappingType
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from streamer.config.nodes import Mapping, Scalar
from streamer.config.source_map import NO_SOURCE
from streamer.sdk.spec import Kind, ParsedFields, Spec


@dataclass(frozen=True)
class Template:
    """A component that is made out of others.

    Attributes:
        file: where it is defined.
        spec: what it takes.
        mapping: the text of its mapping, where it stands.
        metrics_mapping: the mapping of the metrics of what it makes, or an empty text.
        tests: its unit tests, each with `name`, `label`, `config` and `expected`.
        root: the file's tree.
    """

    file: str
    spec: Spec
    mapping: Scalar
    tests: tuple[ParsedFields, ...] = ()
    metrics_mapping: str = ""
    root: Mapping = field(default_factory=lambda: Mapping(NO_SOURCE, 0, 0), repr=False)


Templates = MappingType[tuple[Kind, str], Template]

INSTALLED_TEMPLATES: Final[ContextVar[Templates]] = ContextVar("installed templates")


def find_template(kind: Kind, name: str) -> Template | None:
    """Return the template that makes a component, or None when it is none's."""
    return INSTALLED_TEMPLATES.get({}).get((kind, name))
