"""What is carried along while a config's nodes are parsed: findings, options, labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from streamer.config.findings import Findings
from streamer.config.nodes import Node, Scalar
from streamer.spec import Kind, ParsedComponent


@dataclass(frozen=True, slots=True)
class LintOptions:
    """What lint looks at beyond what makes a config fail.

    Attributes:
        deprecated: name deprecated fields and components.
        labels: name components that have no label.
        check_variables: name environment variables that are not set and have no default.
    """

    deprecated: bool = False
    labels: bool = False
    check_variables: bool = True


DEFAULT_OPTIONS: Final = LintOptions()


@dataclass(frozen=True, slots=True)
class Reference:
    """A place that names a resource by its label.

    Attributes:
        kind: the resource's kind.
        label: its label.
        node: where it is named.
        path: the dotted path of that place.
    """

    kind: Kind
    label: str
    node: Node
    path: str


@dataclass(slots=True)
class Reading:
    """One run over a config.

    Attributes:
        findings: what was found so far.
        component: reads a child component; fields hold components and components fields, so the
            two modules meet here.
        options: what to look for.
        labels: where each label was first seen.
        references: what names a resource.
    """

    findings: Findings
    component: Callable[[Reading, Kind, Node, str], ParsedComponent | None]
    options: LintOptions = DEFAULT_OPTIONS
    labels: dict[str, Scalar] = field(default_factory=dict)
    references: list[Reference] = field(default_factory=list)
