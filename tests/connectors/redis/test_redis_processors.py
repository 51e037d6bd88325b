"""`redis` and `redis_script`, on a real Redis."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.errors import ConfigError
from streamer.core.message import Message
from tests.components.outputs.scripted import Seen
from tests.servers import free_port
from tests.servers.redis import redis_server

from .conftest import Place


def outcomes(yaml: str, *given: str, seen: Seen | None = None) -> list[str]:
    """Return what a processor makes of a batch: payloads, or `! ` and the error."""
    indented = yaml.replace("\n", "\n      ")
    config = parse_config(f"pipeline:\n  processors:\n    - {indented}\n", env={})
    processor = build_context(config.resources).build(config.processors[0])
    batch = [Message(text.encode(), {"c": "get"}) for text in given]
    [made] = processor.process(batch, (seen or Seen()).ex)
    return [m.raw.decode() if m.error is None else f"! {m.error}" for m in made]


@pytest.mark.slow
def test_the_answer_of_a_command_replaces_the_message(db: Place) -> None:
    yaml = f"redis: {{url: '{db.url}', command: incrby, "
    yaml += f"args_mapping: 'root = [ \"{db.key}\", this ]'}}"
    assert outcomes(yaml, "5", "2", "-10") == ["5", "7", "-3"]
    assert db.redis.get(db.key) == "-3"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "args", "expected"),
    [
        ("hgetall", "[ $key ]", '["f","v","g","1.5"]'),
        ("hget", '[ $key, "f" ]', '"v"'),
        ("hexists", '[ $key, "f" ]', "1"),
        ("hget", '[ $key, "none" ]', "! redis: nil"),
        ("ping", "[]", '"PONG"'),
        ("echo", "[ this.big ]", '"12345678901234567890"'),
        ("echo", "[ this.half ]", '"0.5"'),
        ("echo", "[ true ]", '"1"'),
        (
            "echo",
            "[ this ]",
            "! args mapping failed: redis: can't marshal map[string]interface {} "
            "(implement encoding.BinaryMarshaler)",
        ),
        ("echo", "5", "! args mapping failed: mapping returned non-array result: json.Number"),
        ("${! @c.uppercase() }", '[ $key + ":none" ]', "! redis: nil"),
        ("${! this.half.uppercase() }", "[]", "! command interpolation error: expected string"),
    ],
)
def test_answers_are_values_as_redis_sends_them(
    command: str, args: str, expected: str, db: Place
) -> None:
    db.redis.hset(db.key, mapping={"f": "v", "g": "1.5"})
    mapping = f'let key = "{db.key}"\n      root = {args}'
    yaml = f"redis:\n  url: {db.url}\n  command: '{command}'\n  args_mapping: |\n    {mapping}"
    yaml = yaml.replace("\n      root", "\n    root")
    [found] = outcomes(yaml, '{"big":12345678901234567890,"half":0.5}')
    assert found == expected or (expected.endswith("string") and found.startswith(expected))


@pytest.mark.slow
def test_a_command_that_fails_is_tried_again(db: Place) -> None:
    db.redis.set(db.key, "text")
    seen = Seen()
    yaml = f"redis: {{url: '{db.url}', command: scard, args_mapping: 'root = [ \"{db.key}\" ]', "
    [found] = outcomes(yaml + "retries: 1, retry_period: 2s}", "{}", seen=seen)
    text = "WRONGTYPE Operation against a key holding the wrong kind of value"
    assert found == f"! {text}"
    failed = ("ERROR", f"scard command failed: {text}")
    assert seen.lines == [failed, failed, ("ERROR", text)]
    assert seen.pauses == [2_000_000_000] * 2


@pytest.mark.slow
def test_the_old_operators_work(db: Place) -> None:
    yaml = f"redis: {{url: '{db.url}', key: '{db.key}${{! @none | \"\" }}', operator: "
    assert outcomes(yaml + "sadd}", "a", "b", "a") == ["1", "1", "0"]
    assert outcomes(yaml + "scard}", "x") == ["2"]
    assert outcomes(yaml + "keys}", "x") == [f'["{db.key}"]']
    db.redis.delete(db.key)
    assert outcomes(yaml + "incrby}", "5", "x")[0] == "5"


@pytest.mark.slow
def test_a_script_has_keys_and_arguments(db: Place) -> None:
    yaml = f"""\
redis_script:
  url: {db.url}
  script: |
    redis.call('set', KEYS[1], ARGV[1])
    return {{KEYS[1], ARGV[1], 7, false}}
  keys_mapping: root = [ "{db.key}" ]
  args_mapping: root = [ this ]"""
    assert outcomes(yaml, '"v"') == [f'["{db.key}","v",7,null]']
    # A Redis that has forgotten the script is sent it again.
    db.redis.script_flush()
    assert outcomes(yaml, "8", "{}") == [
        f'["{db.key}","8",7,null]',
        "! args_mapping failed: redis: can't marshal map[string]interface {} "
        "(implement encoding.BinaryMarshaler)",
    ]
    assert db.redis.get(db.key) == "8"


@pytest.mark.slow
def test_a_password_a_database_and_a_name_are_sent(tmp_path: Path) -> None:
    with redis_server(tmp_path, None, "--requirepass", "sec:ret") as url:
        given = url.replace("redis://", "tcp://:sec%3Aret@") + "/3"
        yaml = f"redis: {{url: '{given}', command: client, args_mapping: 'root = [ \"INFO\" ]', "
        [found] = outcomes(yaml + "client_name: its-name}", "{}")
    assert " name=its-name " in found and " db=3 " in found


def test_a_redis_that_is_not_there_marks_messages() -> None:
    yaml = f"redis: {{url: 'redis://127.0.0.1:{free_port()}', command: get, "
    [found] = outcomes(yaml + "args_mapping: 'root = [ \"a\" ]', retries: 0}", "{}")
    assert found.startswith("! ") and "Connection refused" in found


@pytest.mark.parametrize(
    ("yaml", "text"),
    [
        ("{url: 'redis://a'}", "field command: is not set|command is not set"),
        ("{url: 'redis://a', command: get}", "args_mapping is not set"),
        ("{url: 'http://a', command: get}", "the scheme 'http'; expected a URL such as redis://"),
        ("{url: 'redis://a/x', command: get}", "expected the number of a database"),
        ("{url: 'redis://a', kind: failover, command: get}", "master is not set; sentinels"),
        ("{url: 'redis://a', operator: keys}", "key is not set; the operator needs a key"),
        ("{url: 'redis://a', operator: keys, key: a, command: get}", "only one of 'operator'"),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(yaml: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        outcomes(f"redis: {yaml}", "{}")
