"""The texts of configs as documents: shown without secrets, and patched without losing them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import yaml

from streamer.config import Config
from streamer.config.findings import Findings
from streamer.config.nodes import Mapping as MappingNode
from streamer.config.nodes import Node, Scalar, Sequence
from streamer.config.placeholders import find_variables
from streamer.config.secrets import add_variable_values
from streamer.config.source_map import Source
from streamer.config.yaml_reader import read_yaml
from streamer.core.redaction import SCRUBBED, Redaction
from streamer.service.fleet.errors import BadConfigError

_VARIABLE_MARK: Final = re.compile(r"STREAMERxVARIABLEx(\d+)x")


def parse_document(text: str, name: str = "", scalar: Callable[[Scalar], Any] | None = None) -> Any:
    """Return the value of a YAML or JSON text, within the bounds that configs have.

    Its environment variables (`${NAME}`) stay as they are.

    Args:
        text: the text.
        name: what findings call it.
        scalar: gives the value of a scalar; its own when None.

    Raises:
        BadConfigError: it cannot be read.
    """
    # A variable's braces would mean something to YAML.
    variables: list[str] = []
    pieces: list[str] = []
    position = 0
    for variable in find_variables(text):
        pieces += [text[position : variable.start], f"STREAMERxVARIABLEx{len(variables)}x"]
        variables.append(text[variable.start : variable.end])
        position = variable.end
    findings = Findings()
    root = read_yaml(Source(name, "".join(pieces) + text[position:]), findings)
    if root is None:
        raise BadConfigError.from_lints(findings.to_sorted())

    def restore_variables(marked_text: str) -> str:
        return _VARIABLE_MARK.sub(
            lambda match: variables[int(match[1])] if int(match[1]) < len(variables) else match[0],
            marked_text,
        )

    def value_of(node: Node) -> Any:
        if isinstance(node, MappingNode):
            return {restore_variables(key): value_of(one) for key, (_, one) in node.entries.items()}
        if isinstance(node, Sequence):
            return [value_of(item) for item in node.items]
        assert isinstance(node, Scalar)
        value = node.value if scalar is None else scalar(node)
        return restore_variables(value) if isinstance(value, str) else value

    try:
        return value_of(root)
    except ValueError as e:
        raise BadConfigError([f"{name}: {e}" if name else str(e)]) from None


def redact_document(text: str, config: Config) -> Any:
    """Return the text of a config as a document without its secrets."""
    secrets = add_variable_values(config.secrets, config.inputs)
    redaction = Redaction(secrets)

    def scalar(node: Scalar) -> Any:
        if node.text and node.text in secrets:
            return secrets[node.text]
        value = node.value
        return redaction.redact_text(value) if isinstance(value, str) else value

    return parse_document(text, config.path, scalar)


def format_yaml(value: Any) -> str:
    """Return a document as YAML."""
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000)
    return text


def merge_patch(old: Any, patch: Any) -> Any:
    """Return a document with a patch: objects are merged, all else is replaced, as in Benthos."""
    if not isinstance(old, Mapping) or not isinstance(patch, Mapping):
        return patch
    result = dict(old)
    for name, value in patch.items():
        result[name] = merge_patch(old[name], value) if name in old else value
    return result


def restore_secrets(value: Any, former: Any) -> Any:
    """Return a document with the secrets that it only has marks for, from the one before it.

    A mark stands for the secret at its own place.
    """
    if isinstance(value, Mapping):
        former_entries = former if isinstance(former, Mapping) else {}
        return {
            name: restore_secrets(item, former_entries.get(name)) for name, item in value.items()
        }
    if isinstance(value, list):
        items = former if isinstance(former, list) else []
        return [
            restore_secrets(item, items[index] if index < len(items) else None)
            for index, item in enumerate(value)
        ]
    if isinstance(value, str) and SCRUBBED in value and former is not None:
        # A URL has its password in the middle: `http://user:MARK@host`.
        pattern = re.escape(value).replace(re.escape(SCRUBBED), "(.+)")
        is_match = value == SCRUBBED or re.fullmatch(pattern, str(former), re.DOTALL)
        return former if is_match else value
    return value
