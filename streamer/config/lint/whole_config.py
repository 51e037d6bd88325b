"""Advice on a config as a whole, though it runs: warnings of a thorough lint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.config.lint.message_order import check_message_order
from streamer.config.lint.order_among_cases import check_order_among_cases
from streamer.config.lint.silent_sources import check_silent_sources
from streamer.config.lint.spark_settings import check_spark_settings
from streamer.config.lint.window_keys import check_window_key
from streamer.config.lint.window_retention import check_retention
from streamer.config.nodes import Mapping, Node, Scalar, Sequence
from streamer.config.read_context import ReadContext
from streamer.config.resources import RESOURCE_KINDS
from streamer.config.unset_variables import is_unset
from streamer.sdk.spec import Kind

# A file that has none of these is a file of resources, made for other configs.
_STREAM_SECTIONS: Final = ("input", "buffer", "pipeline", "output")
# What lives in the memory of one process, or counts on one machine.
_IN_MEMORY: Final = {
    Kind.CACHE: frozenset({"memory", "lru", "ttlru"}),
    Kind.RATE_LIMIT: frozenset({"local"}),
}
_LOSS_TEXTS: Final = {
    Kind.CACHE: "each of its workers has a cache of its own",
    Kind.RATE_LIMIT: "each of its machines counts by itself",
}


def check_whole_config(context: ReadContext, root: Mapping) -> None:
    """Add the warnings about a config that has been read whole.

    Args:
        context: has the references to resources, and gets the findings.
        root: the config's tree.
    """
    _check_unused(context, root)
    _check_memory(context, root)
    check_window_key(context, root)
    check_retention(context, root)
    check_silent_sources(context, root)
    check_message_order(context, root)
    check_order_among_cases(context, root)
    check_spark_settings(context, root)
    _check_catches(context, root)


def _check_unused(context: ReadContext, root: Mapping) -> None:
    if not any(section in root.entries for section in _STREAM_SECTIONS):
        return
    used = {(reference.kind, reference.label) for reference in context.references}
    # Whatever a component that there is not would do, it may well do with what it names.
    named = {text for node in context.unread for text in _collect_texts(node)}
    unknown = {reference.kind for reference in context.references if is_unset(reference.node)}
    for kind in RESOURCE_KINDS:
        for item in _list_items(root, f"{kind}_resources"):
            label = item.entries["label"][1] if "label" in item.entries else None
            if not isinstance(label, Scalar) or not label.text or label.text in named:
                continue
            if (kind, label.text) not in used and kind not in unknown:
                message = f"nothing uses the {kind} resource {label.text!r}"
                context.findings.add_at(label, "unused_resource", message, "remove it, or use it")


def _check_memory(context: ReadContext, root: Mapping) -> None:
    """Name what lives in one process's memory when there will be several processes."""
    master = _find_scalar(root, "spark", "master")
    if master is None or not master.text or master.text.startswith("local"):
        return
    for kind, in_memory in _IN_MEMORY.items():
        for item in _list_items(root, f"{kind}_resources"):
            named = item.entries.get("type")
            candidates: list[Node] = [key for key, _ in item.entries.values()]
            for node in [named[1]] if named is not None else candidates:
                if isinstance(node, Scalar) and node.text in in_memory:
                    message = f"{kind} {node.text} on a cluster: {_LOSS_TEXTS[kind]}"
                    hint = "use one that all workers reach over the network"
                    context.findings.add_at(node, "memory_on_cluster", message, hint)


def _check_catches(context: ReadContext, root: Mapping) -> None:
    """Name what waits for failed messages where they skip it."""
    strict = _find_scalar(root, "error_handling", "strict")
    if strict is not None and strict.value is True:
        for node in context.catches:
            message = "a catch recovers nothing while error_handling.strict is set"
            hint = (
                "failed messages skip it; put the processors that may fail and the recovery into "
                "a try_catch"
            )
            context.findings.add_at(node, "catch_in_strict", message, hint)


def _collect_texts(node: Node) -> Iterator[str]:
    """Return the values in a node, its own label apart."""
    if isinstance(node, Scalar):
        yield node.text
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _collect_texts(item)
    elif isinstance(node, Mapping):
        for name, (_, value) in node.entries.items():
            if name != "label":
                yield from _collect_texts(value)


def _list_items(root: Mapping, section: str) -> list[Mapping]:
    entry = root.entries.get(section)
    if entry is None or not isinstance(entry[1], Sequence):
        return []
    return [item for item in entry[1].items if isinstance(item, Mapping)]


def _find_scalar(root: Mapping, *way: str) -> Scalar | None:
    node: Node = root
    for part in way:
        if not isinstance(node, Mapping) or part not in node.entries:
            return None
        node = node.entries[part][1]
    return node if isinstance(node, Scalar) else None
