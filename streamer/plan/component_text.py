"""Configs of single components as texts, for components that others are added to while they run."""

from __future__ import annotations

from typing import Any

import yaml

from streamer.config import parse_config
from streamer.config.echo import ConfigRedactor
from streamer.core.errors import StreamerError
from streamer.core.permissions import current_permissions
from streamer.sdk.spec import Kind, ParsedComponent


def parse_component(kind: Kind, text: str) -> ParsedComponent:
    """Read the config of an input or an output, JSON or YAML.

    Raises:
        StreamerError: it is none, or it is not right; the text says where.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as e:
        raise StreamerError(f"the config cannot be read: {' '.join(str(e).split())}") from None
    if not isinstance(document, dict):
        raise StreamerError(f"expected the config of an {kind}, such as {{generate: {{…}}}}")
    env: dict[str, str] | None = None if current_permissions().local else {}
    # The server of a stream that stands for nothing is never started.
    config = parse_config(yaml.safe_dump({str(kind): document}), env=env)
    component: ParsedComponent = getattr(config, str(kind))
    return component


def redact_component(component: ParsedComponent) -> dict[str, Any]:
    """Return the config of a component, without secrets."""
    return ConfigRedactor(parse_config("input: {stdin: {}}"), {}).redact_component(component)
