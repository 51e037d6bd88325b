"""Components as configs have them: their kinds, fields and specs, and what is parsed by these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple

from streamer.core.permissions import ALL, Permissions, current_permissions
from streamer.sdk.spec.access import Access
from streamer.sdk.spec.sourced_text import TextPlace

VALUE_TYPES: Final = frozenset({"string", "int", "float", "bool", "object", "unknown"})


class Kind(StrEnum):
    """The kinds of components; the value is the word in configs, messages and field types."""

    INPUT = "input"
    BUFFER = "buffer"
    PROCESSOR = "processor"
    OUTPUT = "output"
    CACHE = "cache"
    RATE_LIMIT = "rate_limit"
    TABLE = "table"
    SCANNER = "scanner"
    METRICS = "metrics"
    TRACER = "tracer"

    @property
    def has_label(self) -> bool:
        """Whether a component of this kind may carry a `label`."""
        return self in _KINDS_WITH_LABEL

    @property
    def has_processors(self) -> bool:
        """Whether a component of this kind may carry `processors` beside its name."""
        return self in (Kind.INPUT, Kind.OUTPUT)


_KINDS_WITH_LABEL = frozenset(
    {Kind.INPUT, Kind.PROCESSOR, Kind.OUTPUT, Kind.CACHE, Kind.RATE_LIMIT, Kind.TABLE}
)
_KINDS: Final = frozenset(str(kind) for kind in Kind)


Shape = Literal["scalar", "array", "map", "2darray"]


class _Required:
    """The type of `REQUIRED`; one value, also after pickling."""

    def __repr__(self) -> str:
        return "REQUIRED"

    def __reduce__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()
"""The default of a field that has none."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field that a config may set.

    Attributes:
        name: as written in the config; empty for the body of a component that is not an object.
        type: `string`, `int`, `float`, `bool`, `object`, `unknown` (any value), or the name of a
            component kind (`processor`, `output`, …), for a child component.
        description: one or more sentences, for documentation and editors.
        default: the value as a config would write it (a duration as text); `REQUIRED` without one.
        optional: may be left out though it has no default; its value is None then.
        shape: whether the value is one of the type, a list, a map with string keys, or a list of
            lists of it.
        interpolated: a string that may hold `${! … }`; checked by lint, kept as text.
        mapping: a string that is a Bloblang mapping; checked by lint, kept as text. An empty text
            is no mapping and is not checked.
        variables: the variables that are set before the mapping runs.
        duration: a string that is a duration; parsed to int nanoseconds, None when empty.
        per_message: of a duration, the field that takes a mapping in its place; empty without one.
        refers: a string that is the label of a resource of this kind; lint checks that it exists.
        secret: never shown in messages, logs or `echo_config`.
        credentials: a map whose items are never shown where their names say that they tell who
            asks, as of headers `Authorization` and `Cookie`.
        access: what of the machine the value reaches; None for nothing. A text whose name looks as
            if it did needs one: configs that come by API are refused what says nothing.
        deprecated: still taken; `lint --deprecated` names it.
        advanced: left out of the short form of the documentation.
        options: the strings that are allowed; all are when empty. Not checked while interpolated.
        examples: values that documentation shows.
        children: the fields of an `object`; without any, an object is any map. Of a child
            component, those that stand beside its name at this place, with a label.
        check: called with the parsed value (never None) of a valid field; returns what is wrong
            with it and what was expected, or None.
        resolve: called likewise, and with where the value stands; returns what takes its place,
            which stays a text. It raises `BadTextError` where something in the text is wrong.
    """

    name: str
    type: str
    description: str
    default: Any = REQUIRED
    optional: bool = False
    shape: Shape = "scalar"
    interpolated: bool = False
    mapping: bool = False
    variables: tuple[str, ...] = ()
    duration: bool = False
    per_message: str = ""
    refers: Kind | None = None
    secret: bool = False
    credentials: bool = False
    access: Access | None = None
    deprecated: bool = False
    advanced: bool = False
    options: tuple[str, ...] = ()
    examples: tuple[Any, ...] = ()
    children: tuple[Field, ...] = ()
    check: Callable[[Any], str | None] | None = None
    resolve: Callable[[str, TextPlace], str] | None = None

    def __post_init__(self) -> None:
        if self.type not in VALUE_TYPES and self.type not in _KINDS:
            raise TypeError(f"field {self.name}: there is no type {self.type!r}")

    @property
    def kind(self) -> Kind | None:
        """The component kind of a child component, or None for a value."""
        return Kind(self.type) if self.type in _KINDS else None

    @property
    def required(self) -> bool:
        """Whether lint reports the field when it is missing.

        As in Benthos, an object with fields of its own may be left out: its fields' defaults
        stand, and those of them that are required are reported themselves.
        """
        if self.optional or self.default is not REQUIRED:
            return False
        return not (self.children and self.shape == "scalar")


NO_FIELDS: Final = Field("", "object", "It has no fields.", default={})
"""The `config` of a spec whose component has no fields."""


def duration_field(
    name: str,
    description: str,
    *,
    default: Any = REQUIRED,
    optional: bool = False,
    deprecated: bool = False,
    advanced: bool = False,
    examples: tuple[Any, ...] = (),
    check: Callable[[Any], str | None] | None = None,
) -> Field:
    """Return a field whose text is a duration, such as `1m30s`; see `Field.duration`."""
    return Field(
        name,
        "string",
        description,
        default=default,
        optional=optional,
        duration=True,
        deprecated=deprecated,
        advanced=advanced,
        examples=examples,
        check=check,
    )


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
        is_needed_by: tells by the value of the field whether it is needed, in place of `values`.
        setting: the setting for which it is needed, for documents, where `field` says too little.
    """

    name: str
    field: str = ""
    values: tuple[str, ...] = ()
    is_needed_by: Callable[[Any], bool] | None = None
    setting: str = ""

    def needed_by(self, config: Any) -> bool:
        """Return whether a component with this parsed body needs it."""
        if not self.field:
            return True
        value = config.get(self.field)
        if self.is_needed_by is not None:
            return self.is_needed_by(value)
        return value in self.values if self.values else bool(value)


class SharedFields(NamedTuple):
    """Fields that a component takes from a section of the top level where it does not have them.

    Attributes:
        section: the section's name.
        needed: the field without which the section is used; it must be in one of the two.
        names: all that is taken, where the component does not say it.
    """

    section: str
    needed: str
    names: tuple[str, ...]


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
        batching: of an input: returns, for a parsed body that is right, the policy by which the
            engine puts its messages into batches as they are read; None for none.
        shared: what it takes from a section of the top level.
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
        access: what of the machine it reaches without any field that says so. A plugin has to
            declare it: configs that come by API are refused a plugin without it.
        distribution: of a plugin: the package that it comes from, and its version; empty for ours.
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
    batching: Callable[[Any], ParsedFields | None] | None = None
    shared: SharedFields | None = None
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
    access: Access | None = None
    distribution: str = ""

    @property
    def body(self) -> Field:
        """The field that stands behind the component's name."""
        if self.config is not None:
            return self.config
        return Field("", "object", self.summary, children=self.fields)


class Place(NamedTuple):
    """A place in the config's file, 1-based; zeros when the value was not written there."""

    line: int = 0
    column: int = 0


NO_PLACE = Place()


class MetricsMapping(NamedTuple):
    """A template's mapping of the metrics of what it makes.

    Attributes:
        text: the mapping.
        label: the label of the template's component, which the mapping knows as `$label`.
    """

    text: str
    label: str


class ParsedFields(Mapping[str, Any]):
    """The fields of an object: `parsed["size"]`. It is frozen, and can be pickled.

    Every field of the spec is there. By the field's flags the value is: int nanoseconds for a
    duration (None for an empty one); the text for mappings and interpolated strings; a
    `ParsedComponent` for a child component; another `ParsedFields` for an object with fields; a
    tuple of these for arrays and a dict of these for maps; None for an optional field left out.
    """

    __slots__ = ("_values", "_places", "permissions")

    def __init__(
        self, values: Mapping[str, Any], places: Mapping[str, tuple[int, int]] | None = None
    ) -> None:
        """Wrap values; `places` says where the fields stand that the user wrote."""
        self.permissions = current_permissions()
        """What who opens what the fields name may do, in whatever thread and process."""
        self._values = dict(values)
        self._places = {name: Place(*place) for name, place in (places or {}).items()}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def is_given(self, name: str) -> bool:
        """Whether the user wrote the field."""
        return name in self._places

    def place(self, name: str) -> Place:
        """The position of the field's value, or `NO_PLACE` when it is a default."""
        return self._places.get(name, NO_PLACE)

    def __repr__(self) -> str:
        # Values may hold secrets, and a Parsed is easily logged by mistake.
        return f"Parsed({', '.join(self._values)})"

    def __getstate__(self) -> tuple[dict[str, Any], dict[str, Place], Permissions]:
        return self._values, self._places, self.permissions

    def __setstate__(self, state: tuple[dict[str, Any], dict[str, Place], Permissions]) -> None:
        self._values, self._places, self.permissions = state


@dataclass(frozen=True, slots=True)
class BufferPlace:
    """The place of one of several buffers: what stands beside its name.

    Attributes:
        source: the label of the buffer whose results it takes; empty for the input.
        processors: those that its batches go through.
        output: where they go then; None where the config names none beside it.
    """

    source: str = ""
    processors: tuple[ParsedComponent, ...] = ()
    output: ParsedComponent | None = None


@dataclass(frozen=True, slots=True)
class ParsedComponent:
    """A component as the config names it, ready to be built.

    Attributes:
        kind: its kind.
        name: its name in the catalogue (`system_window`).
        label: its label, or an empty string.
        config: a `ParsedFields`; or the value, when the component's body is not an object with
            fields.
        path: where it stands, as dotted path (`pipeline.processors.0`).
        line: 1-based line of its name in the file; 0 for a default that nobody wrote.
        column: 1-based column.
        processors: of an input or output: the processors beside its name.
        mapping: of metrics: the mapping beside its name.
        metrics_mappings: what the templates that have made it do to its metrics, and to those of
            what is inside of it; the innermost first.
        file: the file that its name stands in; empty for a default that nobody wrote.
        permissions: what it may do on a machine, wherever it is built; its mappings see neither
            files nor the environment without `local`.
        place: of one of several buffers; None of all other components.
    """

    kind: Kind
    name: str
    label: str = ""
    config: Any = field(default_factory=lambda: ParsedFields({}), repr=False)
    path: str = ""
    line: int = 0
    column: int = 0
    processors: tuple[ParsedComponent, ...] = ()
    mapping: str = ""
    metrics_mappings: tuple[MetricsMapping, ...] = ()
    file: str = field(default="", compare=False)
    permissions: Permissions = field(default=ALL, compare=False)
    place: BufferPlace | None = None


Resources = Mapping[tuple[Kind, str], ParsedComponent]
"""The components that others may refer to, by kind and label."""
