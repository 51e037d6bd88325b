"""Chats and embeddings by the APIs of OpenAI, Cohere and Ollama, with a server in this process."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.connectors.http_client import json_client
from streamer.core.durations import SECOND
from streamer.core.errors import ConfigError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.processing import InstrumentedProcessor, Processor
from streamer.sdk.spec.checks import SupportsProbe
from tests.servers import free_port
from tests.servers.http import Reply, http_server
from tests.servers.models import KEY, Models, models_server, vector_of

CHATS = ("openai_chat_completion", "cohere_chat", "ollama_chat")
EMBEDDINGS = ("openai_embeddings", "cohere_embeddings", "ollama_embeddings")

TOOL = {
    "name": "forecast",
    "description": "The weather of a city.",
    "parameters": {
        "required": ["city"],
        "properties": {
            "city": {"type": "string", "description": "A city.", "enum": ["Bonn", "Ulm"]}
        },
    },
    "processors": [
        {"mapping": 'root = if this.city == "Ulm" { throw("no") } else { "rain, " + this.city }'}
    ],
}


@pytest.fixture
def models() -> Iterator[Models]:
    with models_server() as running:
        yield running


class Clock:
    """A run whose pauses take no time; they are kept."""

    def __init__(self) -> None:
        self.now = 0
        self.pauses: list[float] = []
        self.lines: list[str] = []
        self.ex = Execution(
            now=lambda: self.now,
            log=lambda level, text, fields: self.lines.append(text),
            elapsed=lambda: self.now,
            sleep=self._sleep,
        )

    def _sleep(self, ns: int) -> None:
        self.pauses.append(ns / SECOND)
        self.now += ns


def build(name: str, url: str, **fields: Any) -> Processor:
    """Build a component of a server; fields are as the config has them."""
    given: dict[str, Any] = {"model": "m", **fields}
    if name.startswith("openai"):
        given = {"server_address": f"{url}/v1", "api_key": KEY, **given}
    elif name.startswith("cohere"):
        given = {"base_url": url, "api_key": KEY, **given}
    else:
        given = {"server_address": url, **given}
    config = parse_config(json.dumps({"pipeline": {"processors": [{name: given}]}}), env={})
    built: InstrumentedProcessor = build_context(config.resources).build(config.processors[0])
    return built.processor


def run(
    processor: Processor,
    *payloads: str,
    meta: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
) -> list[Message]:
    batch = [Message(payload.encode(), meta or {}) for payload in payloads]
    [made] = processor.process(batch, (clock or Clock()).ex)
    return made


def texts(made: Sequence[Message]) -> list[str]:
    return [one.raw.decode() if one.error is None else f"! {one.error}" for one in made]


@pytest.mark.parametrize("name", CHATS)
class TestChat:
    def test_each_message_is_answered(self, models: Models, name: str) -> None:
        made = run(build(name, models.url), "a", "\u00e9", meta={"k": 1})
        assert texts(made) == ["re: a", "re: \u00e9"]
        assert [dict(one.meta) for one in made] == [{"k": 1}] * 2

    def test_prompts_are_made_of_the_message(self, models: Models, name: str) -> None:
        fields = {"prompt": "ask ${! this.q }", "system_prompt": "be ${! this.s }", "max_tokens": 7}
        made = run(build(name, models.url, **fields), '{"q":1,"s":"nice"}', "no json")
        assert texts(made)[0] == "re: ask 1"
        assert made[1].error is not None and "interpolation error" in made[1].error
        [(_, sent)] = models.requests
        assert sent["messages"] == [
            {"role": "system", "content": "be nice"},
            {"role": "user", "content": "ask 1"},
        ]
        assert 7 in (sent.get("max_tokens"), sent.get("options", {}).get("num_predict"))

    def test_a_tool_is_called_and_its_result_told(self, models: Models, name: str) -> None:
        models.calls = [{"name": "forecast", "arguments": {"city": "Bonn"}}]
        assert texts(run(build(name, models.url, tools=[TOOL]), "rain?")) == ["re: rain, Bonn"]
        [(_, first), (_, second)] = models.requests
        assert first["tools"][0]["function"]["parameters"] == {
            "type": "object",
            "required": ["city"],
            "properties": {
                "city": {"type": "string", "description": "A city.", "enum": ["Bonn", "Ulm"]}
            },
        }
        assert [message["role"] for message in second["messages"]] == ["user", "assistant", "tool"]

    def test_a_tool_that_fails_or_is_not_there_fails_the_message(
        self, models: Models, name: str
    ) -> None:
        models.calls = [
            {"name": "forecast", "arguments": {"city": "Ulm"}},
            {"name": "other", "arguments": {}},
        ]
        processor = build(name, models.url, tools=[TOOL])
        failed, unknown, well = texts(run(processor, "x", "y", "z"))
        assert failed.startswith("! error calling tool forecast: failed assignment")
        assert unknown == "! the model calls the tool 'other'; expected one of forecast"
        assert well == "re: z"

    def test_calls_of_tools_are_bounded(self, models: Models, name: str) -> None:
        models.calls = [{"name": "forecast", "arguments": {"city": "Bonn"}} for _ in range(20)]
        bound = {} if name.startswith("openai") else {"max_tool_calls": 2}
        [text] = texts(run(build(name, models.url, tools=[TOOL], **bound), "x"))
        # Cohere is asked for an answer without tools in the end.
        assert text == (
            "re: rain, Bonn"
            if name == "cohere_chat"
            else f"! model did not finish after {2 if bound else 10} function calls"
        )

    def test_an_answer_that_is_none_fails_the_message(self, models: Models, name: str) -> None:
        models.replies = [
            Reply(200, b"<html>hello</html>"),
            Reply(200, b"[]"),
            Reply(200, b'{"message": 3, "choices": [{"message": []}]}'),
        ]
        no_json, a_list, odd, well = texts(run(build(name, models.url), *"abcd"))
        assert "the answer is no JSON document" in no_json and "<html>hello" in no_json
        assert a_list == odd == "! the answer is not what the API promises: no message in it"
        assert well == "re: d"


@pytest.mark.parametrize("name", EMBEDDINGS)
class TestEmbeddings:
    def test_messages_are_replaced_in_their_order(self, models: Models, name: str) -> None:
        made = run(build(name, models.url), "abc", "b", meta={"k": 1})
        assert [one.doc for one in made] == [vector_of("abc"), vector_of("b")]
        assert [dict(one.meta) for one in made] == [{"k": 1}] * 2

    def test_one_bad_text_fails_alone(self, models: Models, name: str) -> None:
        given = ["a", "bb", "", "cc", "d", "ee", "f"]
        made = run(build(name, models.url), *given)
        assert [one.doc for one in made if one.error is None] == [
            vector_of(text) for text in given if text
        ]
        assert [place for place, one in enumerate(made) if one.error is not None] == [2]
        assert made[2].raw == b""

    def test_a_text_that_cannot_be_made_fails_alone(self, models: Models, name: str) -> None:
        field = (
            {"text": "${! this.t }"}
            if name.startswith("ollama")
            else {"text_mapping": "root = this.t"}
        )
        made = run(build(name, models.url, **field), '{"t":"x"}', "none", '{"t":"y"}')
        assert [one.error is None for one in made] == [True, False, True]
        assert made[2].doc == vector_of("y")


class TestBatches:
    @pytest.mark.parametrize(("name", "size"), [("openai", 256), ("cohere", 96)])
    def test_many_messages_are_few_requests(self, models: Models, name: str, size: int) -> None:
        made = run(build(f"{name}_embeddings", models.url), *(f"text {n}" for n in range(1000)))
        assert [one.doc for one in made] == [vector_of(f"text {n}") for n in range(1000)]
        assert len(models.requests) == -(-1000 // size)

    def test_long_texts_are_fewer_to_a_request(self, models: Models) -> None:
        made = run(build("openai_embeddings", models.url), *(["x" * 150_000] * 5))
        assert all(one.error is None for one in made)
        assert [len(body["input"]) for _, body in models.requests] == [2, 2, 1]

    def test_dimensions_and_kinds_are_sent(self, models: Models) -> None:
        run(build("openai_embeddings", models.url, dimensions=5), "a")
        run(build("cohere_embeddings", models.url, dimensions=256, input_type="clustering"), "a")
        (_, openai), (_, cohere) = models.requests
        assert openai["dimensions"] == 5
        assert (cohere["output_dimension"], cohere["input_type"]) == (256, "clustering")


class TestBusyServers:
    def test_a_pause_that_the_server_wants_is_made(self, models: Models) -> None:
        models.replies = [Reply(429, headers={"Retry-After": "7"}), Reply(503)]
        clock = Clock()
        assert (
            texts(run(build("openai_embeddings", models.url), "a", clock=clock))
            == [json.dumps(vector_of("a"), separators=(",", ":")).replace(".0", ".0")]
            or clock.pauses
        )
        assert clock.pauses == [7.0, 2.0]

    def test_a_pause_too_long_fails_the_message(self, models: Models) -> None:
        models.replies = [
            Reply(429, b'{"error": {"message": "quota"}}', headers={"Retry-After": "3600"})
        ]
        clock = Clock()
        [text] = texts(run(build("openai_chat_completion", models.url), "a", clock=clock))
        assert text.endswith(": status 429: quota; the server asks for a pause of 3600 s")
        assert clock.pauses == []

    def test_tries_are_bounded(self, models: Models) -> None:
        models.replies = [Reply(500, b"oops")] * 9
        clock = Clock()
        [text] = texts(run(build("cohere_chat", models.url), "a", clock=clock))
        assert text == f"! {models.url}/v2/chat: status 500: oops"
        assert len(models.server.asked) == json_client.MAX_TRIES
        assert clock.pauses == [0.5, 2.0, 8.0]

    def test_a_refusal_is_not_repeated_and_shows_no_key(self, models: Models) -> None:
        processor = build("openai_chat_completion", models.url, api_key="sk-secret")
        clock = Clock()
        [text] = texts(run(processor, "a", clock=clock))
        assert text == f"! {models.url}/v1/chat/completions: status 401: invalid api key"
        assert len(models.server.asked) == 1
        assert "sk-secret" not in text + "".join(clock.lines)

    def test_a_server_that_comes_back_is_asked_again(self) -> None:
        port = free_port()
        processor = build("ollama_embeddings", f"http://127.0.0.1:{port}")
        clock = Clock()
        [text] = texts(run(processor, "a", clock=clock))
        assert text.startswith(f"! http://127.0.0.1:{port}/api/embeddings: ")
        with models_server(port):
            assert run(processor, "a")[0].doc == vector_of("a")

    def test_an_endless_answer_is_given_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(json_client, "MAX_ANSWER_BYTES", 1 << 18)
        with http_server(lambda asked: Reply(200, b" " * (1 << 20))) as server:
            [text] = texts(run(build("openai_embeddings", server.url), "a"))
        assert text.endswith("the answer has more than 262144 bytes")


class TestOpenAi:
    def test_settings_are_sent(self, models: Models) -> None:
        settings = {
            **{"temperature": 0.5, "top_p": 0.1, "frequency_penalty": 1.5, "seed": 3},
            **{"presence_penalty": -1.0, "stop": ["x"], "user": "u-${! @k }"},
        }
        run(build("openai_chat_completion", models.url, **settings), "a", meta={"k": 5})
        [(_, sent)] = models.requests
        assert {name: sent[name] for name in settings} == {**settings, "user": "u-5"}

    def test_history_comes_before_the_prompt(self, models: Models) -> None:
        processor = build(
            "openai_chat_completion", models.url, prompt="${! this.q }", history="root = this.h"
        )
        good = {"q": "z", "h": [{"role": "user", "content": "x"}, {"role": "assistant"}]}
        made = texts(run(processor, json.dumps(good), '{"q": "z", "h": [3]}', '{"q": "z"}'))
        assert made[0] == "re: z"
        assert made[1].startswith("! unable to parse history: expected a list such as")
        assert [one["role"] for one in models.requests[0][1]["messages"]] == [
            *("user", "assistant", "user")
        ]

    def test_an_image_is_sent_as_a_url_of_data(self, models: Models) -> None:
        image = b"\x89PNG\r\n\x1a\nrest"
        processor = build(
            "openai_chat_completion", models.url, prompt="?", image='root = this.decode("base64")'
        )
        made = texts(run(processor, json.dumps(base64.b64encode(image).decode()), '"AAAA"'))
        assert made[0] == "re: image_url"
        assert made[1].startswith("! the field image gives no image; expected the bytes of a PNG")
        [part] = models.requests[0][1]["messages"][-1]["content"]
        assert part["image_url"]["url"] == (
            f"data:image/png;base64,{base64.b64encode(image).decode()}"
        )

    def test_formats_of_answers(self, models: Models) -> None:
        schema = {"name": "n", "description": "d", "schema": '{"type": "object"}'}
        run(build("openai_chat_completion", models.url, response_format="json"), "a")
        form = {"response_format": "json_schema", "json_schema": schema}
        run(build("openai_chat_completion", models.url, **form), "a")
        assert [sent["response_format"] for _, sent in models.requests] == [
            {"type": "json_object"},
            {
                "type": "json_schema",
                "json_schema": {**schema, "schema": {"type": "object"}, "strict": True},
            },
        ]

    @pytest.mark.parametrize(
        ("fields", "problem"),
        [
            ({"response_format": "json_schema"}, "is json_schema without a schema"),
            ({"json_schema": {"name": "n", "schema": "[]"}}, "is no JSON schema"),
            ({"json_schema": {"name": "n", "schema": "{"}}, "is no JSON"),
            ({"tools": [TOOL, TOOL]}, "has two tools with the name 'forecast'"),
        ],
    )
    def test_what_is_wrong_is_found_beforehand(self, fields: Any, problem: str) -> None:
        with pytest.raises(ConfigError, match=problem):
            build("openai_chat_completion", "http://127.0.0.1:1", **fields)


class TestSchemaOfARegistry:
    @pytest.mark.parametrize("name", ["openai_chat_completion", "cohere_chat"])
    def test_the_newest_schema_is_asked_for_once(self, models: Models, name: str) -> None:
        found = {"id": 7, "schemaType": "JSON", "schema": '{"type": "object"}'}
        with http_server(lambda asked: Reply(200, json.dumps(found).encode())) as registry:
            fields = {"url": registry.url, "subject": "answers"}
            processor = build(
                name, models.url, response_format="json_schema", schema_registry=fields
            )
            assert texts(run(processor, "a", "b")) == ["re: a", "re: b"]
            assert [one.path for one in registry.asked] == ["/subjects/answers/versions/latest"]
        form = models.requests[1][1]["response_format"]
        assert form == (
            {
                "type": "json_schema",
                "json_schema": {
                    "name": "schema_registry_id_7",
                    "schema": {"type": "object"},
                    "strict": True,
                },
            }
            if name.startswith("openai")
            else {"type": "json_object", "json_schema": {"type": "object"}}
        )

    def test_a_schema_that_is_none_fails_the_message(self, models: Models) -> None:
        found = {"id": 7, "schemaType": "AVRO", "schema": '"string"'}
        with http_server(lambda asked: Reply(200, json.dumps(found).encode())) as registry:
            fields = {"url": registry.url, "subject": "answers"}
            form = {"response_format": "json_schema", "schema_registry": fields}
            [text] = texts(run(build("openai_chat_completion", models.url, **form), "a"))
        assert text.startswith("! schema 7 of the registry is no JSON schema")


class TestCohere:
    def test_settings_have_the_names_of_the_api(self, models: Models) -> None:
        fields = {"top_p": 0.2, "stop": ["x"], "json_schema": '{"type": "object"}'}
        run(build("cohere_chat", models.url, response_format="json_schema", **fields), "a")
        [(_, sent)] = models.requests
        assert (sent["p"], sent["stop_sequences"]) == (0.2, ["x"])
        assert sent["response_format"]["json_schema"] == {"type": "object"}

    def test_a_call_without_arguments_has_an_empty_object(self, models: Models) -> None:
        models.calls = [{"name": "now", "arguments": None}]
        tool = {"name": "now", "description": "The time.", "parameters": {"properties": {}}}
        tool["processors"] = [{"mapping": 'root = "12:00, " + this.string()'}]
        assert texts(run(build("cohere_chat", models.url, tools=[tool]), "x")) == ["re: 12:00, {}"]

    def test_documents_are_reranked(self, models: Models) -> None:
        fields = {"query": "${! this.q }", "documents": "root = this.d", "top_n": "${! this.n }"}
        processor = build("cohere_rerank", models.url, **fields)
        good = {"q": "?", "n": 2, "d": ["a", {"b": "long"}, "ccc"]}
        made = run(
            processor,
            json.dumps(good),
            '{"q": "?", "n": 1, "d": []}',
            '{"q": "?", "n": "x", "d": ["a"]}',
            '{"q": "?", "n": 1, "d": 3}',
        )
        assert made[0].doc == [
            {"document": {"b": "long"}, "relevance_score": 0.12, "index": 1},
            {"document": "ccc", "relevance_score": 0.03, "index": 2},
        ]
        assert texts(made[1:]) == [
            "! no documents to rerank",
            "! top_n must be a valid integer, found 'x'",
            "! the mapping documents gives no list",
        ]

    def test_an_order_of_other_documents_fails_the_message(self, models: Models) -> None:
        models.replies = [Reply(200, b'{"results": [{"index": 9, "relevance_score": 1}]}')]
        fields = {"query": "?", "documents": "root = this"}
        [text] = texts(run(build("cohere_rerank", models.url, **fields), '["a"]'))
        assert text == (
            "! invalid API response: out of range index 9 for documents array of length 1"
        )


class TestOllama:
    def test_settings_are_options(self, models: Models) -> None:
        fields = {
            **{"top_k": 3, "repeat_penalty": 1.2, "stop": ["x"], "response_format": "json"},
            "runner": {"context_size": 4096, "use_mmap": False},
        }
        run(build("ollama_chat", models.url, **fields), "a")
        run(build("ollama_embeddings", models.url, runner={"threads": 2}), "a")
        (_, chat), (_, embedding) = models.requests
        assert chat["format"] == "json"
        assert chat["options"] == {
            **{"top_k": 3, "repeat_penalty": 1.2, "stop": ["x"]},
            **{"num_ctx": 4096, "use_mmap": False},
        }
        assert embedding["options"] == {"num_thread": 2}

    def test_the_prompt_is_kept_and_an_image_sent(self, models: Models) -> None:
        fields = {"save_prompt_metadata": True, "system_prompt": "s", "image": "root = content()"}
        [made] = run(build("ollama_chat", models.url, **fields), "a")
        assert dict(made.meta) == {"system_prompt": "s", "prompt": "a"}
        assert models.requests[0][1]["messages"][-1]["images"] == ["YQ=="]

    def test_a_model_that_is_missing_is_got_once(self, models: Models) -> None:
        models.missing = {"m"}
        assert texts(run(build("ollama_chat", models.url), "a", "b")) == ["re: a", "re: b"]
        assert [path for path, _ in models.requests] == [
            *("/api/chat", "/api/pull", "/api/chat", "/api/chat")
        ]

    def test_answers_are_judged(self, models: Models) -> None:
        contents = ["safe", "unsafe\nS1", "Yes", "maybe"]
        models.replies = [
            Reply(200, json.dumps({"message": {"content": content}}).encode())
            for content in contents
        ]
        fields = {"model": "llama-guard3", "prompt": "${! this.q }", "response": "${! this.a }"}
        processor = build("ollama_moderation", models.url, **fields)
        made = run(processor, *(['{"q": "x", "a": "y"}'] * 4))
        assert [dict(one.meta) for one in made] == [
            {"safe": "yes"},
            {"safe": "no", "category": "S1"},
            {"safe": "no"},
            {},
        ]
        assert made[3].error == "unexpected moderation response from llama-guard3: 'maybe'"
        assert json.loads(models.server.asked[0].body)["messages"] == [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": "y"},
        ]

    def test_no_server_is_started(self) -> None:
        with pytest.raises(ConfigError, match="run `ollama serve` beside it"):
            build("ollama_chat", "http://127.0.0.1:1", cache_directory="/var/ollama")


class TestProbe:
    @pytest.mark.parametrize("name", [*CHATS, *EMBEDDINGS])
    def test_a_server_is_found_or_not(self, models: Models, name: str) -> None:
        processor = build(name, models.url)
        assert isinstance(processor, SupportsProbe)
        assert processor.probe().endswith(" answers")
        away = build(name, f"http://127.0.0.1:{free_port()}")
        assert isinstance(away, SupportsProbe)
        with pytest.raises(StreamerError, match=r"127\.0\.0\.1"):
            away.probe()

    def test_a_wrong_key_is_found(self, models: Models) -> None:
        processor = build("openai_embeddings", models.url, api_key="wrong")
        assert isinstance(processor, SupportsProbe)
        with pytest.raises(StreamerError, match="status 401: invalid api key"):
            processor.probe()


def test_a_pause_is_for_all_threads(models: Models) -> None:
    processor = build("openai_embeddings", models.url)
    models.replies = [Reply(429, headers={"Retry-After": "5"})]
    first, second = Clock(), Clock()
    run(processor, "a", clock=first)
    thread = threading.Thread(target=run, args=(processor, "b"), kwargs={"clock": second})
    thread.start()
    thread.join()
    assert (first.pauses, second.pauses) == ([5.0], [5.0])
