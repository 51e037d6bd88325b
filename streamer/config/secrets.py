"""Finds the secret values of a config."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from streamer.bloblang import MappingInputs
from streamer.config.nodes import Node, Scalar, Sequence
from streamer.config.source_map import NO_SOURCE
from streamer.core.redaction import SCRUBBED, extract_credential, find_url_passwords
from streamer.core.secret_reference import SecretReference
from streamer.sdk.spec import Field

if TYPE_CHECKING:
    from streamer.config.model import Config

# Of settings that go by any name, these hold secrets; Spark hides the same ones.
_SECRET_NAME: Final = re.compile(r"(?i)secret|password|passwd|token|access.?key|credential")
# A number, a size, a duration or a yes: what settings of other names hold, and tells nothing.
_HARMLESS_VALUE: Final = re.compile(r"(?i)[+-]?[\d.]*[a-z%]{0,2}|true|false|null|none")
# What tells nothing is no longer than this; a number that is may well be a key.
_MAX_HARMLESS_CHARS: Final = 5


def names_secret(name: str) -> bool:
    """Return whether a setting or a variable of this name likely holds a secret."""
    return _SECRET_NAME.search(name) is not None


def add_secret(secrets: dict[str, str], text: str) -> None:
    """Add a text that stands in the place of a secret to those that are known.

    The value of a variable that stands there is known to be a secret from then on.
    """
    shown = secrets.setdefault(text, SCRUBBED)
    if shown != SCRUBBED and not isinstance(shown, SecretReference):
        secrets[text] = SecretReference(shown)


def add_variable_values(secrets: Mapping[str, str], inputs: MappingInputs) -> dict[str, str]:
    """Add the environment variables that mappings have read by name (`env("X")`) so far.

    Args:
        secrets: what must not be seen, by what is shown instead (`Config.secrets`).
        inputs: what the mappings have read (`Config.inputs`).
    """
    read_variables = inputs.variables
    # What a unit test had set for a while is nobody's secret.
    names_by_value = {
        value: name for name, value in read_variables.items() if value == os.environ.get(name)
    }
    variables: dict[str, str] = {}
    for value, name in names_by_value.items():
        if value:
            shown = f"${{{name}}}"
            variables[value] = SecretReference(shown) if names_secret(name) else shown
    return {**variables, **secrets}


def list_references(config: Config) -> dict[str, str]:
    """Return the secrets of a config that can be read again, by the references to them."""
    secrets = add_variable_values(config.secrets, config.inputs)
    return {text: shown for text, shown in secrets.items() if isinstance(shown, SecretReference)}


def name_secrets(value: Any, references: Mapping[str, str]) -> Any:
    """Return a value whose texts have references in the place of secrets.

    Args:
        value: texts, lists and maps of them.
        references: by the secret.
    """
    if isinstance(value, str):
        for secret in sorted(references, key=len, reverse=True):
            value = value.replace(secret, references[secret])
    elif isinstance(value, Mapping):
        return {name: name_secrets(item, references) for name, item in value.items()}
    elif isinstance(value, list | tuple):
        return [name_secrets(item, references) for item in value]
    return value


def collect_secrets(secrets: dict[str, str], field: Field, node: Node, key: Node) -> None:
    """Add the secrets in a value to those that are known.

    Args:
        secrets: texts by what is shown instead; those that are there stay as they are.
        field: the value's field.
        node: the value.
        key: what stands before it: its key, in a map.
    """
    if isinstance(node, Sequence) and field.credentials:
        for item in node.items:
            collect_secrets(secrets, field, item, key)
    if not isinstance(node, Scalar) or node.source is NO_SOURCE:
        return
    if "://" in node.text:
        for password in find_url_passwords(node.text):
            add_secret(secrets, password)
    if field.credentials and isinstance(key, Scalar):
        secret = extract_credential(key.text, node.text)
        # A variable's default may be `none`, which is not to be taken out of all texts.
        if len(secret) > _MAX_HARMLESS_CHARS or not _HARMLESS_VALUE.fullmatch(secret):
            add_secret(secrets, secret)
    if not field.secret or not node.text:
        return
    is_secret_name = field.shape != "map" or (
        isinstance(key, Scalar) and _SECRET_NAME.search(key.text)
    )
    if is_secret_name or not _HARMLESS_VALUE.fullmatch(node.text):
        add_secret(secrets, node.text)
