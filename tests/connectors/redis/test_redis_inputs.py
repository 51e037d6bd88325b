"""`redis_list`, `redis_pubsub` and `redis_streams` as inputs, on a real Redis."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.components.inputs.landing import receiving
from tests.servers import free_port
from tests.servers.redis import redis_server

from .conftest import Place

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("command", "expected"), [("blpop", "abcd"), ("brpop", "cbad")])
def test_a_list_is_popped_at_either_end(
    command: str, expected: str, db: Place, tmp_path: Path
) -> None:
    db.redis.rpush(db.key, *"abc")
    config = f"redis_list: {{url: '{db.url}', key: '{db.key}', command: {command}}}"
    with receiving(tmp_path, config) as taken:
        assert "".join(taken.raws(3)) == expected.replace("d", "")
        db.redis.rpush(db.key, "d")
        assert "".join(taken.raws(4)) == expected.replace("d", "") + "d"
    assert db.redis.llen(db.key) == 0


def test_what_is_published_is_heard(db: Place, tmp_path: Path) -> None:
    config = f"redis_pubsub: {{url: '{db.url}', channels: ['{db.key}:*', '{db.key}'], "
    with receiving(tmp_path, config + "use_patterns: true}") as taken:
        taken.counted("input_connection_up")
        for channel, text in ((f"{db.key}:a", "1"), (db.key, "2"), (f"{db.key}x", "3")):
            db.redis.publish(channel, text)
        db.redis.publish(f"{db.key}:b", "4")
        assert taken.raws(3) == ["1", "2", "4"]


def test_entries_of_a_stream_land_and_are_acknowledged(db: Place, tmp_path: Path) -> None:
    first = db.redis.xadd(db.key, {"it": "a", "k": "v"})
    db.redis.xadd(db.key, {"other": "b"})
    config = f"redis_streams: {{url: '{db.url}', streams: ['{db.key}'], body_key: it, "
    with receiving(tmp_path, config + "consumer_group: g, client_id: c, limit: 2}") as taken:
        db.redis.xadd(db.key, {"it": "c"})
        assert taken.raws(2) == ["a", "c"]
    assert taken.messages[0].meta == {"redis_stream": first, "k": "v"}
    assert db.redis.xpending(db.key, "g")["pending"] == 0


def test_entries_that_were_not_acknowledged_come_again_but_land_once(
    db: Place, tmp_path: Path
) -> None:
    config = f"redis_streams: {{url: '{db.url}', streams: ['{db.key}'], limit: 1, "
    config += "consumer_group: g, client_id: c, commit_period: 1h}"
    for text in "ab":
        db.redis.xadd(db.key, {"body": text})
    with receiving(tmp_path, config) as taken:
        assert taken.raws(2) == ["a", "b"]
        # The connection breaks before anything is acknowledged.
        for client in db.redis.client_list():
            if client["name"] == "redpanda-connect":
                db.redis.client_kill(client["addr"])
        db.redis.xadd(db.key, {"body": "c"})
        assert taken.raws(3) == ["a", "b", "c"]
    # As does the program: it has read, and what it has read has not landed.
    db.redis.xadd(db.key, {"body": "d"})
    db.redis.xreadgroup("g", "c", {db.key: ">"})
    with receiving(tmp_path, config) as taken:
        assert taken.raws(4) == ["a", "b", "c", "d"]
        db.redis.xadd(db.key, {"body": "e"})
        assert taken.raws(5) == ["a", "b", "c", "d", "e"]
    assert db.redis.xpending(db.key, "g")["pending"] == 0


def test_a_group_may_begin_with_the_next_entry(db: Place, tmp_path: Path) -> None:
    db.redis.xadd(db.key, {"body": "old"})
    config = f"redis_streams: {{url: '{db.url}', streams: ['{db.key}'], consumer_group: g, "
    with receiving(tmp_path, config + "start_from_oldest: false}") as taken:
        taken.counted("input_connection_up")
        db.redis.xadd(db.key, {"body": "new"})
        assert taken.raws(1) == ["new"]


def test_a_stream_that_is_not_there_is_waited_for(db: Place, tmp_path: Path) -> None:
    config = f"redis_streams: {{url: '{db.url}', streams: ['{db.key}'], consumer_group: g, "
    with receiving(tmp_path, config + "create_streams: false}") as taken:
        taken.counted("input_connection_failed")
        db.redis.xadd(db.key, {"body": "a"})
        assert taken.raws(1) == ["a"]
    text = taken.lodged.log[0][1]
    assert text.startswith("Failed to connect to redis_streams: failed to create group g for")


def test_a_redis_that_goes_and_comes_back_is_read_on(tmp_path: Path) -> None:
    import redis

    port = free_port()
    config = f"redis_list: {{url: 'redis://127.0.0.1:{port}', key: k}}"
    with receiving(tmp_path / "spool", config) as taken:
        taken.counted("input_connection_failed")
        for number in (1, 2):
            with redis_server(tmp_path, port), redis.Redis(port=port) as client:
                client.rpush("k", str(number))
                taken.raws(number)
        assert taken.raws(2) == ["1", "2"]
