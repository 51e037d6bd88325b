"""A plan as stages that hold nodes, which hold branches of nodes: all that a picture shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from streamer.config.echo import ConfigRedactor
from streamer.plan import Plan
from streamer.plan.buffer_chain import find_readers, level_count
from streamer.plan.window_plan import mapping_index
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields

_SHOWN_KINDS = (Kind.INPUT, Kind.PROCESSOR, Kind.OUTPUT)
_MAX_DETAILS = 2

ASIDE_TITLE = "messages that the windows drop"
"""What goes the way of the nodes that are aside."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A way inside of a component: the processors of a `group_by`, an output of a `broker`.

    Attributes:
        title: what leads into it (a check), or an empty string.
        nodes: what is on it.
    """

    title: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A component, or a step of one.

    Attributes:
        kind: what it is, as a picture calls it (`input`, `processor`, …).
        name: the component's name.
        label: its label, or an empty string.
        detail: what is special about it, in one line.
        branches: what is inside of it.
        aside: it gets only what leaves the way (`late_output`).
        path: where it stands in the config, as the labels of metrics say it.
        pre_aggregates: whether windows aggregate their messages by it as they come, so that no
            message passes it one by one.
    """

    kind: str
    name: str
    label: str = ""
    detail: str = ""
    branches: tuple[Branch, ...] = ()
    aside: bool = False
    path: str = ""
    pre_aggregates: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """The components that run in one place.

    Attributes:
        name: `stage 1`, `stage 2` or `driver`.
        where: the place, in words.
        nodes: in the order of a message's way.
        leaves: what goes on to the next stage, in words; empty for the last.
    """

    name: str
    where: str
    nodes: tuple[Node, ...]
    leaves: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """A stream.

    Attributes:
        name: the stream's name.
        stages: in the order of a message's way.
    """

    name: str
    stages: tuple[Stage, ...]


def build_graph(plan: Plan, redactor: ConfigRedactor) -> Graph:
    """Return the picture's contents.

    Args:
        plan: the stream's plan.
        redactor: what may be shown of its config.
    """
    return Graph(plan.name, tuple(_GraphBuilder(plan, redactor).make_stages()))


_DRIVER_ACTIONS: Final = {
    "drop": "nothing to do",
    "dynamic": "sends to all that there are",
    "file": "appends, exactly once",
    "http_server": "answers requests",
    "stdout": "prints",
}
"""What the driver does for an output."""


class _GraphBuilder:
    def __init__(self, plan: Plan, redactor: ConfigRedactor) -> None:
        self._plan = plan
        self._redactor = redactor
        self._open: list[ParsedComponent] = []
        self._aggregated = [*_find_aggregated(plan)]

    def make_stages(self) -> Iterator[Stage]:
        plan = self._plan
        taken = (self._make_node(plan.input), *map(self._make_node, plan.input.processors))
        processed = tuple(map(self._make_node, plan.processors))
        written = tuple(self._make_output_nodes())
        if plan.buffers:
            yield from self._buffer_stages(taken)
        elif plan.window is None:
            buffer = () if plan.buffer.name == "none" else (self._make_node(plan.buffer),)
            nodes = (*taken, *buffer, *processed, *written)
            yield Stage("stage 1", "Spark workers", nodes, "encoded messages")
        else:
            name, label = plan.buffer.name, plan.buffer.label
            path = _get_component_path(plan.buffer)
            detail = "time and shard of each message; packed by window"
            pack = Node("buffer", name, label, detail, path=path)
            yield Stage("stage 1", "Spark workers", (*taken, pack), self._describe_shuffle())
            shards = f"{plan.shards} shard{'' if plan.shards == 1 else 's'}"
            if plan.shards > 1 and not self._uses_several_shards():
                shards = f"one of {shards} is used"
            window_text = f"{plan.window.describe()}; each one batch"
            keep = Node("buffer", name, label, window_text, path=path)
            nodes = (keep, *processed, *written)
            yield Stage("stage 2", f"Spark workers, {shards}", nodes, "encoded messages")
        yield Stage("driver", "this program", tuple(self._make_driver_nodes()))

    def _buffer_stages(self, taken: tuple[Node, ...]) -> Iterator[Stage]:
        """Give stage 1 of several buffers, and a stage for each level of them."""
        plan = self._plan
        packs = tuple(
            self._make_buffer_node(number, "time and shard of each message; packed by window")
            for number in find_readers(plan, None)
        )
        shuffle = "shuffle: packed messages, by buffer and shard"
        yield Stage("stage 1", "Spark workers", (*taken, *packs), shuffle)
        levels = level_count(plan)
        for level in range(levels):
            nodes: list[Node] = []
            for number, one in enumerate(plan.buffers):
                if one.level == level:
                    nodes += self._make_level_nodes(number)
            leaves = "encoded messages" if level == levels - 1 else "shuffle: packed results"
            shards = f"{plan.shards} shard{'' if plan.shards == 1 else 's'} each"
            yield Stage(f"stage {level + 2}", f"Spark workers, {shards}", tuple(nodes), leaves)

    def _make_level_nodes(self, number: int) -> Iterator[Node]:
        """Give a buffer, and what its results go through."""
        one = self._plan.buffers[number]
        window = one.windows.window
        text = "" if window is None else f"{window.describe()}; each one batch"
        if one.sources:
            names = " and ".join(self._plan.buffers[source].label for source in one.sources)
            text = f"from {names}: {text}"
        yield self._make_buffer_node(number, text)
        yield from map(self._make_node, one.processors)
        for output in (one.output, one.late_output):
            if output is not None:
                aside = output is one.late_output
                for processor in output.processors:
                    yield self._make_node(processor, aside=aside)
                yield self._make_node(output, aside=aside)

    def _make_buffer_node(self, number: int, detail: str) -> Node:
        component = self._plan.buffers[number].component
        label = self._redactor.redact_text(component.label)
        path = _get_component_path(component)
        return Node("buffer", component.name, label, detail, path=path)

    def _uses_several_shards(self) -> bool:
        """Whether messages go to several shards."""
        return self._plan.key is not None or getattr(self._plan.window, "keyed", False)

    def _describe_shuffle(self) -> str:
        key = self._plan.key
        if not self._uses_several_shards():
            return "shuffle: packed messages, all to one shard"
        if key is None:
            return "shuffle: packed messages, by their key"
        return (
            f"shuffle: packed messages, by {_shorten_to_line(self._redactor.redact_text(key.text))}"
        )

    def _make_output_nodes(self) -> Iterator[Node]:
        for number, output in enumerate(self._plan.outputs):
            for processor in output.processors:
                yield self._make_node(processor, aside=bool(number))
            yield self._make_node(output, aside=bool(number))

    def _make_driver_nodes(self) -> Iterator[Node]:
        late = [one.late_output for one in self._plan.buffers] or [self._plan.late_output]
        for output in self._plan.driver_outputs:
            detail = _DRIVER_ACTIONS.get(output.name, "sent by the workers")
            label = self._redactor.redact_text(output.label)
            aside = any(output is one for one in late)
            path = _get_component_path(output)
            yield Node("output", output.name, label, detail, aside=aside, path=path)

    def _make_node(self, component: ParsedComponent, aside: bool = False) -> Node:
        branches: tuple[Branch, ...] = ()
        if component not in self._open:
            self._open.append(component)
            branches = tuple(self._find_branches(component))
            self._open.pop()
        detail = self._describe_component(component)
        kind = str(component.kind)
        label = self._redactor.redact_text(component.label)
        return Node(
            *(kind, component.name, label, detail, branches, aside),
            path=_get_component_path(component),
            pre_aggregates=any(component is one for one in self._aggregated),
        )

    def _find_branches(self, component: ParsedComponent) -> Iterator[Branch]:
        resource = self._plan.resources.get((component.kind, str(component.config)))
        if component.name == "resource" and resource is not None:
            yield Branch("", (self._make_node(resource),))
            return
        yield from self._find_branches_in(component.config, "")

    def _find_branches_in(self, value: Any, title: str) -> Iterator[Branch]:
        """Find the components in a value; those of one list are on one way, outputs are not."""
        if isinstance(value, ParsedComponent):
            if value.kind in _SHOWN_KINDS:
                before = tuple(map(self._make_node, value.processors))
                own = (self._make_node(value),)
                ends = own + before if value.kind == Kind.INPUT else before + own
                yield Branch(title, ends)
        elif isinstance(value, ParsedFields):
            check = value.get("check")
            lead = _shorten_to_line(check) if isinstance(check, str) and check else title
            for name in value:
                yield from self._find_branches_in(value[name], lead)
        elif isinstance(value, Mapping):
            for key, item in value.items():
                yield from self._find_branches_in(item, str(key))
        elif isinstance(value, tuple | list):
            if value and all(_is_processor(item) for item in value):
                yield Branch(title, tuple(map(self._make_node, value)))
                return
            for item in value:
                yield from self._find_branches_in(item, title)

    def _describe_component(self, component: ParsedComponent) -> str:
        body = self._redactor.redact_component(component).get(component.name)
        if isinstance(body, str):
            return _shorten_to_line(body)
        if not isinstance(body, Mapping) or not isinstance(component.config, ParsedFields):
            return ""
        given = (name for name in body if component.config.is_given(name))
        facts = (
            f"{name}: {_shorten_to_line(_format_flat(body[name]))}"
            for name in given
            if _is_flat(body[name])
        )
        return ", ".join(fact for _, fact in zip(range(_MAX_DETAILS), facts, strict=False))


def _find_aggregated(plan: Plan) -> Iterator[ParsedComponent]:
    """Give the mappings by which windows aggregate their messages."""
    if plan.buffers:
        ways = [(one.windows.aggregation, one.windows.key, one.processors) for one in plan.buffers]
    else:
        ways = [(plan.aggregation, plan.key, plan.processors)]
    for aggregation, key, processors in ways:
        if aggregation.text is not None:
            yield processors[mapping_index(key)]


def _get_component_path(component: ParsedComponent) -> str:
    return ComponentRef(component).fields["path"]


def _is_processor(value: Any) -> bool:
    return isinstance(value, ParsedComponent) and value.kind == Kind.PROCESSOR


def _is_flat(value: Any) -> bool:
    return not isinstance(value, Mapping) and (
        not isinstance(value, list)
        or (bool(value) and not any(isinstance(item, Mapping | list) for item in value))
    )


def _format_flat(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shorten_to_line(text: str) -> str:
    """Return the first line that says something, with a sign when there are more."""
    lines = [line.strip() for line in text.splitlines()]
    texts = [line for line in lines if line and not line.startswith("#")] or [""]
    return f"{texts[0]} …" if len(texts) > 1 else texts[0]
