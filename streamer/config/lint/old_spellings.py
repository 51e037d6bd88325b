"""Old spellings that Benthos still takes: they are taken, and lint names them when asked to.

Fields that are deprecated say so in their spec; here is what belongs to no component.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from streamer.config.lint.rules import RULES
from streamer.config.nodes import Mapping, Scalar
from streamer.config.read_context import ReadContext
from streamer.core.errors import Lint

_DISABLING_COMMENT: Final = "# BENTHOS LINT DISABLE"


def check_spelling(context: ReadContext, name: str, node: Mapping) -> None:
    """Check how a component is named: by its own name, or by `type` and `plugin`.

    Args:
        context: gets the findings.
        name: the component's name.
        node: the component.
    """
    body = "plugin" if "plugin" in node.entries else name
    if "plugin" in node.entries and name in node.entries:
        key = node.entries["plugin"][0]
        message = f"the field plugin has no effect beside {name}"
        context.findings.add_at(key, "should_omit", message, "remove it")
    elif "type" in node.entries and isinstance(node.entries["type"][1], Scalar):
        hint = f"write `{name}:` in the place of `{body}:`" if body == "plugin" else "remove it"
        if body not in node.entries:
            hint = f"write `{name}: {{}}`"
        _report_deprecated(context, node.entries["type"][0], "field type is deprecated", hint)
    elif body == "plugin":
        _report_deprecated(context, node.entries["plugin"][0], "field plugin is deprecated", "")


def _report_deprecated(context: ReadContext, key: Scalar, message: str, hint: str) -> None:
    if context.options.deprecated:
        context.findings.add_at(key, "deprecated", message, hint)


def drop_disabled(text: str, lints: Iterable[Lint]) -> tuple[Lint, ...]:
    """Return the findings of a config without those that its first line takes back.

    `# BENTHOS LINT DISABLE` there turns Benthos's lint off. What a config does not run with is an
    error in Benthos as well, so it stays.
    """
    if not text.startswith(_DISABLING_COMMENT):
        return tuple(lints)
    return tuple(
        lint
        for lint in lints
        if RULES[lint.code].level == "error" and not RULES[lint.code].runs_ignored
    )
