"""Names of tables from messages: what a message says must not lead out of its place."""

from __future__ import annotations

import re
from typing import Final

from streamer.bloblang import Interpolation
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Message

_MAX_NAME_CHARACTERS: Final = 255
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f/\\]")


def interpolate_text(text: Interpolation, field: str, message: Message, ex: Execution) -> str:
    """Return what a field is for a message.

    Raises:
        MessageError: an expression in it fails.
    """
    try:
        return text.text_of([message], 0, ex)
    except MessageError as error:
        raise MessageError(f"{field} interpolation error: {error}") from None


def check_name(name: str, field: str) -> str:
    """Return a name that is one part of a path wherever tables are.

    Raises:
        MessageError: it is none.
    """
    if not name or name.strip(".") == "":
        raise MessageError(f"{field} is {name!r} for the message; expected a name")
    if len(name) > _MAX_NAME_CHARACTERS:
        raise MessageError(f"{field} has more than {_MAX_NAME_CHARACTERS} characters")
    if bad := _FORBIDDEN.search(name):
        raise MessageError(f"{field} is {name!r} for the message, with {bad.group()!r} in it")
    return name
