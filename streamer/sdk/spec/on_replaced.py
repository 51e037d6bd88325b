"""The field of inputs of files that says what is done when a file is replaced by another one."""

from __future__ import annotations

from typing import Final

from streamer.sdk.spec.component import Field

FIELD_ON_REPLACED: Final = "on_replaced"
STOP: Final = "stop"
RESTART: Final = "restart"

REPLACED_FIELD: Final = Field(
    FIELD_ON_REPLACED,
    "string",
    "Reaction when a partly read file has been replaced or truncated. `stop` ends the stream "
    "with an error, since what was not read yet would be lost; `restart` reads the new file "
    "from its beginning, and logs a warning. A file to which something was appended is the "
    "same file.",
    default=STOP,
    options=(STOP, RESTART),
    advanced=True,
)
