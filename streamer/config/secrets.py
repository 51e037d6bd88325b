"""Which values of a config are secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from streamer.bloblang import luggage
from streamer.config.nodes import Node, Scalar, Sequence
from streamer.config.source import NO_SOURCE
from streamer.redaction import SCRUBBED, credential, url_passwords
from streamer.spec import Field

# Of settings that go by any name, these hold secrets; Spark hides the same ones.
_NAMES_A_SECRET: Final = re.compile(r"(?i)secret|password|passwd|token|access.?key|credential")
# A number, a size, a duration or a yes: what settings of other names hold, and tells nothing.
_TELLS_NOTHING: Final = re.compile(r"(?i)[+-]?[\d.]*[a-z%]{0,2}|true|false|null|none")
# What tells nothing is no longer than this; a number that is may well be a key.
_LONG: Final = 5


def with_variables(secrets: Mapping[str, str]) -> dict[str, str]:
    """Add the environment variables that mappings have asked for by name (`env("X")`) so far.

    Args:
        secrets: what must not be seen, by what is shown instead (`Config.secrets`).
    """
    asked = {name: value for (kind, name), value in luggage().read.items() if kind == "env"}
    # What a unit test had set for a while is nobody's secret.
    held = {value: name for name, value in asked.items() if value == os.environ.get(name)}
    return {**{value: f"${{{name}}}" for value, name in held.items() if value}, **secrets}


def note_secrets(secrets: dict[str, str], field: Field, node: Node, key: Node) -> None:
    """Add the secrets in a value to those that are known.

    Args:
        secrets: texts by what is shown instead; those that are there stay as they are.
        field: the value's field.
        node: the value.
        key: what stands before it: its key, in a map.
    """
    if isinstance(node, Sequence) and field.credentials:
        for item in node.items:
            note_secrets(secrets, field, item, key)
    if not isinstance(node, Scalar) or node.source is NO_SOURCE:
        return
    if "://" in node.text:
        for password in url_passwords(node.text):
            secrets.setdefault(password, SCRUBBED)
    if field.credentials and isinstance(key, Scalar):
        found = credential(key.text, node.text)
        # A variable's default may be `none`, which is not to be taken out of all texts.
        if len(found) > _LONG or not _TELLS_NOTHING.fullmatch(found):
            secrets.setdefault(found, SCRUBBED)
    if not field.secret or not node.text:
        return
    named = field.shape != "map" or (isinstance(key, Scalar) and _NAMES_A_SECRET.search(key.text))
    if named or not _TELLS_NOTHING.fullmatch(node.text):
        secrets.setdefault(node.text, SCRUBBED)
