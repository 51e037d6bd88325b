"""`openai_translation`: "translates spoken audio into English".

Source: OpenAI's reference of `POST /audio/translations`, which takes a form with a file.
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.ai.media import (
    FILE,
    FORMATS,
    PROMPT,
    PROMPT_FIELD,
    MediaProcessor,
    TranscriptRequest,
    media_processor,
)
from streamer.connectors.ai.openai import client_fields
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "openai_translation",
    "Replaces each message by the text of a recording in English, by OpenAI or a server like it.",
    description=(
        f"The recording is one of {FORMATS}, of at most 25 MiB, in any language that the model "
        "knows. Its first bytes say which format it has; a message that has none of them fails, "
        "and is not sent.\n"
        "\n"
        "A server that is busy is asked four times, after the pause that its `Retry-After` wants, "
        "up to a minute. Messages that have no text then stay as they are and are marked as "
        "failed."
    ),
    fields=(
        *client_fields("whisper-1"),
        Field(
            FILE,
            "string",
            "A mapping that gives the bytes of the recording. Without it, the message.",
            optional=True,
            mapping=True,
            examples=('root = this.audio.decode("base64")',),
        ),
        PROMPT_FIELD,
    ),
    examples=(
        Example(
            "Recordings of a directory, in English",
            "input:\n"
            "  file:\n"
            "    paths: ['./calls/*.mp3']\n"
            "    scanner: {to_the_end: {}}\n"
            "pipeline:\n"
            "  processors:\n"
            "    - openai_translation:\n"
            "        api_key: ${OPENAI_API_KEY}\n"
            "        model: whisper-1\n",
        ),
    ),
    begin={"api_key": "${OPENAI_API_KEY}", "model": "whisper-1"},
    categories=("AI",),
    delivery="calls are repeated when a micro-batch is replayed",
)


def build(parsed: ParsedFields, context: BuildContext) -> MediaProcessor:
    """Make the client; nothing is connected yet."""
    return media_processor(
        parsed, context, TranscriptRequest(parsed, "/audio/translations", PROMPT)
    )
