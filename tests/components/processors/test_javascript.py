from __future__ import annotations

import threading
from pathlib import Path

import pytest

from streamer.config import parse_config
from streamer.core.errors import ConfigError, StreamerError
from tests.servers.http import Asked, Reply, http_server

from .changes import outcomes
from .conftest import Make, Run, messages, payloads


def test_each_message_by_itself(make: Make, a_run: Run) -> None:
    yaml = (
        "javascript:\n  code: |\n    const m = benthos.v0_msg_as_structured();\n"
        "    m.a++;\n    benthos.v0_msg_set_structured(m);"
    )
    assert outcomes(make, a_run, yaml, '{"a":1}', "x", '{"a":2}') == [
        '{"a":2}',
        "! unexpected token: 'x'",
        '{"a":3}',
    ]


def test_metadata_and_the_log(make: Make, a_run: Run) -> None:
    yaml = "javascript:\n  code: |\n    benthos.v0_msg_set_meta('self', 1); console.log('seen')"
    [[message]] = make(yaml).process(messages("a"), a_run.ex)
    assert (message.raw, dict(message.meta)) == (b"a", {"self": 1})
    assert a_run.logged == [("INFO", "seen")]


def test_a_file_with_modules(make: Make, a_run: Run, tmp_path: Path) -> None:
    (tmp_path / "main.js").write_text("benthos.v0_msg_set_string(require('./more').add('a'))")
    (tmp_path / "more.js").write_text("exports.add = text => text + 'b'")
    processor = make(f"javascript: {{file: {tmp_path}/main.js}}")
    assert payloads(processor.process(messages("x"), a_run.ex)) == [["ab"]]


def test_a_runtime_for_each_thread(make: Make, a_run: Run) -> None:
    processor = make(
        "javascript:\n  code: |\n    globalThis.n = (globalThis.n || 0) + 1;\n"
        "    benthos.v0_msg_set_string(n);"
    )
    found: list[list[list[str]]] = []

    def process() -> None:
        found.append(payloads(processor.process(messages("x", "x"), a_run.ex)))

    for _ in range(2):
        thread = threading.Thread(target=process)
        thread.start()
        thread.join()
    assert found == [[["1", "2"]]] * 2


def test_an_http_request(make: Make, a_run: Run) -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(418, asked.body.upper() + asked.headers["x-a"].encode())

    with http_server(answer) as server:
        yaml = (
            "javascript:\n  code: |\n"
            f"    const headers = {{'X-A': 'h'}}, body = benthos.v0_msg_as_string();\n"
            f"    const r = benthos.v0_fetch('{server.url}', headers, 'PUT', body);\n"
            "    benthos.v0_msg_set_string(r.status + r.body);"
        )
        assert payloads(make(yaml).process(messages("a", "b"), a_run.ex)) == [["418Ah", "418Bh"]]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("{}", "either the code or file field must be specified"),
        ("{code: a, file: b}", "cannot specify both the code and file fields"),
        ("{code: 'a b'}", "failed to compile javascript code: SyntaxError"),
    ],
)
def test_lint(fields: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        parse_config(f"pipeline: {{processors: [{{javascript: {fields}}}]}}")


def test_a_file_that_is_not_there(make: Make) -> None:
    with pytest.raises(StreamerError, match="failed to open target file"):
        make("javascript: {file: none.js}")
