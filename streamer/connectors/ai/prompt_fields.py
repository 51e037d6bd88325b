"""Fields that processors of several makers of models share."""

from __future__ import annotations

from typing import Any, Final

from streamer.sdk.spec import Field

PROMPT: Final = "prompt"
SYSTEM_PROMPT: Final = "system_prompt"
IMAGE: Final = "image"
HISTORY: Final = "history"
STOP: Final = "stop"
TEXT_MAPPING: Final = "text_mapping"

PROMPT_FIELD: Final = Field(
    PROMPT,
    "string",
    "What the model is asked. Without it, the message.",
    optional=True,
    interpolated=True,
)

IMAGE_FIELD: Final = Field(
    IMAGE,
    "string",
    "A mapping that gives an image to send with the prompt, as bytes.",
    optional=True,
    mapping=True,
    examples=('root = this.image.decode("base64")',),
)

HISTORY_FIELD: Final = Field(
    HISTORY,
    "string",
    "A mapping that gives earlier messages of the chat, a list of objects with `role` and "
    "`content`.",
    optional=True,
    mapping=True,
)

TEXT_MAPPING_FIELD: Final = Field(
    TEXT_MAPPING,
    "string",
    "A mapping that gives the text. Without it, the message.",
    optional=True,
    mapping=True,
    examples=("root = this.text",),
)


def system_prompt_field(*, advanced: bool = False) -> Field:
    """Return the field of instructions that go before the prompt."""
    return Field(
        SYSTEM_PROMPT,
        "string",
        "What the model is told beforehand.",
        optional=True,
        advanced=advanced,
        interpolated=True,
    )


def setting_field(
    name: str, kind: str, description: str, *, advanced: bool = True, **more: Any
) -> Field:
    """Return a field whose value goes to the model as it is, when it is set."""
    return Field(name, kind, description, optional=True, advanced=advanced, **more)


def stop_field(description: str) -> Field:
    """Return the field of texts at which an answer ends."""
    return setting_field(STOP, "string", description, shape="array")


MAX_TOKENS_FIELD: Final = setting_field(
    "max_tokens", "int", "Maximum number of tokens of an answer.", advanced=False
)
