"""The interface of a store of secrets, and names of secrets: `secrets.NAME.FIELD`.

As in Redpanda Connect, managers of secrets are asked for names that begin with `secrets.` only, so
that no name of a variable is sent to them. The URN's path stands before the name. What follows the
next point is the path of a field in a secret that is a JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from streamer.core.errors import StreamerError

NAME_PREFIX: Final = "secrets."
TIMEOUT_S: Final = 10.0
"""Seconds that a store has to answer."""


class SecretError(StreamerError):
    """A store does not answer, or refuses; the text has no value of a secret."""


class SecretStore(Protocol):
    """A place that has secrets by name."""

    def get(self, name: str) -> str | None:
        """Return the value of a name; None when the store has none.

        Raises:
            SecretError: it cannot be read.
        """
        ...


class SecretName(NamedTuple):
    """The name of a secret in a manager.

    Attributes:
        key: the name that the manager knows, with the prefix of the URN.
        fields: the path of a field within the value; empty for the whole.
    """

    key: str
    fields: tuple[str, ...]


def split_name(name: str, prefix: str) -> SecretName | None:
    """Return what a manager is asked for; None for a name that is not for managers.

    Example:
        >>> split_name("secrets.db.password", "prod/")
        SecretName(key='prod/db', fields=('password',))
        >>> split_name("HOME", "prod/")
    """
    if not name.startswith(NAME_PREFIX):
        return None
    key, *fields = name.removeprefix(NAME_PREFIX).split(".")
    return SecretName(prefix + key, tuple(fields)) if key else None


def get_field(value: str, fields: tuple[str, ...]) -> str | None:
    """Return a field of a value that is a JSON object; None when it is not there.

    Args:
        value: the secret.
        fields: the path; digits are indexes of a list. Without any, the value is returned.
    """
    if not fields:
        return value
    try:
        document = json.loads(value)
    except ValueError:
        return None
    return get_document_field(document, fields)


def get_document_field(document: Any, fields: tuple[str, ...]) -> str | None:
    """Return a field of a document as text: a text as it is, all else as JSON."""
    for part in fields:
        if isinstance(document, Mapping) and part in document:
            document = document[part]
        elif isinstance(document, list) and part.isdecimal() and int(part) < len(document):
            document = document[int(part)]
        else:
            return None
    return document if isinstance(document, str) else json.dumps(document, separators=(",", ":"))
