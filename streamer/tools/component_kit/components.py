"""Components for tests: read from a config, and built as a stream builds them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from streamer.components.catalog import build_context, find_spec
from streamer.components.plugins import provide_plugin
from streamer.config import Config, parse_config
from streamer.core.errors import StreamerError
from streamer.core.message import Message
from streamer.sdk.spec import Kind, ParsedComponent, Spec

_LABEL: Final = "tested"
_RESOURCES: Final = {
    Kind.CACHE: "cache_resources",
    Kind.RATE_LIMIT: "rate_limit_resources",
    Kind.TABLE: "table_resources",
}

Content = bytes | str | Message | Mapping[str, Any] | list[Any]
"""A message as tests write it: a payload, a text, a value that becomes JSON, or a message."""


def make_message(content: Content) -> Message:
    """Return a message of a payload, a text (UTF-8) or a JSON value."""
    if isinstance(content, Message):
        return content
    if isinstance(content, bytes):
        return Message(content)
    return Message((content if isinstance(content, str) else json.dumps(content)).encode())


def make_batch(*contents: Content) -> list[Message]:
    """Return messages as one batch."""
    return [make_message(content) for content in contents]


class TestedComponent:
    """A component with the fields that a test gives it.

    Attributes:
        spec: its spec.
        parsed: the component as the config has it.
        config: the whole config that it stands in.
    """

    __test__ = False

    def __init__(self, spec: Spec, parsed: ParsedComponent, config: Config) -> None:
        """Take the component, and the config that it was read from."""
        self.spec = spec
        self.parsed = parsed
        self.config = config

    def build(self) -> Any:
        """Build the component as each task of a stream does.

        Raises:
            StreamerError: it cannot be built.
        """
        return build_context(self.config.resources, self.parsed).build(self.parsed)


@contextmanager
def use_component(
    component: Any, config: Any = None, *, kind: Kind | None = None, **resources: Any
) -> Iterator[TestedComponent]:
    """Have a component with its fields, for as long as the block runs; nothing is installed.

    Args:
        component: a module with `SPEC`, `build` and `API_VERSION`; or the name of a component.
        config: its body, as YAML would have it: a mapping of its fields, or one value.
        kind: the kind, where `component` is a name.
        resources: sections of the config, such as `cache_resources=[{"label": …}]`.

    Raises:
        StreamerError: the component is bad, or lint finds its fields wrong.

    Example:
        >>> with use_component("mapping", "root = this.a", kind=Kind.PROCESSOR) as tested:
        ...     tested.spec.name
        'mapping'
    """
    if isinstance(component, str):
        spec = find_spec(kind or Kind.PROCESSOR, component)
        if spec is None:
            raise StreamerError(f"there is no {kind or Kind.PROCESSOR} {component!r}")
        yield _read_component(spec, config, resources)
        return
    with provide_plugin(component) as spec:
        yield _read_component(spec, config, resources)


def _read_component(spec: Spec, config: Any, resources: Mapping[str, Any]) -> TestedComponent:
    body = {} if config is None else config
    document = {**resources, **_place_component(spec.kind, {spec.name: body}, resources)}
    read = parse_config(json.dumps(document))
    return TestedComponent(spec, _find_component(read, spec.kind), read)


def _place_component(
    kind: Kind, named: Mapping[str, Any], resources: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the section of a config that a component stands in."""
    if kind == Kind.PROCESSOR:
        return {"pipeline": {"processors": [named]}}
    if kind == Kind.SCANNER:
        return {"input": {"file": {"paths": ["none"], "scanner": named}}}
    if kind in _RESOURCES:
        section = _RESOURCES[kind]
        return {section: [*resources.get(section, ()), {"label": _LABEL, **named}]}
    return {str(kind): named}


def _find_component(config: Config, kind: Kind) -> ParsedComponent:
    component: ParsedComponent
    if kind == Kind.PROCESSOR:
        [component] = config.processors
    elif kind == Kind.SCANNER:
        component = config.input.config["scanner"]
    elif kind in _RESOURCES:
        component = config.resources[kind, _LABEL]
    else:
        component = getattr(config, str(kind))
    return component
