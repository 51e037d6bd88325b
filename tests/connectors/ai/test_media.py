"""Images, speech and transcripts by OpenAI's API, with a server in this process."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from streamer.connectors.ai.errors import ModelError
from streamer.connectors.ai.media import audio_format
from streamer.core.errors import ConfigError, StreamerError
from streamer.core.message import Message
from streamer.sdk.processing import Processor
from streamer.sdk.spec.checks import SupportsProbe
from tests.connectors.ai.test_models import Clock, build, texts
from tests.servers import free_port
from tests.servers.http import Reply
from tests.servers.models import PNG, Models, models_server

FIELDS: dict[str, dict[str, Any]] = {
    "openai_image_generation": {},
    "openai_speech": {"voice": "alloy"},
    "openai_transcription": {"file": "root = content()"},
    "openai_translation": {},
}
WAV = b"RIFF\x04\x00\x00\x00WAVE"


@pytest.fixture
def models() -> Iterator[Models]:
    with models_server() as running:
        yield running


def made_of(processor: Processor, *payloads: bytes, clock: Clock | None = None) -> list[Message]:
    [made] = processor.process([Message(one) for one in payloads], (clock or Clock()).ex)
    return made


class TestImages:
    def test_a_message_becomes_an_image(self, models: Models) -> None:
        processor = build("openai_image_generation", models.url)
        made = made_of(processor, b"a cat", b"a dog")
        assert [one.raw for one in made] == [PNG + b"a cat", PNG + b"a dog"]

    def test_texts_are_made_of_the_message(self, models: Models) -> None:
        fields = {"size": '${! json("size") }', "quality": "hd", "style": "natural"}
        processor = build(
            "openai_image_generation",
            models.url,
            model="dall-e-3",
            prompt="root = this.of",
            **fields,
        )
        made_of(processor, b'{"of": "a cat", "size": "1024x1024"}')
        assert models.requests == [
            (
                "/v1/images/generations",
                {
                    "model": "dall-e-3",
                    "prompt": "a cat",
                    "size": "1024x1024",
                    "quality": "hd",
                    "style": "natural",
                    "response_format": "b64_json",
                },
            )
        ]

    def test_a_new_model_is_not_told_how_to_give_the_image(self, models: Models) -> None:
        processor = build("openai_image_generation", models.url, model="gpt-image-1")
        assert made_of(processor, b"a cat")[0].raw == PNG + b"a cat"

    @pytest.mark.parametrize(
        "body",
        [b"{}", b'{"data": []}', b'{"data": [{"url": "x"}]}', b'{"data": [{"b64_json": "%"}]}'],
    )
    def test_an_answer_without_an_image_fails_the_message(
        self, models: Models, body: bytes
    ) -> None:
        models.replies = [Reply(200, body)]
        [failed, good] = made_of(build("openai_image_generation", models.url), b"a", b"b")
        assert failed.raw == b"a" and "no image in b64_json" in str(failed.error)
        assert good.raw == PNG + b"b"


class TestSpeech:
    def test_a_message_becomes_a_recording(self, models: Models) -> None:
        fields = {"voice": '${! json("voice") }', "response_format": "mp3"}
        processor = build("openai_speech", models.url, input="root = this.text", **fields)
        made = made_of(processor, b'{"text": "hello", "voice": "echo"}')
        assert made[0].raw == b"ID3hello"
        [(_, document)] = models.requests
        assert document == {
            "model": "m",
            "input": "hello",
            "voice": "echo",
            "response_format": "mp3",
        }

    def test_a_text_too_long_fails_alone(self, models: Models) -> None:
        processor = build("openai_speech", models.url, voice="alloy")
        made = made_of(processor, b"x" * 5_000, b"short")
        assert "status 400" in str(made[0].error) and made[1].raw == b"ID3short"

    def test_an_empty_answer_fails_the_message(self, models: Models) -> None:
        models.replies = [Reply(200, b"")]
        [failed] = made_of(build("openai_speech", models.url, voice="alloy"), b"a")
        assert "no recording" in str(failed.error)


class TestTranscripts:
    @pytest.mark.parametrize("name", ["openai_transcription", "openai_translation"])
    def test_a_recording_becomes_a_text(self, models: Models, name: str) -> None:
        processor = build(name, models.url, prompt="about ${! content().length() }", **FIELDS[name])
        made = made_of(processor, WAV + b"\x00\xff\r\n--", b"not a recording", b"OggS")
        assert texts(made) == [
            "heard recording.wav of 18 bytes",
            "! the message is no recording; expected the bytes of FLAC, MP3, M4A, MP4, Ogg, WAV "
            "or WebM",
            "heard recording.ogg of 4 bytes",
        ]
        assert made[1].raw == b"not a recording"
        assert models.requests[0][1]["prompt"] == "about 18"

    def test_fields_are_sent(self, models: Models) -> None:
        fields = {"file": 'root = this.audio.decode("base64")', "language": "de"}
        encoded = base64.b64encode(WAV).decode()
        made = made_of(
            build("openai_transcription", models.url, **fields),
            f'{{"audio": "{encoded}"}}'.encode(),
        )
        assert texts(made) == ["heard recording.wav of 12 bytes"]
        [(path, document)] = models.requests
        assert (path, document["language"]) == ("/v1/audio/transcriptions", "de")

    def test_a_recording_too_large_is_not_sent(self, models: Models) -> None:
        [failed] = made_of(build("openai_translation", models.url), WAV + bytes(25 << 20))
        assert "expected at most 26214400" in str(failed.error) and not models.requests

    def test_an_answer_without_a_text_fails_the_message(self, models: Models) -> None:
        models.replies = [Reply(200, b'{"text": 1}'), Reply(200, b"[]")]
        made = made_of(build("openai_translation", models.url), WAV, WAV)
        assert all("the answer has no text" in str(one.error) for one in made)

    def test_the_format_is_known_by_how_a_recording_begins(self) -> None:
        starts = {b"\x00\x00\x00\x20ftypM4A ": "m4a", b"\x00\x00\x00\x20ftypisom": "mp4"}
        starts |= {b"\xff\xfb\x90": "mp3", b"\x1aE\xdf\xa3\x9f": "webm"}
        assert {start: audio_format(start) for start in starts} == starts
        with pytest.raises(ModelError):
            audio_format(b"")


@pytest.mark.parametrize("name", FIELDS)
class TestAll:
    def test_a_busy_server_is_asked_again(self, models: Models, name: str) -> None:
        models.replies = [Reply(429, headers={"Retry-After": "7"})]
        clock = Clock()
        [made] = made_of(build(name, models.url, **FIELDS[name]), WAV, clock=clock)
        assert made.error is None and clock.pauses == [7.0]

    def test_a_wrong_key_fails_and_is_not_shown(self, models: Models, name: str) -> None:
        processor = build(name, models.url, api_key="sk-wrong", **FIELDS[name])
        [failed] = made_of(processor, WAV)
        assert "status 401: invalid api key" in str(failed.error)
        assert "sk-wrong" not in str(failed.error) and len(models.server.asked) == 1
        assert isinstance(processor, SupportsProbe)
        with pytest.raises(StreamerError, match="status 401"):
            processor.probe()

    def test_a_server_that_comes_back(self, name: str) -> None:
        port = free_port()
        processor = build(name, f"http://127.0.0.1:{port}", **FIELDS[name])
        [failed] = made_of(processor, WAV)
        assert failed.error is not None and failed.raw == WAV
        with models_server(port):
            [made] = made_of(processor, WAV)
        assert made.error is None

    def test_threads_share_a_client(self, models: Models, name: str) -> None:
        processor = build(name, models.url, **FIELDS[name])
        made: list[Message] = []

        def work() -> None:
            made.extend(made_of(processor, *[WAV] * 50))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == len(models.requests) == 200
        assert all(one.error is None for one in made)


@pytest.mark.parametrize("name", FIELDS)
def test_a_mapping_that_is_none_is_refused(name: str) -> None:
    field = {"openai_image_generation": "prompt", "openai_speech": "input"}.get(name, "file")
    with pytest.raises(ConfigError, match="is not closed"):
        build(name, "http://127.0.0.1:1", **{**FIELDS[name], field: "root = ("})
