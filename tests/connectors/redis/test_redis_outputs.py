"""`redis_list`, `redis_pubsub`, `redis_hash` and `redis_streams` as outputs, on a real Redis."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.sdk.output.rejection import Reason, Rejection
from tests.components.outputs.scripted import Seen, batches, built
from tests.servers import free_port
from tests.servers.redis import redis_server

from .conftest import Place

IDS = {"a": "97-1", "b": "0-0", "c": "99-1"}


@pytest.mark.slow
@pytest.mark.parametrize(("command", "expected"), [("rpush", "abcd"), ("lpush", "dcba")])
def test_a_list_grows_at_either_end(command: str, expected: str, db: Place) -> None:
    fields = f"url: '{db.url}', key: '{db.key}', command: {command}, max_in_flight: 1"
    sent = built(f"redis_list: {{{fields}}}").deliver(batches("ab", "c", "d"), Seen().ex)
    assert sent.errors == [None] * 3
    assert "".join(db.redis.lrange(db.key, 0, -1)) == expected


@pytest.mark.slow
def test_only_what_fails_of_a_batch_is_named(db: Place) -> None:
    db.redis.set(f"{db.key}:b", "no list")
    output = built(f"redis_list: {{url: '{db.url}', key: '{db.key}:${{! content() }}'}}")
    sent = output.deliver(batches("abc"), Seen().ex)
    assert sent.errors[0] is not None
    text = "WRONGTYPE Operation against a key holding the wrong kind of value"
    assert sent.errors[0].errors == {1: text}
    assert [db.redis.lrange(f"{db.key}:{letter}", 0, -1) for letter in "ac"] == [["a"], ["c"]]


@pytest.mark.slow
def test_values_that_redis_refuses_are_rejected_by_themselves(db: Place) -> None:
    db.redis.set(f"{db.key}:b", "no list")
    refused = {
        # The wrong type: of a key that a message names, and not of one that all share.
        f"redis_list: {{url: '{db.url}', key: '{db.key}:${{! @k }}'}}": "WRONGTYPE",
        # An identifier that is no larger than the one before.
        f"redis_streams: {{url: '{db.url}', stream: '{db.key}:s', id: '${{! @id }}'}}": "The ID",
    }
    for fields, begins in refused.items():
        batch = [Message(k.encode(), {"k": k, "id": id}) for k, id in IDS.items()]
        [error] = built(fields).deliver([batch], Seen().ex).errors
        assert error is not None and error.is_rejected and [*error.errors] == [1], fields
        text = error.errors[1]
        assert isinstance(text, Rejection) and text.reason == Reason.REFUSED
        assert text.startswith(begins)
    assert [db.redis.lrange(f"{db.key}:{letter}", 0, -1) for letter in "ac"] == [["a"], ["c"]]
    assert [id for id, _ in db.redis.xrange(f"{db.key}:s")] == ["97-1", "99-1"]
    [error] = (
        built(f"redis_list: {{url: '{db.url}', key: '{db.key}:b'}}")
        .deliver([[Message(b"a")]], Seen().ex)
        .errors
    )
    assert error is not None and not error.is_rejected


@pytest.mark.slow
def test_who_listens_hears_what_is_published(db: Place) -> None:
    with db.redis.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe(f"{db.key}:x")
        listener.get_message(timeout=60)
        output = built(f"redis_pubsub: {{url: '{db.url}', channel: '{db.key}:${{! @k }}'}}")
        batch = [Message(b"one", {"k": "x"}), Message(b"other", {"k": "y"})]
        assert output.deliver([batch], Seen().ex).errors == [None]
        heard = listener.get_message(timeout=60) or listener.get_message(timeout=60)
        assert heard["data"] == "one"


@pytest.mark.slow
def test_a_hash_has_metadata_then_the_document_then_fields(db: Place) -> None:
    fields = f"url: '{db.url}', key: '{db.key}', walk_metadata: true, walk_json_object: true"
    output = built(f"redis_hash: {{{fields}, fields: {{c: '${{! this.a }}!'}}}}")
    message = Message(b'{"a":1.5,"b":true,"c":"doc"}', {"a": "meta", "m": 7})
    assert output.deliver([[message]], Seen().ex).errors == [None]
    assert db.redis.hgetall(db.key) == {"a": "1.5", "b": "1", "c": "1.5!", "m": "7"}
    sent = output.deliver([[Message(b"[]")], [Message(b'{"a":[]}')]], Seen().ex)
    assert [str(error) for error in sent.errors] == [
        "failed to walk JSON object: expected JSON object, found '[]interface {}'",
        "redis: can't marshal []interface {} (implement encoding.BinaryMarshaler)",
    ]


@pytest.mark.slow
def test_an_entry_of_a_stream_has_the_message_and_its_metadata(db: Place) -> None:
    fields = f"url: '{db.url}', stream: '{db.key}', id: '${{! @id }}-0', body_key: it"
    output = built(f"redis_streams: {{{fields}, metadata: {{exclude_prefixes: [_]}}}}")
    batch = [Message(b"a", {"id": 1, "_x": 1, "it": "meta"}), Message(b"b", {"id": 2})]
    assert output.deliver([batch], Seen().ex).errors == [None]
    assert db.redis.xrange(db.key) == [
        ("1-0", {"id": "1", "it": "a"}),
        ("2-0", {"id": "2", "it": "b"}),
    ]


@pytest.mark.slow
def test_a_stream_is_bounded_roughly(db: Place) -> None:
    fields = f"url: '{db.url}', stream: '{db.key}', max_length: 10"
    output = built(f"redis_streams: {{{fields}}}")
    assert output.deliver(batches("x" * 1000), Seen().ex).errors == [None]
    assert 10 <= db.redis.xlen(db.key) < 300


@pytest.mark.slow
def test_what_is_sent_while_redis_is_away_comes_when_it_is_back(tmp_path: Path) -> None:
    port = free_port()
    output = built(f"redis_list: {{url: 'redis://127.0.0.1:{port}', key: k}}")
    seen = Seen()
    with redis_server(tmp_path, port):
        assert output.deliver(batches("a"), seen.ex).errors == [None]
    running = []

    def sleep(pause: int) -> None:
        # It comes back while the output waits before it connects again.
        if not running:
            running.append(redis_server(tmp_path, port))
            running[0].__enter__()

    seen.ex.sleep = sleep
    try:
        assert output.deliver(batches("b"), seen.ex).errors == [None]
        import redis

        with redis.Redis(port=port, decode_responses=True) as client:
            assert client.lrange("k", 0, -1) == ["b"]
    finally:
        for one in running:
            one.__exit__(None, None, None)
    assert seen.counts["output_connection_lost"] == 1
    assert seen.counts["output_connection_up"] == 2


def test_a_hash_without_fields_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one mechanism for setting fields"):
        built("redis_hash: {url: 'redis://a', key: k}")


@pytest.mark.slow
def test_a_dry_run_asks_redis(db: Place) -> None:
    assert built(f"redis_list: {{url: '{db.url}', key: k}}").probe() == "Redis answers"
