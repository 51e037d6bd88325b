"""A server that goes down while it is sent to, and a kill -9 meanwhile: nothing is lost."""

import json

import pytest

from tests.servers.http import Asked, Reply, http_server

from .program import program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CONFIG = """
input: {{file: {{paths: ["{lines}"], auto_replay_nacks: false}}}}
pipeline: {{processors: [mapping: 'root.n = this.n']}}
output:
  broker:
    pattern: fan_out
    outputs:
      - file: {{path: "{copy}"}}
      - http_client: {{url: "{url}", retries: 0, max_in_flight: 1}}
spark: {{master: "local[2]"}}
"""
NUMBER, DOWN_AFTER = 600, 150


def test_a_server_that_is_away_gets_everything_when_it_is_back_and_files_are_exact(tmp_path):
    lines, copy = tmp_path / "in", tmp_path / "copy"
    lines.write_text("".join(f'{{"n":{n}}}\n' for n in range(NUMBER)))
    state = {"down": True}

    def answers(asked: Asked) -> Reply:
        if json.loads(asked.body)["n"] % 100 == 99:
            return Reply(400)
        return Reply(503 if state["down"] and len(server.asked) > DOWN_AFTER else 200)

    config = tmp_path / "config.yaml"
    with http_server(answers) as server:
        config.write_text(CONFIG.format(url=server.url, lines=lines, copy=copy))
        with program(config, tmp_path / "checkpoint") as first:
            first.wait_for(
                lambda: any(text.startswith("Output blocked: ") for text in first.messages()),
                240,
                "for what the output waits for",
            )
            first.kill()
        state["down"] = False
        with program(config, tmp_path / "checkpoint") as second:
            assert second.finish(240) == 0
    numbers = [json.loads(body)["n"] for body in server.bodies]
    # In order, with what is tried again and what the replay repeats.
    assert list(dict.fromkeys(numbers)) == list(range(NUMBER))
    assert copy.read_text() == lines.read_text()
