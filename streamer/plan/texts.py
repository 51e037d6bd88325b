"""Configs of single components as texts, for components that others are added to while they run."""

from __future__ import annotations

from typing import Any

import yaml

from streamer.config import parse_config
from streamer.config.echo import Shown
from streamer.errors import StreamerError
from streamer.permissions import current_permissions
from streamer.spec import Kind, ParsedComponent


def read_component(kind: Kind, text: str) -> ParsedComponent:
    """Read the config of an input or an output, JSON or YAML.

    Raises:
        StreamerError: it is none, or it is not right; the text says where.
    """
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as e:
        raise StreamerError(f"the config cannot be read: {' '.join(str(e).split())}") from None
    if not isinstance(found, dict):
        raise StreamerError(f"expected the config of an {kind}, such as {{generate: {{…}}}}")
    env: dict[str, str] | None = None if current_permissions().local else {}
    # The server of a stream that stands for nothing is never started.
    config = parse_config(yaml.safe_dump({str(kind): found}), env=env)
    made: ParsedComponent = getattr(config, str(kind))
    return made


def component_document(component: ParsedComponent) -> dict[str, Any]:
    """Return the config of a component, without secrets."""
    return Shown(parse_config("input: {stdin: {}}"), {}).component(component)
