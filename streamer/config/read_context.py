"""Context of parsing a config's nodes: findings, options, labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from streamer.config.findings import Findings
from streamer.config.nodes import Node, Scalar
from streamer.sdk.spec import Field, Kind, ParsedComponent, ParsedFields


@dataclass(frozen=True, slots=True)
class LintOptions:
    """Lints beyond those that make a config fail.

    Attributes:
        deprecated: name deprecated fields and components.
        labels: name components that have no label.
        check_variables: name environment variables that are not set and have no default.
        packages: name packages that components need and that are not installed.
        thorough: name what a config runs with all the same, such as resources that nothing uses,
            and comments that silence nothing; let comments silence errors too.
    """

    deprecated: bool = False
    labels: bool = False
    check_variables: bool = True
    packages: bool = True
    thorough: bool = False


DEFAULT_OPTIONS: Final = LintOptions()

SERVING_COMPONENTS: Final = frozenset({"http_server", "dynamic"})
"""The names of components that serve something over HTTP."""


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


class ServedComponent(NamedTuple):
    """A component that serves something over HTTP.

    Attributes:
        component: the component.
        key: where it is named; None for one that a template has made.
        body: its fields.
    """

    component: ParsedComponent
    key: Scalar | None
    body: Node | None


class StatefulPlace(NamedTuple):
    """A place in a config that keeps state by key.

    Attributes:
        node: where it stands.
        path: the dotted path of its component, the component's name last.
        calls: what keeps state, as it is written.
    """

    node: Node
    path: str
    calls: tuple[str, ...]


class MissingName(NamedTuple):
    """The name of a component that there is not.

    Attributes:
        kind: the kind that is expected there.
        key: where it is named.
        is_known: whether Benthos or Redpanda Connect has it.
    """

    kind: Kind
    key: Scalar
    is_known: bool


class Ignore(NamedTuple):
    """One code of a comment that silences findings.

    Attributes:
        file: the file's name.
        place: line and column of the comment.
        line: the line that it is for.
        code: what it silences; empty when the comment names nothing.
    """

    file: str
    place: tuple[int, int]
    line: int
    code: str


@dataclass(slots=True)
class ReadContext:
    """One run over a config.

    Attributes:
        findings: what was found so far.
        read_component: reads a child component; fields hold components and components fields, so
            the two modules meet here.
        options: what to look for.
        labels: where each label was first seen.
        references: what names a resource.
        catches: where `catch` processors stand.
        sync_responses: where `sync_response`s stand.
        served_components: what serves something over HTTP.
        stateful_places: what keeps state by key.
        window_places: what is about windows.
        component_path: of the component that is being read, its name last.
        templates: the templates within which it is, the outermost first.
        ignores: the comments that silence findings.
        unread: components that cannot be told, or that there are not; what they hold is not known.
        missing: components that there are not, by the name that stands there.
        code_chars: characters of mappings and interpolations so far.
        shared_sections: what components may take from sections of the top level, by section.
        lacks_sections: whether the sections are those of another file.
        uses_other_values: whether it is a second reading, with other values in the place of those
            that nobody knows.
    """

    findings: Findings
    read_component: Callable[
        [ReadContext, Kind, Node, str, tuple[Field, ...]], ParsedComponent | None
    ]
    options: LintOptions = DEFAULT_OPTIONS
    labels: dict[str, Scalar] = field(default_factory=dict)
    references: list[Reference] = field(default_factory=list)
    catches: list[Scalar] = field(default_factory=list)
    sync_responses: list[Scalar] = field(default_factory=list)
    served_components: list[ServedComponent] = field(default_factory=list)
    stateful_places: list[StatefulPlace] = field(default_factory=list)
    window_places: list[StatefulPlace] = field(default_factory=list)
    component_path: str = ""
    templates: tuple[str, ...] = ()
    ignores: list[Ignore] = field(default_factory=list)
    unread: list[Node] = field(default_factory=list)
    missing: list[MissingName] = field(default_factory=list)
    code_chars: int = 0
    shared_sections: Mapping[str, ParsedFields] = field(default_factory=dict)
    lacks_sections: bool = False
    uses_other_values: bool = False

    def make_second_pass(self) -> ReadContext:
        """Return a second reading, whose findings are nobody's."""
        return replace(
            self,
            findings=Findings(),
            labels={},
            references=[],
            catches=[],
            sync_responses=[],
            served_components=[],
            stateful_places=[],
            window_places=[],
            ignores=[],
            unread=[],
            missing=[],
            uses_other_values=True,
        )
