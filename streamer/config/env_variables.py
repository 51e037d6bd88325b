"""Environment variables in a config's text: `${VAR}`, `${VAR:default}`, `${VAR|base64decode}`.

They are replaced before YAML is read, as in Benthos: a variable may hold any part of a config.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final

from streamer.config.file import MAX_CONFIG_BYTES
from streamer.config.findings import Findings
from streamer.config.placeholders import Variable, find_escaped, find_variables
from streamer.config.source_map import Source

MAX_VARIABLES: Final = 10_000
_COMMENT: Final = re.compile(r"[ \t]*#[^\r\n]*")


def replace_variables(
    source: Source,
    env: Mapping[str, str],
    findings: Findings,
    check: bool = True,
    unset: str = "",
) -> None:
    """Replace the variables in a source's text.

    An empty variable counts as unset where there is a default. Line ends in a value are escaped
    as Go does (backslash, n): as they are, they would break the structure of the YAML.

    Args:
        source: changed in place; places stay those of the text before.
        env: the variables.
        findings: gets what is wrong: a variable without value and default, outside of comment
            lines; an unknown function; a value that is not base64 where it should be.
        check: whether variables without a value are findings.
        unset: what stands in the place of a variable without a value.
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
    """Return what comes instead of a variable, and add the findings about it."""
    name, default = variable.name, variable.default
    value = env.get(name)
    if default is not None:
        value = value or default
    elif value is None:
        findings.unset.add((source.name, source.locate(variable.start).line))
        if check and not _is_in_comment(source.text, variable.start):
            findings.add_at_offset(
                source,
                variable.start,
                "missing_variable",
                f"required environment variables were not set: [{name}]",
                f"set it, or write ${{{name}:some default}}",
            )
        value = ""
        if unset:
            return unset
    try:
        text = _apply_function(variable.function, value).replace("\n", "\\n")
    except ValueError as e:
        findings.add_at_offset(source, variable.start, "bad_variable", f"variable {name}: {e}")
        return ""
    if text and env.get(name):
        findings.secrets |= dict.fromkeys(_split_secret(text), f"${{{name}}}")
    return text


def _split_secret(text: str) -> list[str]:
    """Return a value as it stands in the config, and its lines, which YAML may take apart."""
    lines = [line for line in text.split("\\n") if line.strip()]
    return [text, text.replace("\\n", "\n"), *(lines if len(lines) > 1 else ())]


def _is_in_comment(text: str, offset: int) -> bool:
    line = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    return _COMMENT.match(text, line, offset) is not None


def _apply_function(function: str, value: str) -> str:
    """Apply the function behind a variable's `|`; only `base64decode` exists."""
    if not function:
        text = value
    elif function == "base64decode":
        try:
            text = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            # The value is not shown: what is encoded is likely a secret.
            raise ValueError("its value is not the base64 of UTF-8 text") from None
    else:
        raise ValueError(f"there is no function {function!r}; expected base64decode")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("its value is not valid UTF-8") from None
    return text
