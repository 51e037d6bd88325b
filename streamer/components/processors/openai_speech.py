"""`openai_speech`: "generates audio from a text description".

Source: OpenAI's reference of `POST /audio/speech`, whose answer is the recording.
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.ai.errors import ModelError
from streamer.connectors.ai.key_client import MODEL
from streamer.connectors.ai.media import MediaProcessor, OptionalTexts, media_processor
from streamer.connectors.ai.openai import client_fields
from streamer.connectors.ai.texts import FieldBytes, FieldText
from streamer.connectors.http_client.json_client import JsonClient
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

INPUT: Final = "input"
SPEAKER: Final = "voice"
RESPONSE_FORMAT: Final = "response_format"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "openai_speech",
    "Replaces each message by a recording of it, by OpenAI or a server with the same API.",
    description=(
        "The message, or what `input` makes of it, is the text that is spoken: at most 4096 "
        "characters at OpenAI.\n"
        "\n"
        "A server that is busy is asked four times, after the pause that its `Retry-After` wants, "
        "up to a minute. Messages that have no recording then stay as they are and are marked as "
        "failed."
    ),
    fields=(
        *client_fields("tts-1", "tts-1-hd", "gpt-4o-mini-tts"),
        Field(
            INPUT,
            "string",
            "A mapping that gives the text. Without it, the message.",
            optional=True,
            mapping=True,
            examples=("root = this.text",),
        ),
        Field(
            SPEAKER,
            "string",
            "The voice.",
            interpolated=True,
            examples=("alloy", "echo", "fable", "onyx", "nova", "shimmer"),
        ),
        Field(
            RESPONSE_FORMAT,
            "string",
            "The format of the recording; without it, MP3.",
            optional=True,
            advanced=True,
            interpolated=True,
            examples=("mp3", "opus", "aac", "flac", "wav", "pcm"),
        ),
    ),
    examples=(
        Example(
            "Recordings in files",
            "pipeline:\n"
            "  processors:\n"
            "    - openai_speech:\n"
            "        api_key: ${OPENAI_API_KEY}\n"
            "        model: tts-1\n"
            "        voice: alloy\n"
            "        input: root = this.text\n"
            "output:\n"
            "  file:\n"
            "    path: ./speech/${! uuid_v4() }.mp3\n"
            "    codec: all-bytes\n",
        ),
    ),
    begin={"api_key": "${OPENAI_API_KEY}", "model": "tts-1", SPEAKER: "alloy"},
    categories=("AI",),
    delivery="calls are repeated when a micro-batch is replayed",
)


class _SpeechRequest:
    """Requests the recording of a message."""

    def __init__(self, parsed: ParsedFields) -> None:
        self._model: str = parsed[MODEL]
        self._input = FieldBytes(INPUT, parsed[INPUT])
        self._speaker = FieldText(SPEAKER, parsed[SPEAKER])
        self._format = OptionalTexts(parsed, RESPONSE_FORMAT)

    def __call__(self, client: JsonClient, message: Message, ex: Execution) -> bytes:
        """Return the bytes of the recording."""
        document = {
            "model": self._model,
            INPUT: self._input.text_of(message, ex),
            SPEAKER: self._speaker.of(message, ex),
            **self._format.of(message, ex),
        }
        recording = client.post_for_bytes("/audio/speech", document, ex)
        if not recording:
            raise ModelError("the answer has no recording; expected its bytes")
        return recording


def build(parsed: ParsedFields, context: BuildContext) -> MediaProcessor:
    """Make the client; nothing is connected yet."""
    return media_processor(parsed, context, _SpeechRequest(parsed))
