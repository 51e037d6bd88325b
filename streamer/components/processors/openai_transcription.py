"""`openai_transcription`: "generates a transcription of spoken audio in the input language".

Source: OpenAI's reference of `POST /audio/transcriptions`, which takes a form with a file.
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.ai.media import (
    FILE,
    FORMATS,
    LANGUAGE,
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
    "openai_transcription",
    "Replaces each message by the text of a recording, by OpenAI or a server with the same API.",
    description=(
        f"The recording is one of {FORMATS}, of at most 25 MiB. Its first bytes say which; a "
        "message that is none of them fails, and is not sent.\n"
        "\n"
        "A server that is busy is asked four times, after the pause that its `Retry-After` wants, "
        "up to a minute. Messages that have no text then stay as they are and are marked as "
        "failed."
    ),
    fields=(
        *client_fields("whisper-1", "gpt-4o-transcribe"),
        Field(
            FILE,
            "string",
            "A mapping that gives the bytes of the recording.",
            mapping=True,
            examples=("root = content()", 'root = this.audio.decode("base64")'),
        ),
        Field(
            LANGUAGE,
            "string",
            "The language of the recording, by its code of ISO 639-1: the model is then quicker, "
            "and makes fewer mistakes.",
            optional=True,
            advanced=True,
            interpolated=True,
            examples=("en", "fr", "de", "zh"),
        ),
        PROMPT_FIELD,
    ),
    examples=(
        Example(
            "Recordings of a directory",
            "input:\n"
            "  file:\n"
            "    paths: ['./calls/*.mp3']\n"
            "    scanner: {to_the_end: {}}\n"
            "pipeline:\n"
            "  processors:\n"
            "    - openai_transcription:\n"
            "        api_key: ${OPENAI_API_KEY}\n"
            "        model: whisper-1\n"
            "        file: root = content()\n"
            "        language: de\n",
        ),
    ),
    begin={"api_key": "${OPENAI_API_KEY}", "model": "whisper-1", FILE: "root = content()"},
    categories=("AI",),
    delivery="calls are repeated when a micro-batch is replayed",
)


def build(parsed: ParsedFields, context: BuildContext) -> MediaProcessor:
    """Make the client; nothing is connected yet."""
    request = TranscriptRequest(parsed, "/audio/transcriptions", LANGUAGE, PROMPT)
    return media_processor(parsed, context, request)
