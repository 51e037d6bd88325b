"""Several buffers in one config: that they go together, and that each can tell time by its source.

What a buffer gives must come once, and how early it may yet be must be known: this is the clock of
the buffers behind it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from streamer.components import catalog
from streamer.config.findings import suggest_name
from streamer.config.model import JOIN_SIDES, output_of, source_labels_of
from streamer.config.nodes import Mapping, Node, Sequence
from streamer.config.read_context import ReadContext
from streamer.core.durations import format_duration
from streamer.sdk.spec import BufferPlace, ParsedComponent, ParsedFields
from streamer.sdk.spec.component import Resources
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.result_times import find_obstacle, has_bounded_length
from streamer.window.settings.system_window import SystemWindow
from streamer.window.settings.window import Window

SECTION: Final = "buffers"
_TIMESTAMP: Final = "timestamp_mapping"
_RIGHT_TIMESTAMPS: Final = {
    "window_join": "right_timestamp_mapping",
    "table_join": "table_timestamp_mapping",
}
_CODE: Final = "bad_value"


class _Listed(NamedTuple):
    """One buffer of the list.

    Attributes:
        component: the buffer.
        place: its place.
        node: its object in the file.
    """

    component: ParsedComponent
    place: BufferPlace
    node: Mapping

    def field(self, *way: str) -> Node:
        """Return the node of a field of the object, or the last one on the way to it."""
        node: Node = self.node
        for name in way:
            if not isinstance(node, Mapping) or name not in node.entries:
                return node
            node = node.entries[name][1]
        return node


def check_buffers(
    context: ReadContext, root: Mapping, parsed: ParsedFields, resources: Resources
) -> None:
    """Add what is wrong with the list of buffers of a config.

    Args:
        context: gets the findings.
        root: the config's tree.
        parsed: its top level.
        resources: by kind and label.
    """
    entry = root.entries.get(SECTION)
    if entry is None:
        return
    if isinstance(entry[1], Sequence) and not entry[1].items:
        return  # As if it were left out: so `streamer echo` prints it.
    _check_sections(context, root)
    if not isinstance(entry[1], Sequence) or parsed[SECTION] is None:
        return
    listed = [
        _Listed(one, one.place, node)
        for one, node in zip(parsed[SECTION], entry[1].items, strict=True)
        if one is not None and one.place is not None and isinstance(node, Mapping)
    ]
    by_label = {one.component.label: one for one in listed if one.component.label}
    for one in listed:
        _check_one(context, one, by_label)
    if "output" in root.entries and parsed["output"] is not None:
        buffers = tuple(one.component for one in listed)
        outputs = [output_of(one, buffers, parsed["output"]) for one in buffers]
        if all(one is not parsed["output"] for one in outputs):
            message = "no buffer sends here: each has an output of its own, or another one takes it"
            context.findings.add_at(root.entries["output"][0], "should_omit", message, "remove it")
    if not context.findings.harmful_count:
        _check_clocks(context, listed, by_label, resources)


def _check_sections(context: ReadContext, root: Mapping) -> None:
    hints = {
        "buffer": "move it into the list, with a label",
        "pipeline": "move it below the buffer in the list whose batches go through it",
    }
    for name, hint in hints.items():
        if name in root.entries:
            message = f"field {name} does not go with buffers, which has them all"
            context.findings.add_at(root.entries[name][0], _CODE, message, hint)


def _check_one(context: ReadContext, one: _Listed, by_label: dict[str, _Listed]) -> None:
    findings, component = context.findings, one.component
    if not component.label:
        message = f"{component.name} has no label; each buffer of a list needs one"
        findings.add_at(one.node, "missing_label", message, "add `label: name`")
    if not catalog.makes_windows(component):
        message = f"{component.name} makes no windows; a list has buffers that do"
        hint = "use `buffer` instead of `buffers`, or remove it"
        findings.add_at(one.field(component.name), _CODE, message, hint)
    retention = _get_field(component, "retention")
    if retention is not None:
        message = "results can be kept for queries only where a config has one buffer"
        findings.add_at(one.field(component.name, "retention"), _CODE, message, "remove it")
    _check_way(context, one, by_label)


def _check_way(context: ReadContext, one: _Listed, by_label: dict[str, _Listed]) -> None:
    """Check that the buffers that one takes results of are there, and stand before it."""
    findings, component, source = context.findings, one.component, one.place.source
    if source and component.name in JOIN_SIDES:
        first, second = JOIN_SIDES[component.name]
        message = f"a {component.name} names what it takes by its sides, {first} and {second}"
        hint = f"remove from, and name the buffer by {first} or {second}"
        findings.add_at(one.field("from"), _CODE, message, hint)
        return
    if source and source not in by_label:
        hint = suggest_name(source, by_label) or (
            f"the buffers' labels are {', '.join(by_label) or 'missing'}; leave it out to take the "
            "input's messages"
        )
        message = f"field from is {source!r}, but no buffer has this label"
        findings.add_at(one.field("from"), _CODE, message, hint)
        return
    circle = _find_circle([component.label], by_label)
    if circle:
        shown = " → ".join(circle)
        message = f"the buffer takes its own results: {shown}"
        sides = JOIN_SIDES.get(component.name, ())
        at = next((side for side in sides if component.config[side] == circle[1]), None)
        node = one.field("from") if at is None else one.field(component.name, at)
        findings.add_at(node, _CODE, message, "let one of them take the input")


def _find_circle(way: list[str], by_label: dict[str, _Listed]) -> list[str]:
    """Return the labels of a way that ends where it has been before; empty without one."""
    if way[-1] in way[:-1]:
        return way[way.index(way[-1]) :]
    if way[-1] not in by_label:
        return []
    for source in source_labels_of(by_label[way[-1]].component):
        if source and (circle := _find_circle([*way, source], by_label)):
            return circle
    return []


def _get_field(component: ParsedComponent, name: str) -> Any:
    config = component.config
    return config.get(name) if isinstance(config, ParsedFields) else None


def _check_clocks(
    context: ReadContext, listed: list[_Listed], by_label: dict[str, _Listed], resources: Resources
) -> None:
    """Check that each buffer behind another one can tell time by its results."""
    build = catalog.build_context(resources).build
    for one in listed:
        window: Window = build(one.component).settings
        labels = source_labels_of(one.component)
        sources = [by_label[label] for label in labels if label in by_label]
        takes_input = len(sources) < len(labels)
        for source in sources:
            before: Window = build(source.component).settings
            if obstacle := _find_source_obstacle(window, before):
                message = f"{source.component.label} {obstacle}"
                node = _find_source_node(one, source.component.label)
                context.findings.add_at(node, _CODE, message, _hint_for(before))
            elif find_obstacle(before):
                continue
            elif isinstance(window, EventWindow):
                _check_event_time(context, one, window, before, takes_input)
            elif isinstance(window, SystemWindow):
                _check_system_time(context, one, window, before)
        if sources and window.join is not None:
            results = {source.component.label for source in sources}
            _check_joined_times(context, one, results)


def _find_source_obstacle(window: Window, before: Window) -> str:
    """Return why windows cannot take the results of others; empty where they can."""
    if obstacle := find_obstacle(before):
        emits = isinstance(before, EventWindow) and before.time.emit != "final"
        return obstacle if emits or not window.count_based else ""
    if window.join is not None and before.passes_messages:
        return "gives messages that are in no window, and so have no time by which to join them"
    return ""


def _find_source_node(one: _Listed, label: str) -> Node:
    """Return the node by which a buffer names another one."""
    for side in JOIN_SIDES.get(one.component.name, ()):
        if one.component.config[side] == label:
            return one.field(one.component.name, side)
    return one.field("from")


def _check_joined_times(context: ReadContext, one: _Listed, results: set[str]) -> None:
    """Check that mappings of times are given for messages of the input alone.

    Args:
        context: gets the findings.
        one: a join.
        results: the labels of its sides that are buffers.
    """
    component = one.component
    left, right = (component.config[side] in results for side in JOIN_SIDES[component.name])
    # The left side's mapping is the default of the right one's.
    fields = {_TIMESTAMP: left and right, _RIGHT_TIMESTAMPS[component.name]: right}
    for name in (name for name, is_useless in fields.items() if is_useless):
        if component.config.is_given(name):
            message = "the results of buffers have times of their own, which no mapping replaces"
            context.findings.add_at(one.field(component.name, name), _CODE, message, "remove it")


def _hint_for(before: Window) -> str:
    if isinstance(before, EventWindow) and before.time.emit != "final":
        return "leave emit out there, or let this buffer take the input's messages"
    if before.passes_messages:
        return "add order: event_time there, or put the pipeline's part before it into this buffer"
    if before.count_based:
        return "use a count_window here too, or windows with a time there"
    return "leave clock_scope out there"


def _check_event_time(
    context: ReadContext, one: _Listed, window: EventWindow, before: Window, takes_input: bool
) -> None:
    name = one.component.name
    if window.count_based:
        return
    if window.time.clock_scope != "stream" and not takes_input:
        message = (
            f"field clock_scope is {window.time.clock_scope!r}, but behind another buffer the "
            "clock is how early that one's results may yet be, for all keys"
        )
        place = one.field(name, "clock_scope")
        context.findings.add_at(place, _CODE, message, "remove it")
    if window.join is not None:
        return
    own = one.component.config.is_given(_TIMESTAMP)
    if not own and before.passes_messages:
        message = (
            f"the messages of {one.place.source} are in no window, and so have no time but their "
            "own"
        )
        hint = "add a timestamp_mapping that gives the time by which they were sorted"
        context.findings.add_at(one.field(name), _CODE, message, hint)
    if own and not has_bounded_length(before):
        message = (
            f"the sessions of {one.place.source} may be of any length, so that nothing says how "
            "early the times are that this mapping gives"
        )
        hint = "leave it out, for the end of the session; or give the sessions a max_duration"
        context.findings.add_at(one.field(name, _TIMESTAMP), _CODE, message, hint)


def _check_system_time(
    context: ReadContext, one: _Listed, window: SystemWindow, before: Window
) -> None:
    name = one.component.name
    if one.component.config.is_given(_TIMESTAMP):
        return
    if before.uses_event_time and not isinstance(before, SystemWindow):
        message = (
            f"a system_window goes by the machine's clock, and the results of {one.place.source} "
            "have event times: all of the past would be late"
        )
        hint = "add `timestamp_mapping: root = now()`, or use a tumbling_window"
        context.findings.add_at(one.field(name), _CODE, message, hint)
    elif window.allowed_lateness < before.allowed_lateness:
        message = (
            f"allowed_lateness is {format_duration(window.allowed_lateness)}, but the windows of "
            f"{one.place.source} come {format_duration(before.allowed_lateness)} after their end: "
            "they would be late"
        )
        hint = f"set it to {format_duration(before.allowed_lateness)} or more"
        context.findings.add_at(one.field(name, "allowed_lateness"), _CODE, message, hint)
