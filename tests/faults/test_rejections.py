"""A server that refuses messages, and a kill -9 meanwhile: they keep nobody waiting, and come."""

import json

import pytest

from tests.servers.http import Asked, Reply, http_server

from .program import program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CONFIG = """
input: {{file: {{paths: ["{lines}"]}}}}
buffer: {buffer}
output:
  broker:
    pattern: fan_out
    outputs:
      - http_client: {{url: "{url}", retries: 0}}
      - file: {{path: "{copy}"}}
spark: {{master: "local[2]"}}
"""
WINDOW = "{tumbling_window: {size: 100s, timestamp_mapping: root = this.n}}"
NUMBER = 5_000
"""Two micro-batches and more, since the first one takes what a task hands on at a time."""


def is_refused(number: int) -> bool:
    return number % 100 == 7


@pytest.mark.parametrize("buffer", ["{none: {}}", WINDOW], ids=["alone", "windows"])
def test_what_a_server_refuses_comes_again_by_itself_also_after_a_kill(tmp_path, buffer):
    lines, copy, checkpoint = (tmp_path / name for name in ("in", "copy", "checkpoint"))
    lines.write_text("".join(f'{{"n":{n}}}\n' for n in range(NUMBER)))
    taken: list[int] = []
    state = {"refuses": True}

    def answers(asked: Asked) -> Reply:
        number = json.loads(asked.body)["n"]
        if state["refuses"] and is_refused(number):
            return Reply(400, b"not this one")
        taken.append(number)
        return Reply()

    config = tmp_path / "config.yaml"
    with http_server(answers) as server:
        text = CONFIG.format(url=server.url, lines=lines, copy=copy, buffer=buffer)
        config.write_text(text)
        with program(config, checkpoint) as first:
            # All that is not refused has come, though what is refused has not.
            first.wait_for(lambda: len(set(taken)) == NUMBER - NUMBER // 100, 240, "for the others")
            first.wait_for(lambda: any(checkpoint.glob("rejected/*")), 60, "for what is kept")
            first.kill()
        assert not any(map(is_refused, taken))
        state["refuses"] = False
        with program(config, checkpoint) as second:
            assert second.finish(240) == 0
    assert set(taken) == set(range(NUMBER))
    refused = [number for number in taken if is_refused(number)]
    assert sorted(set(refused)) == [n for n in range(NUMBER) if is_refused(n)]
    # The other output has each once, whatever came again.
    assert sorted(json.loads(line)["n"] for line in copy.read_text().splitlines()) == [
        *range(NUMBER)
    ]
    assert not [path for path in checkpoint.glob("rejected/*") if path.stat().st_size]


def test_an_input_that_does_not_replay_drops_what_is_refused_and_ends(tmp_path):
    lines, copy = tmp_path / "in", tmp_path / "copy"
    lines.write_text("".join(f'{{"n":{n}}}\n' for n in range(200)))
    config = tmp_path / "config.yaml"
    with http_server(lambda asked: Reply(413)) as server:
        text = CONFIG.format(url=server.url, lines=lines, copy=copy, buffer="{none: {}}")
        config.write_text(text.replace("paths:", "auto_replay_nacks: false, paths:"))
        with program(config, tmp_path / "checkpoint") as run:
            assert run.finish(240) == 0
            [said] = [text for text in run.messages() if "A message was rejected" in text]
    assert "413" in said
    assert copy.read_text() == lines.read_text()
    # Each was tried once.
    assert len(server.bodies) == 200
