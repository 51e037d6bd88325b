"""Placeholders in a config's text: `${VAR}`, `${VAR:default}`, `${VAR|base64decode}`, secrets.

Variables are replaced before YAML is read, as in Benthos: one may hold any part of a config. In the
place of a secret (`streamer.config.references`) stands a mark until the YAML was read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from streamer.config.file import MAX_CONFIG_BYTES
from streamer.config.findings import Findings
from streamer.config.placeholders import Variable, find_escaped, find_variables
from streamer.config.references import (
    ReferencedValue,
    apply_function,
    format_reference,
    is_explicit,
    is_file,
    read_reference,
    variable_name,
)
from streamer.config.secrets import names_secret
from streamer.config.source_map import Source
from streamer.connectors.secrets.secret_file import is_readable_by_all
from streamer.core.secret_reference import SecretReference, spell_secret

MAX_VARIABLES: Final = 10_000
_COMMENT: Final = re.compile(r"[ \t]*#[^\r\n]*")


def replace_variables(
    source: Source,
    env: Mapping[str, str],
    findings: Findings,
    check: bool = True,
    unset: str = "",
) -> None:
    """Replace the placeholders in a source's text.

    An empty variable counts as unset where there is a default. Line ends in a variable's value are
    escaped as Go does (backslash, n): as they are, they would break the structure of the YAML.

    Args:
        source: changed in place; places stay those of the text before.
        env: the variables; without any, files and stores of secrets are out of reach too.
        findings: gets what is wrong: a placeholder without value and default, outside of comment
            lines; an unknown function; a value that is not base64 where it should be.
        check: whether placeholders without a value are findings.
        unset: what stands in the place of a placeholder without a value.
    """
    if "${" not in source.text:
        return
    pieces = []
    length = len(source.text)
    for count, variable in enumerate(find_variables(source.text), 1):
        value = _resolve_variable(source, variable, env, findings, check, unset)
        length += len(value)
        if count > MAX_VARIABLES or length > MAX_CONFIG_BYTES:
            what = f"over {MAX_VARIABLES:,} variables" if count > MAX_VARIABLES else "variables"
            message = f"the config has {what}, with which it is too large"
            findings.add_at_offset(source, variable.start, "too_large", message)
            return
        pieces.append((variable.start, variable.end, value))
    source.replace(pieces)
    # The escape's outer braces go: `${{X}}` stands for the text `${X}`.
    text = source.text
    source.replace(
        [(start, end, f"${text[start + 2 : end - 1]}") for start, end in find_escaped(text)]
    )


def _resolve_variable(
    source: Source,
    variable: Variable,
    env: Mapping[str, str],
    findings: Findings,
    check: bool,
    unset: str,
) -> str:
    """Return what comes instead of a placeholder, and add the findings about it."""
    in_comment = _is_in_comment(source.text, variable.start)
    if in_comment and is_explicit(variable):
        return ""
    referenced = _read_once(variable, env, findings)
    if referenced.problem is not None and referenced.value is None:
        is_refused = referenced.problem.code == "unreadable"
        if not is_refused:
            findings.unset.add((source.name, source.locate(variable.start).line))
        if (check or is_refused) and not in_comment:
            findings.add_at_offset(source, variable.start, *referenced.problem)
        if unset:
            return unset
    try:
        text = apply_function(variable.function, referenced.value or "")
    except ValueError as e:
        name = variable_name(variable)
        what = f"variable {name}" if name else f"file {variable.default}"
        findings.add_at_offset(source, variable.start, "bad_variable", f"{what}: {e}")
        return ""
    if text and not referenced.is_default:
        _add_secret(variable, text, referenced, findings)
    if findings.warns_of_files and is_file(variable) and is_readable_by_all(variable.default or ""):
        findings.add_at_offset(
            source,
            variable.start,
            "readable_secret",
            f"every user of this machine may read the file {variable.default}",
            f"chmod o-r {variable.default}",
        )
    return source.add_secret(text) if referenced.is_secret else text.replace("\n", "\\n")


def _read_once(variable: Variable, env: Mapping[str, str], findings: Findings) -> ReferencedValue:
    """Return the value of a placeholder: of a file or a store, it is read once for a config."""
    key = bool(env), format_reference(variable), variable.default
    referenced = findings.referenced_values.get(key)
    if referenced is None:
        referenced = read_reference(variable, env)
        if referenced.is_secret or referenced.value is None:
            findings.referenced_values[key] = referenced
    return referenced


def _add_secret(
    variable: Variable, text: str, referenced: ReferencedValue, findings: Findings
) -> None:
    """Add a value to those that must not be seen, as it may come to stand in the config."""
    shown = format_reference(variable)
    is_kept_nowhere = referenced.is_secret or names_secret(variable.name)
    for part, spelling in enumerate(spell_secret(text)):
        reference = SecretReference(shown, part) if is_kept_nowhere else shown
        if not isinstance(findings.secrets.get(spelling), SecretReference):
            findings.secrets[spelling] = reference


def _is_in_comment(text: str, offset: int) -> bool:
    line = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    return _COMMENT.match(text, line, offset) is not None
