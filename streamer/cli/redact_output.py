"""Redacts secrets of a config in what commands print."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streamer.core.redaction import SCRUBBED, Redaction
from streamer.core.secret_reference import SecretReference

if TYPE_CHECKING:
    from streamer.config import Config


def build_redactor(config: Config, show_env: bool = False) -> Callable[[str], str]:
    """Return what takes the secrets of a config out of a text.

    Args:
        config: the config, whose mappings have been compiled.
        show_env: leave what environment variables hold; secrets are taken out anyway.
    """
    from streamer.config.secrets import add_variable_values

    secrets = add_variable_values(config.secrets, config.inputs)
    if show_env:
        secrets = {
            text: shown
            for text, shown in secrets.items()
            if shown == SCRUBBED or isinstance(shown, SecretReference)
        }
    return Redaction(secrets).redact_text


def redact_document(config: Config, document: Any) -> Any:
    """Return a document of JSON without the secrets of a config, in keys as in texts.

    Args:
        config: the config, whose mappings have been compiled.
        document: what JSON can hold.
    """
    # Secrets are known as JSON spells them, with all that is not ASCII escaped.
    return json.loads(build_redactor(config)(json.dumps(document)))
