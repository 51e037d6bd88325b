"""A new config, with the defaults of the components that it is to have and a word about each field.

It has no findings: where a field is required, an example stands in its place.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from streamer.components import catalog
from streamer.config.create_expression import parse_create_expression
from streamer.config.known_names import explain_missing, suggest_available
from streamer.config.sections import SECTIONS
from streamer.config.yaml_writer import Block, Entry, format_yaml
from streamer.core.errors import StreamerError
from streamer.sdk.spec import REQUIRED, Field, Kind, Spec
from streamer.sdk.spec.keyed_state import STATEFUL_PROCESSORS

_SIMPLEST_COMPONENTS: Final = {
    Kind.INPUT: "stdin",
    Kind.PROCESSOR: "noop",
    Kind.OUTPUT: "drop",
    Kind.SCANNER: "lines",
}
_BY_TYPE: Final[dict[str, Any]] = {
    "string": "",
    "int": 0,
    "float": 0.0,
    "bool": False,
    "object": {},
    "unknown": "",
}
_NO_VALUES: Final[Mapping[str, Any]] = {}
_JOIN_LABELS: Final[Mapping[str, tuple[str, str]]] = {
    "window_join": ("orders", "shipments"),
    "table_join": ("customers", "orders"),
}
"""Labels of the inputs of each buffer that joins two, as the examples of its fields have them."""
_REDPANDA: Final = "redpanda"
_REDPANDA_COMPONENT: Final = "redpanda_common"
"""Has its connection from the section `redpanda` alone."""
_KINDS: Final = frozenset(map(str, Kind))
_SMALL_SECTIONS: Final = ("input", "pipeline", "output")
_SENTENCE: Final = re.compile(r"(?<=[^.][.!?])\s+(?=[A-Z`\"(])")


def create_config(expression: str = "", small: bool = False) -> str:
    """Return the text of a new config.

    Args:
        expression: inputs, a buffer, processors and outputs, such as
            `stdin/tumbling_window/mapping/stdout`; the buffer may be left out, and each part empty.
        small: leave out all but input, buffer, pipeline and output, and the fields marked as
            advanced.

    Raises:
        StreamerError: there is no such component, or too many parts.
    """
    inputs, buffer, processors, outputs = parse_create_expression(expression)
    maker = _ConfigMaker(small)
    labels = _JOIN_LABELS.get(buffer, ())
    components = {
        "input": maker.make_one(Kind.INPUT, inputs or ["stdin"], "inputs", labels),
        "processors": [maker.make_component(Kind.PROCESSOR, name) for name in processors],
        "output": maker.make_one(Kind.OUTPUT, outputs or ["stdout"], "outputs"),
    }
    if not buffer and not STATEFUL_PROCESSORS.isdisjoint(processors):
        # They keep state by key, and so need a buffer that gives messages one.
        buffer = "keyed_state"
    if buffer:
        components["buffer"] = maker.make_component(Kind.BUFFER, buffer)
    return "\n".join(format_yaml(Block((entry,))) for entry in maker.make_sections(components))


def make_component_example(spec: Spec, small: bool) -> Block:
    """Return a component with the defaults of its fields, as a config would have it."""
    return _ConfigMaker(small).make_component(spec.kind, spec.name)


class _ConfigMaker:
    """Makes the parts of one config, and the resources that they refer to."""

    def __init__(self, small: bool) -> None:
        self._small = small
        self._resources: dict[Kind, dict[str, Block]] = {}
        self._needs_redpanda = False

    def make_sections(self, components: Mapping[str, Any]) -> Iterator[Entry]:
        """Return the sections, with what was chosen in its place."""
        for section in SECTIONS:
            kind = section.name.removesuffix("_resources")
            resources = [*self._resources.get(Kind(kind), {}).values()] if kind in _KINDS else []
            if section.name == "tests" or section.deprecated:
                continue
            is_redpanda = section.name == _REDPANDA and self._needs_redpanda
            is_shown = section.name in (*_SMALL_SECTIONS, *components) or resources or is_redpanda
            if self._small and not is_shown:
                continue
            entry = self._make_entry(section)
            if section.name == "pipeline":
                entry = _with_processors(entry, components["processors"])
            elif section.name in components:
                entry = replace(entry, value=components[section.name])
            elif resources and section.name != kind:
                entry = replace(entry, value=resources)
            elif is_redpanda:
                brokers = Block((Entry("seed_brokers", ["localhost:9092"]),))
                entry = replace(entry, value=brokers, is_commented_out=False)
            yield entry

    def make_one(
        self, kind: Kind, names: list[str], field: str, labels: Sequence[str] = ()
    ) -> Block:
        """Return one component; several are held by a broker, as in Benthos, the first labelled."""
        if len(names) == 1:
            return self.make_component(kind, names[0])
        blocks = [self.make_component(kind, name) for name in names]
        for place, label in enumerate(labels):
            blocks[place] = Block((Entry("label", label), *blocks[place].entries))
        if "broker" not in catalog.component_names(kind):
            raise StreamerError(
                f"{len(names)} {field} ({', '.join(names)}) need the {kind} broker, "
                f"which is not available yet; name one {kind}, and make a config for each other"
            )
        return Block((Entry("broker", Block((Entry(field, blocks),))),))

    def make_component(self, kind: Kind, name: str) -> Block:
        """Return a component with the defaults of its fields."""
        spec = catalog.find_spec(kind, name)
        if spec is None:
            known = catalog.component_names(kind)
            missing = explain_missing(kind, name)
            close = difflib.get_close_matches(name, [] if missing else known, n=1)
            # A buffer that is misspelt stands where processors do.
            buffers = catalog.component_names(Kind.BUFFER) if kind == Kind.PROCESSOR else ()
            buffer = difflib.get_close_matches(name, () if missing or close else buffers, n=1)
            hint = f"did you mean {close[0]}?" if close else suggest_available(kind, name)
            hint = f"did you mean the buffer {buffer[0]}?" if buffer else hint
            text = missing or f"there is no {kind} {name!r}"
            raise StreamerError(f"{text}; {hint}" if hint else text)
        self._needs_redpanda |= name == _REDPANDA_COMPONENT
        return Block((Entry(name, self._make_body(spec), spec.summary),))

    def _make_body(self, spec: Spec) -> Any:
        if spec.config is None:
            return self._make_block(spec.fields, spec.begin)
        # A default that lint refuses stands for what must be chosen.
        keeps_default = spec.config.refers is not None or _is_valid_default(spec.config)
        return self._make_value(spec.config) if keeps_default else _make_example(spec.config)

    def _make_block(
        self, fields: Iterable[Field], begin: Mapping[str, Any] = _NO_VALUES, above: str = ""
    ) -> Block:
        shown = (f for f in fields if not f.deprecated and not (self._small and f.advanced))
        return Block(tuple(self._make_entry(field, begin, above + field.name) for field in shown))

    def _make_entry(
        self, field: Field, begin: Mapping[str, Any] = _NO_VALUES, path: str = ""
    ) -> Entry:
        comment = _SENTENCE.split(field.description.replace("\n", " "))[0]
        if path in begin:
            return Entry(field.name, begin[path], comment)
        if any(name.startswith(f"{path}.") for name in begin):
            return Entry(field.name, self._make_block(field.children, begin, f"{path}."), comment)
        if field.optional and field.default is REQUIRED:
            return Entry(field.name, _make_example(field), comment, is_commented_out=True)
        remark = "required" if field.required else ""
        return Entry(field.name, self._make_value(field), comment, remark)

    def _make_value(self, field: Field) -> Any:
        """Return a field's default, or what may stand in its place."""
        plain = field.default is not REQUIRED and field.default is not None
        if field.refers is not None and not (plain and _is_valid_default(field)):
            return self._make_reference(field, field.refers)
        if field.children and field.shape == "scalar" and not plain:
            return self._make_block(field.children)
        if not plain or not _is_valid_default(field):
            return _make_example(field)
        if field.kind is not None and field.shape == "scalar":
            (name,) = field.default
            return self.make_component(field.kind, name)
        return field.default

    def _make_reference(self, field: Field, kind: Kind) -> str | list[str]:
        """Return a label, or a list of them, and see to it that there are such resources."""
        example = field.examples[0] if field.examples else f"some_{kind}"
        if field.shape == "array":
            labels = example if isinstance(example, list | tuple) else [example]
            return [self._make_resource(str(label), kind) for label in labels]
        return self._make_resource(str(example), kind)

    def _make_resource(self, label: str, kind: Kind) -> str:
        names = catalog.component_names(kind)
        name = _SIMPLEST_COMPONENTS.get(kind, names[0] if names else "")
        made = self.make_component(kind, name)
        block = Block((Entry("label", label), *made.entries))
        self._resources.setdefault(kind, {})[label] = block
        return label


def _is_valid_default(field: Field) -> bool:
    # What is checked of a duration is its length, not its text.
    if field.check is None or field.default is REQUIRED or field.duration:
        return True
    return not field.check(field.default)


def _make_example(field: Field) -> Any:
    """Return what may stand in the place of a field that has no default."""
    if field.examples:
        example = field.examples[0]
        needs_list = field.shape in ("array", "2darray") and not isinstance(example, list | tuple)
        return [example] if needs_list else example
    if field.kind is not None:
        simple: dict[str, Any] = (
            {_SIMPLEST_COMPONENTS[field.kind]: {}} if field.kind in _SIMPLEST_COMPONENTS else {}
        )
        if field.shape == "scalar":
            return simple
        return [simple] if simple and field.shape == "array" else {}
    if field.shape != "scalar":
        return {} if field.shape == "map" else []
    if field.mapping:
        return "root = this"
    if field.duration:
        return "10s"
    return field.options[0] if field.options else _BY_TYPE[field.type]


def _with_processors(pipeline: Entry, processors: list[Block]) -> Entry:
    entries = tuple(
        replace(one, value=processors) if one.name == "processors" else one
        for one in pipeline.value.entries
    )
    return replace(pipeline, value=Block(entries))
