"""Old spellings that Benthos still takes: they are taken, and lint names them when asked to.

Fields that are deprecated say so in their spec; here is what belongs to no component.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from streamer.config.nodes import Mapping, Scalar
from streamer.config.reading import Reading
from streamer.config.rules import RULES
from streamer.errors import Lint

_DISABLE: Final = "# BENTHOS LINT DISABLE"


def check_spelling(reading: Reading, name: str, node: Mapping) -> None:
    """Look at how a component is named: by its own name, or by `type` and `plugin`.

    Args:
        reading: gets the findings.
        name: the component's name.
        node: the component.
    """
    body = "plugin" if "plugin" in node.entries else name
    if "plugin" in node.entries and name in node.entries:
        key = node.entries["plugin"][0]
        message = f"the field plugin has no effect beside {name}"
        reading.findings.at(key, "should_omit", message, "remove it")
    elif "type" in node.entries and isinstance(node.entries["type"][1], Scalar):
        hint = f"write `{name}:` in the place of `{body}:`" if body == "plugin" else "remove it"
        if body not in node.entries:
            hint = f"write `{name}: {{}}`"
        _deprecated(reading, node.entries["type"][0], "field type is deprecated", hint)
    elif body == "plugin":
        _deprecated(reading, node.entries["plugin"][0], "field plugin is deprecated", "")


def _deprecated(reading: Reading, key: Scalar, message: str, hint: str) -> None:
    if reading.options.deprecated:
        reading.findings.at(key, "deprecated", message, hint)


def without_disabled(text: str, lints: Iterable[Lint]) -> tuple[Lint, ...]:
    """Return the findings of a config without those that its first line takes back.

    `# BENTHOS LINT DISABLE` there turns Benthos's lint off. What a config does not run with is an
    error in Benthos as well, so it stays.
    """
    if not text.startswith(_DISABLE):
        return tuple(lints)
    return tuple(
        lint
        for lint in lints
        if RULES[lint.code].level == "error" and not RULES[lint.code].runs_ignored
    )
