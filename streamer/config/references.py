"""References of a config to values from elsewhere: `${file:PATH}`, `${env:NAME}`, `${NAME}`.

The first two are secrets always, and so is a name that a store of `--secrets` has. Their values are
put in once the YAML was read, so that no character of one can change the structure. A name that is
but in the environment is a part of the text, as in Benthos.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final, NamedTuple

from streamer.config.placeholders import Variable, find_variables
from streamer.connectors.secrets.lookup import current_lookup
from streamer.connectors.secrets.secret_file import read_secret_file
from streamer.connectors.secrets.store import SecretError
from streamer.core.permissions import NotPermittedError, current_permissions
from streamer.core.secret_reference import SecretReference, spell_secret

FILE: Final = "file"
ENVIRONMENT: Final = "env"


class Problem(NamedTuple):
    """The problem of a reference: code, message and suggestion of a finding."""

    code: str
    message: str
    suggestion: str = ""


class ReferencedValue(NamedTuple):
    """The value of a reference.

    Attributes:
        value: the value; None when there is none.
        is_secret: whether it is put in behind the YAML, and kept nowhere.
        is_default: whether it is the default of the config.
        problem: what is wrong; None for nothing.
    """

    value: str | None
    is_secret: bool
    is_default: bool = False
    problem: Problem | None = None


def is_file(variable: Variable) -> bool:
    """Return whether a placeholder names a file."""
    return variable.name == FILE and variable.default is not None


def is_explicit(variable: Variable) -> bool:
    """Return whether a placeholder names a file or, by `env:`, a variable."""
    return variable.name in (FILE, ENVIRONMENT) and variable.default is not None


def variable_name(variable: Variable) -> str:
    """Return the name that a placeholder stands for, which may be one of the environment.

    It is empty for a file.
    """
    if not is_explicit(variable):
        return variable.name
    return "" if is_file(variable) else (variable.default or "").partition(":")[0]


def format_reference(variable: Variable) -> str:
    """Return a placeholder as it is shown in the place of its value, without a default."""
    function = f"|{variable.function}" if variable.function else ""
    if is_file(variable):
        return f"${{{FILE}:{variable.default}{function}}}"
    prefix = f"{ENVIRONMENT}:" if is_explicit(variable) else ""
    return f"${{{prefix}{variable_name(variable)}{function}}}"


def describe_reference(variable: Variable) -> str:
    """Return in a few words what a placeholder names."""
    if is_file(variable):
        return f"the file {variable.default}"
    return f"the environment variable {variable_name(variable)}"


def read_reference(variable: Variable, env: Mapping[str, str]) -> ReferencedValue:
    """Return what a placeholder stands for; its function is not applied.

    Args:
        variable: the placeholder.
        env: the environment; an empty one is that of a config to which nothing of this machine is
            in reach: neither files nor stores.

    Raises:
        StreamerError: `STREAMER_SECRETS` is wrong.
    """
    if is_file(variable):
        return _read_file(variable.default or "", env)
    if is_explicit(variable):
        name, colon, default = (variable.default or "").partition(":")
        value = env.get(name)
        if not value and colon:
            return ReferencedValue(default, is_secret=True, is_default=True)
        problem = None if value is not None else _missing_variable(name, f"env:{name}")
        return ReferencedValue(value, is_secret=True, problem=problem)
    name = variable.name
    if not env:
        return _with_default(variable, None, False, _missing_variable(name, name))
    lookup_result = current_lookup().find(name, env)
    problem = _missing_variable(name, name)
    if lookup_result.failures:
        problem = Problem("missing_secret", f"{name}: {'; '.join(lookup_result.failures)}")
    return _with_default(variable, lookup_result.value, lookup_result.is_secret, problem)


def _with_default(
    variable: Variable, value: str | None, is_secret: bool, problem: Problem
) -> ReferencedValue:
    if variable.default is not None and not value:
        return ReferencedValue(variable.default, is_secret=False, is_default=True)
    return ReferencedValue(value, is_secret, problem=problem if value is None else None)


def _missing_variable(name: str, written: str) -> Problem:
    return Problem(
        "missing_variable",
        f"required environment variables were not set: [{name}]",
        f"set it, or write ${{{written}:some default}}",
    )


def _read_file(path: str, env: Mapping[str, str]) -> ReferencedValue:
    problem = None
    value = None
    if not path:
        problem = Problem("missing_secret", "there is no path", "write ${file:/run/secrets/NAME}")
    elif not env:
        problem = Problem("unreadable", f"the file {path} is out of reach for this config")
    else:
        try:
            value = read_secret_file(path, current_permissions())
        except NotPermittedError as e:
            problem = Problem("unreadable", str(e))
        except SecretError as e:
            problem = Problem("missing_secret", str(e), "let the program's user read it")
        else:
            if value is None:
                problem = Problem("missing_secret", f"there is no file {path}", "create it")
    return ReferencedValue(value, is_secret=True, problem=problem)


def apply_function(function: str, value: str) -> str:
    """Apply the function behind a placeholder's `|`; only `base64decode` exists.

    Raises:
        ValueError: it is not there, or does not take the value; the text does not show that.
    """
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


def resolve_reference(reference: SecretReference, env: Mapping[str, str]) -> str:
    """Return what a reference stands for now.

    Args:
        reference: it was kept in the place of a secret.
        env: the environment.

    Raises:
        ValueError: it has no value any more; the text names the reference.
    """
    variable = next(find_variables(reference), None)
    if variable is None:
        raise ValueError("a reference to a secret is none")
    referenced = read_reference(variable, env)
    if referenced.value is None:
        raise ValueError(f"the secret {str(reference)} is not there any more")
    parts = spell_secret(apply_function(variable.function, referenced.value))
    if reference.part >= len(parts):
        raise ValueError(f"the secret {str(reference)} has fewer lines than it had")
    return parts[reference.part]
