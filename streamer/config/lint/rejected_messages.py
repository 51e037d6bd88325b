"""Finds components that reject messages by the config's words, and inputs that redeliver."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from streamer.components import catalog
from streamer.config.nodes import Mapping as MappingNode
from streamer.config.nodes import Node
from streamer.config.read_context import ReadContext
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.children import child_components
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS

REPLAY_FIELD: Final = AUTO_REPLAY_NACKS
_ANSWERING_INPUT: Final = "http_server"

_REPLAY_TEXT: Final = "each is kept in the checkpoint and sent again for ever"

_NEVER_FAIL: Final = frozenset(
    {"try_catch", "catch", "log", "metric", "noop", "sleep", "select_parts", "insert_part"}
)
"""Processors on which no message fails, or that recover what fails inside of them."""

_COMPARISON: Final = re.compile(r"[^&|!=]+ != [^&|!=]+")

Resolve = Callable[[ParsedComponent], ParsedComponent]
"""Returns a component, or the resource that it refers to."""


def may_reject(output: ParsedComponent, resolve: Resolve, way: tuple[str, ...] = ()) -> bool:
    """Return whether an output rejects messages by the config's words, and nothing catches them.

    What a receiver refuses is not meant: of that the config says nothing.

    Args:
        output: the output.
        resolve: finds resources.
        way: the paths of the outputs around it.
    """
    output = resolve(output)
    if output.path in way:
        return False
    if output.name in ("reject", "reject_errored"):
        return True
    config = output.config
    if isinstance(config, ParsedFields):
        if output.name == "switch" and config["strict_mode"] and not _takes_all(config["cases"]):
            return True
        if output.name == "drop_on" and config["error"]:
            return False
    children = [one for one in child_components(output) if one.kind == Kind.OUTPUT]
    if output.name == "fallback":
        # What one rejects goes to the next.
        children = children[-1:]
    return any(may_reject(child, resolve, (*way, output.path)) for child in children)


def _takes_all(cases: Iterable[ParsedFields]) -> bool:
    """Return whether each message has a case: one without a check, or checks of `==` and `!=`."""
    checks = {" ".join(case["check"].split()) for case in cases}
    unequal = {check for check in checks if _COMPARISON.fullmatch(check)}
    return "" in checks or any(check.replace(" != ", " == ") in checks for check in unequal)


def replays_rejected(component: ParsedComponent, resolve: Resolve) -> bool:
    """Return whether an input gives again what is rejected.

    Where several inputs are inside of it, and it is not known which one a message is from, nothing
    is dropped that one of them would give again.
    """
    return any(_is_replaying(one) for one in _find_leaf_inputs(component, resolve, ()))


def check_rejected_messages(
    context: ReadContext,
    root: MappingNode,
    parsed: ParsedFields,
    resources: Mapping[tuple[Kind, str], ParsedComponent],
) -> None:
    """Report an output that rejects messages where only the input could take them back.

    Args:
        context: gets the findings.
        root: the config's tree.
        parsed: its sections.
        resources: what components may refer to.
    """

    def resolve(component: ParsedComponent) -> ParsedComponent:
        if component.name != "resource":
            return component
        return resources.get((component.kind, component.config), component)

    source, output, buffer = parsed["input"], parsed["output"], parsed["buffer"]
    if source is None or output is None or not replays_rejected(source, resolve):
        return
    windows = buffer is not None and catalog.makes_windows(buffer)
    inputs = [*_find_leaf_inputs(source, resolve, ())]
    if not windows and all(one.name == _ANSWERING_INPUT for one in inputs):
        return
    entry: tuple[Node, Node] | None = root.entries.get("output")
    if entry is not None and may_reject(output, resolve):
        message = f"the output rejects messages, which nothing catches: {_REPLAY_TEXT}"
        hint = "put it into a fallback, or set auto_replay_nacks: false in the input to drop them"
        context.findings.add_at(entry[0], "rejected_for_ever", message, hint)
        return
    handling = root.entries.get("error_handling")
    strict = parsed["error_handling"]["strict"] is True
    if not strict or handling is None or not isinstance(handling[1], MappingNode):
        return
    beside = (one.processors for one in (source, *inputs, output))
    processors = (*parsed["pipeline"]["processors"], *chain.from_iterable(beside))
    if any(resolve(one).name not in _NEVER_FAIL for one in processors):
        message = (
            "a message on which a processor fails is rejected since this is set, and nothing "
            f"recovers it: {_REPLAY_TEXT}"
        )
        hint = (
            "put processors that may fail into a try_catch, or set auto_replay_nacks: false in the "
            "input to drop such messages"
        )
        context.findings.add_at(
            handling[1].entries["strict"][0], "rejected_for_ever", message, hint
        )


def _is_replaying(component: ParsedComponent) -> bool:
    config = component.config
    return not isinstance(config, ParsedFields) or bool(_get_replay_setting(config))


def _get_replay_setting(config: ParsedFields) -> Any:
    return config.get(REPLAY_FIELD, True)


def _find_leaf_inputs(
    component: ParsedComponent, resolve: Resolve, way: tuple[str, ...]
) -> Iterator[ParsedComponent]:
    """Return the inputs inside of an input that have none inside; itself where it has none."""
    component = resolve(component)
    if component.path in way:
        return
    children = [one for one in child_components(component) if one.kind == Kind.INPUT]
    if not children:
        yield component
    for child in children:
        yield from _find_leaf_inputs(child, resolve, (*way, component.path))
