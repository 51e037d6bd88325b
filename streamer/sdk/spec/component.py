"""The spec of a component: the only place that says its fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from streamer.sdk.spec.field import Field
from streamer.sdk.spec.kind import Kind

Status = Literal["stable", "beta", "experimental", "deprecated"]
Runs = Literal["", "Spark", "worker", "driver", "children"]
"""Where a component runs; empty where its kind usually does."""


@dataclass(frozen=True, slots=True)
class Example:
    """A config that the documentation shows and the suite lints.

    Attributes:
        title: a few words.
        config: YAML of a whole config, or of a part of one.
        summary: what it does, in a sentence or two.
    """

    title: str
    config: str
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Package:
    """A package that a component imports, and that only an extra installs.

    Attributes:
        name: as it is imported; one of `streamer.core.extras.EXTRA_OF`.
        field: the field that it is needed for; empty when the component always needs it.
        values: the values of the field with which it is needed; empty for any that is set.
    """

    name: str
    field: str = ""
    values: tuple[str, ...] = ()

    def needed_by(self, config: Any) -> bool:
        """Return whether a component with this parsed body needs it."""
        if not self.field:
            return True
        value = config.get(self.field)
        return value in self.values if self.values else bool(value)


@dataclass(frozen=True, slots=True)
class Spec:
    """The spec of a component: parsing, lint, JSON schema and documentation come from it.

    Attributes:
        kind: the component's kind.
        name: as written in configs.
        summary: one sentence.
        description: the rest of its documentation, Markdown.
        status: how settled it is; `lint --deprecated` names deprecated ones.
        fields: the fields, when the body is an object.
        config: the field that the body is, when it is not an object with fields (a mapping's
            text, a list of processors); its name is empty. Then `fields` is empty.
        check: looks at the parsed body as a whole (a `ParsedFields`, or the value when `config` is
            set) and returns pairs of a field's name (dotted when nested; empty for the component)
            and what is wrong with it. Called only when every field by itself is right.
        references: returns, for a parsed body that is right, the resources it refers to by a field
            that may hold other names as well: the field's name (dotted), the kind and the label.
        explains: returns, for a parsed body that is right, what `explain` says of it, in lines.
        takes_configs: whether it takes configs of further components while it runs.
        in_memory: whether what it keeps is in the memory of the process that it is built in.
        examples: configs for the documentation.
        categories: words that `list` and the documentation group by.
        begin: values, by a field's name (dotted when nested), that a new config has instead of the
            defaults, where these alone are not right together.
        runs: where it runs, when not where its kind usually does.
        delivery: what becomes of a message when something fails, when not as usual for its kind.
        limits: what it does not do, in a few words.
        requires: the packages that it needs besides those that are always installed.
        instead: by a name that is no field of it, though one may look for it: what there is
            instead, as a hint.
    """

    kind: Kind
    name: str
    summary: str
    description: str = ""
    status: Status = "stable"
    fields: tuple[Field, ...] = ()
    config: Field | None = None
    check: Callable[[Any], Iterable[tuple[str, str]]] | None = None
    references: Callable[[Any], Iterable[tuple[str, Kind, str]]] | None = None
    explains: Callable[[Any], Iterable[str]] | None = None
    takes_configs: bool = False
    in_memory: bool = False
    examples: tuple[Example, ...] = ()
    categories: tuple[str, ...] = ()
    begin: Mapping[str, Any] = field(default_factory=dict)
    runs: Runs = ""
    delivery: str = ""
    limits: str = ""
    requires: tuple[Package, ...] = ()
    instead: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> Field:
        """The field that stands behind the component's name."""
        if self.config is not None:
            return self.config
        return Field("", "object", self.summary, children=self.fields)
