"""A template, and which ones there are while a command works."""

from __future__ import annotations

from collections.abc import Mapping as MappingType
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from streamer.config.nodes import Mapping, Scalar
from streamer.config.source import NO_SOURCE
from streamer.spec import Kind, Parsed, Spec


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
    tests: tuple[Parsed, ...] = ()
    metrics_mapping: str = ""
    root: Mapping = field(default_factory=lambda: Mapping(NO_SOURCE, 0, 0), repr=False)


Templates = MappingType[tuple[Kind, str], Template]

INSTALLED: Final[ContextVar[Templates]] = ContextVar("installed templates")


def template_of(kind: Kind, name: str) -> Template | None:
    """Return the template that makes a component, or None when it is none's."""
    return INSTALLED.get({}).get((kind, name))
