"""`openai_image_generation`: "generates an image from a text description".

Source: OpenAI's reference of `POST /images/generations`.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Any, Final

from streamer.connectors.ai.errors import ModelError
from streamer.connectors.ai.key_client import MODEL
from streamer.connectors.ai.media import MediaProcessor, OptionalTexts, media_processor
from streamer.connectors.ai.openai import client_fields
from streamer.connectors.ai.texts import FieldBytes
from streamer.connectors.http_client.json_client import JsonClient
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

PROMPT: Final = "prompt"
_TEXTS: Final = ("quality", "size", "style")
_ALWAYS_BYTES: Final = "gpt-image"
"""Models whose names begin so give bytes, and refuse a request that says how they are given."""


def _text_field(name: str, description: str, *examples: str) -> Field:
    return Field(
        name,
        "string",
        description,
        optional=True,
        advanced=True,
        interpolated=True,
        examples=examples,
    )


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "openai_image_generation",
    "Replaces each message by an image, by OpenAI or a server with the same API.",
    description=(
        "The message, or what `prompt` makes of it, describes the image. The answer is the bytes "
        "of the image; most models give PNG.\n"
        "\n"
        "A server that is busy is asked four times, after the pause that its `Retry-After` wants, "
        "up to a minute. Messages that have no image then stay as they are and are marked as "
        "failed."
    ),
    fields=(
        *client_fields("dall-e-3", "gpt-image-1"),
        Field(
            PROMPT,
            "string",
            "A mapping that gives the description. Without it, the message.",
            optional=True,
            mapping=True,
            examples=("root = this.text",),
        ),
        _text_field("quality", "The quality of the image.", "standard", "hd"),
        _text_field("size", "Width and height of the image.", "1024x1024", "1792x1024"),
        _text_field("style", "The style, for `dall-e-3`.", "vivid", "natural"),
    ),
    examples=(
        Example(
            "Images in files",
            "pipeline:\n"
            "  processors:\n"
            "    - openai_image_generation:\n"
            "        api_key: ${OPENAI_API_KEY}\n"
            "        model: dall-e-3\n"
            "        prompt: root = this.description\n"
            "output:\n"
            "  file:\n"
            "    path: ./images/${! uuid_v4() }.png\n"
            "    codec: all-bytes\n",
        ),
    ),
    begin={"api_key": "${OPENAI_API_KEY}", "model": "dall-e-3"},
    categories=("AI",),
    delivery="calls are repeated when a micro-batch is replayed",
)


class _ImageRequest:
    """Requests the image of a message."""

    def __init__(self, parsed: ParsedFields) -> None:
        self._prompt = FieldBytes(PROMPT, parsed[PROMPT])
        self._texts = OptionalTexts(parsed, *_TEXTS)
        self._body: dict[str, Any] = {"model": parsed[MODEL]}
        if not parsed[MODEL].startswith(_ALWAYS_BYTES):
            self._body["response_format"] = "b64_json"

    def __call__(self, client: JsonClient, message: Message, ex: Execution) -> bytes:
        """Return the bytes of the image."""
        texts = {PROMPT: self._prompt.text_of(message, ex), **self._texts.of(message, ex)}
        document = client.post("/images/generations", {**self._body, **texts}, ex)
        try:
            [image] = document["data"]
            return b64decode(image["b64_json"], validate=True)
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise ModelError(
                "the answer has no image in b64_json; expected the URL of an API of images"
            ) from None


def build(parsed: ParsedFields, context: BuildContext) -> MediaProcessor:
    """Make the client; nothing is connected yet."""
    return media_processor(parsed, context, _ImageRequest(parsed))
