"""Images, speech and transcripts: one request for each message, whose answer replaces it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamer.connectors.ai.errors import ModelError
from streamer.connectors.ai.key_client import MODEL
from streamer.connectors.ai.openai import PROBE_PATH, make_client
from streamer.connectors.ai.texts import FieldBytes, FieldText, optional_text
from streamer.connectors.http_client.json_client import ApiError, JsonClient
from streamer.connectors.http_client.multipart import Part
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import PerMessageProcessor
from streamer.sdk.spec import BuildContext, Field, ParsedFields

FILE: Final = "file"
PROMPT: Final = "prompt"
LANGUAGE: Final = "language"

_MEDIA_TIMEOUT_S: Final = 300.0
"""How long a model may take for an image, or for a recording."""
_MAX_FILE_BYTES: Final = 25 << 20
"""The size of a recording that OpenAI takes."""
_STARTS: Final = (
    (b"fLaC", "flac"),
    (b"OggS", "ogg"),
    (b"\x1aE\xdf\xa3", "webm"),
    (b"ID3", "mp3"),
    (b"\xff\xfb", "mp3"),
    (b"\xff\xf3", "mp3"),
    (b"\xff\xf2", "mp3"),
    (b"\xff\xfa", "mp3"),
)

PROMPT_FIELD: Final = Field(
    PROMPT,
    "string",
    "Text before the recording, in its language: it leads the model to names and a style.",
    optional=True,
    advanced=True,
    interpolated=True,
)

FORMATS: Final = "FLAC, MP3, M4A, MP4, Ogg, WAV or WebM"

RequestMedia = Callable[[JsonClient, Message, Execution], bytes]
"""Requests what replaces a message; raises an ApiError or a ModelError."""


class MediaProcessor(PerMessageProcessor):
    """Replaces each message by the answer to its request; see `SupportsProbe`."""

    def __init__(self, request: RequestMedia, client: JsonClient, origin: ComponentRef) -> None:
        """Take the request, the client, and the component in whose name failures are logged."""
        self._request = request
        self._client = client
        super().__init__(self._replace, origin)

    def _replace(self, message: Message, ex: Execution) -> Message:
        try:
            return message.with_bytes(self._request(self._client, message, ex))
        except ApiError as error:
            raise ModelError(str(error)) from None

    def probe(self) -> str:
        """Check that the server answers."""
        return self._client.probe(PROBE_PATH)


def media_processor(
    parsed: ParsedFields, context: BuildContext, request: RequestMedia
) -> MediaProcessor:
    """Make the processor of a component; nothing is connected yet."""
    client = context.worker_resource("openai", lambda: make_client(parsed, _MEDIA_TIMEOUT_S))
    return MediaProcessor(request, client, ComponentRef(context.component))


class OptionalTexts:
    """Fields that a request has where the config has them."""

    def __init__(self, parsed: ParsedFields, *names: str) -> None:
        """Compile the texts of the fields."""
        given: dict[str, FieldText | None] = {name: optional_text(name, parsed) for name in names}
        self._texts = {name: text for name, text in given.items() if text is not None}

    def of(self, message: Message, ex: Execution) -> dict[str, Any]:
        """Return the texts for a message, without those that are empty.

        Raises:
            MessageError: an expression fails.
        """
        made = {name: text.of(message, ex) for name, text in self._texts.items()}
        return {name: text for name, text in made.items() if text}


class TranscriptRequest:
    """Requests the text of a recording."""

    def __init__(self, parsed: ParsedFields, path: str, *names: str) -> None:
        """Take the fields, the path of the API, and the names of fields that go to it."""
        self._path = path
        self._model: str = parsed[MODEL]
        self._file = FieldBytes(FILE, parsed[FILE])
        self._texts = OptionalTexts(parsed, *names)

    def __call__(self, client: JsonClient, message: Message, ex: Execution) -> bytes:
        """Return the text.

        Raises:
            ApiError: the server refuses, or is not there.
            MessageError: the message has no recording, or the answer no text.
        """
        recording = self._file.of(message, ex)
        if len(recording) > _MAX_FILE_BYTES:
            raise ModelError(
                f"the recording has {len(recording)} bytes; expected at most {_MAX_FILE_BYTES}"
            )
        texts = {"model": self._model, **self._texts.of(message, ex)}
        parts = [_text_part(name, text) for name, text in texts.items()]
        name = f"recording.{audio_format(recording)}"
        disposition = f'form-data; name="file"; filename="{name}"'
        kind = ("Content-Type", "application/octet-stream")
        parts.append(([("Content-Disposition", disposition), kind], recording))
        document = client.post_parts(self._path, parts, ex)
        text = document.get("text") if isinstance(document, dict) else None
        if not isinstance(text, str):
            raise ModelError("the answer has no text; expected the URL of an API of transcripts")
        return text.encode()


def _text_part(name: str, text: str) -> Part:
    return [("Content-Disposition", f'form-data; name="{name}"')], text.encode()


def audio_format(recording: bytes) -> str:
    """Return the ending that the name of a recording has, by how it begins.

    Raises:
        ModelError: it begins as no recording does that models take.

    >>> audio_format(b"fLaC...")
    'flac'
    """
    for start, ending in _STARTS:
        if recording.startswith(start):
            return ending
    if recording[:4] == b"RIFF" and recording[8:12] == b"WAVE":
        return "wav"
    if recording[4:8] == b"ftyp":
        return "m4a" if recording[8:11] == b"M4A" else "mp4"
    raise ModelError(f"the message is no recording; expected the bytes of {FORMATS}")
