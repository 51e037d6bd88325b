"""`nats`, `nats_jetstream` and `nats_request_reply`, with a real server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.nats.connection import NatsError
from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.sdk.output.rejection import Reason, Rejection
from tests.components.inputs.landing import receiving
from tests.components.outputs.scripted import Seen, batches, built
from tests.servers import free_port, lasting_port
from tests.servers.nats import nats_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with nats_server(tmp_path_factory.mktemp("nats")) as url:
        yield url


def ask(url: str, work: Callable[[Any], Awaitable[Any]]) -> Any:
    """Do something with a client of the suite's own."""
    import nats

    async def run() -> Any:
        client = await nats.connect(url)
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(run())


def send(url: str, name: str, fields: str, batch: list[Message]) -> Any:
    return built(f"{name}: {{urls: ['{url}'], {fields}}}").deliver([batch], Seen().ex)


@pytest.mark.slow
class TestNats:
    def test_what_is_published_is_received(self, server: str, tmp_path: Path) -> None:
        config = f"nats: {{urls: ['nats://127.0.0.1:{free_port()}', '{server}'], subject: 'a.>'}}"
        with receiving(tmp_path, config) as taken:
            taken.counted("input_connection_up")
            given = enumerate(("a.x", "b", "a.y"))
            batch = [Message(f"{n}".encode(), {"t": t, "k": 7}) for n, t in given]
            fields = (
                "subject: '${! @t }', headers: {h: 'v ${! @t }'}, metadata: {include_prefixes: [k]}"
            )
            assert send(server, "nats", fields, batch).errors == [None]
            assert taken.raws(2) == ["0", "2"]
        assert dict(taken.messages[0].meta) == {"nats_subject": "a.x", "h": "v a.x", "k": "7"}

    def test_a_request_is_answered_when_it_is_on_the_disk(
        self, server: str, tmp_path: Path
    ) -> None:
        with receiving(tmp_path, f"nats: {{urls: ['{server}'], subject: acked}}") as taken:
            taken.counted("input_connection_up")
            reply = ask(server, lambda client: client.request("acked", b"x", timeout=10))
            assert reply.data == b"+ACK"
            assert taken.raws(1) == ["x"]
        assert taken.messages[0].meta["nats_reply_subject"].startswith("_INBOX")

    def test_members_of_a_queue_share_messages(self, server: str, tmp_path: Path) -> None:
        config = f"nats: {{urls: ['{server}'], subject: shared, queue: q}}"
        with receiving(tmp_path / "a", config) as one, receiving(tmp_path / "b", config) as other:
            one.counted("input_connection_up")
            other.counted("input_connection_up")
            batch = [Message(f"{n}".encode()) for n in range(100)]
            assert send(server, "nats", "subject: shared", batch).errors == [None]
            one.until(lambda messages: bool(messages))
            other.until(lambda messages: len(messages) + len(one.until(lambda _: True)) == 100)

    @pytest.mark.parametrize(
        ("subject", "payload", "reason"),
        [("", b"x", Reason.INVALID), ("a b", b"x", Reason.INVALID), ("ok", b"x" * 2_000_000, None)],
    )
    def test_what_cannot_be_sent_is_a_rejection_of_its_message(
        self, server: str, tmp_path: Path, subject: str, payload: bytes, reason: Reason | None
    ) -> None:
        with receiving(tmp_path, f"nats: {{urls: ['{server}'], subject: good}}") as taken:
            taken.counted("input_connection_up")
            batch = [Message(b"0", {"t": "good"}), Message(payload, {"t": subject})]
            batch.append(Message(b"2", {"t": "good"}))
            [error] = send(server, "nats", "subject: '${! @t }'", batch).errors
            assert error is not None and error.is_rejected and [*error.errors] == [1]
            text = error.errors[1]
            assert isinstance(text, Rejection) and text.reason == (reason or Reason.REFUSED)
            assert taken.raws(2) == ["0", "2"]

    def test_a_server_that_comes_back(self, tmp_path: Path) -> None:
        port = lasting_port()
        url = f"nats://127.0.0.1:{port}"
        output = built(f"nats: {{urls: ['{url}'], subject: t, max_in_flight: 1}}")
        (tmp_path / "server").mkdir()
        with receiving(tmp_path / "spool", f"nats: {{urls: ['{url}'], subject: t}}") as taken:
            with nats_server(tmp_path / "server", port):
                taken.counted("input_connection_up")
                assert output.deliver(batches("a"), Seen().ex).errors == [None]
                assert taken.raws(1) == ["a"]
            taken.counted("input_connection_lost")
            with pytest.raises(NatsError):
                output.probe()
            with nats_server(tmp_path / "server", port):
                taken.counted("input_connection_up", 2)
                assert output.deliver(batches("c"), Seen().ex).errors == [None]
                assert taken.raws(2) == ["a", "c"]
                assert output.probe() == "the server answers"

    @pytest.mark.parametrize(
        ("settings", "good", "bad"),
        [
            (
                "authorization { user: me, password: sesame }",
                "user: me, password: sesame",
                "user: me, password: wrong",
            ),
            ("authorization { token: sesame }", "token: sesame", "token: wrong"),
        ],
    )
    def test_credentials(self, tmp_path: Path, settings: str, good: str, bad: str) -> None:
        with nats_server(tmp_path, settings=settings) as url:
            fields = "subject: t, auth: {%s}"
            assert send(url, "nats", fields % good, [Message(b"a")]).errors == [None]
            with pytest.raises(NatsError, match="(?i)authorization violation") as caught:
                built(f"nats: {{urls: ['{url}'], {fields % bad}}}").probe()
            assert "sesame" not in str(caught.value) and "wrong" not in str(caught.value)


@pytest.mark.slow
class TestJetStream:
    def test_a_durable_consumer_reads_each_message_once(self, server: str, tmp_path: Path) -> None:
        fields = "subject: js.durable.*, stream: DURABLE, create_stream: true, durable: d"
        config = f"nats_jetstream: {{urls: ['{server}'], {fields}}}"
        with receiving(tmp_path, config) as taken:
            taken.counted("input_connection_up")
            batch = [Message(f"{n}".encode(), {"n": n}) for n in range(3_000)]
            out = "subject: 'js.durable.${! @n % 3 }', headers: {h: v}"
            assert send(server, "nats_jetstream", out, batch).errors == [None]
            assert sorted(map(int, taken.raws(3_000))) == list(range(3_000))
        first = dict(taken.messages[0].meta)
        assert int(first.pop("nats_timestamp_unix_nano")) > 1_700_000_000 * 10**9
        assert int(first.pop("nats_num_pending")) >= 0
        assert first == {
            "h": "v",
            "nats_domain": "",
            "nats_num_delivered": "1",
            "nats_sequence_consumer": "1",
            "nats_sequence_stream": "1",
            "nats_subject": first["nats_subject"],
        }
        # What is stored while the stream is away comes at its next start, and nothing else.
        assert send(server, "nats_jetstream", "subject: js.durable.9", [Message(b"new")]).errors
        with receiving(tmp_path, config) as taken:
            assert taken.raws(3_001)[-1] == "new"

    def test_a_message_whose_acknowledgement_was_lost_is_read_once(
        self, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from nats.aio.msg import Msg

        async def lose(self: Any) -> None:
            pass

        fields = "subject: js.lost, stream: LOST, create_stream: true, durable: d, ack_wait: 1s"
        config = f"nats_jetstream: {{urls: ['{server}'], {fields}}}"
        with receiving(tmp_path, config) as taken:
            taken.counted("input_connection_up")
            with monkeypatch.context() as patched:
                patched.setattr(Msg, "ack", lose)
                batch = [Message(b"a"), Message(b"b")]
                assert send(server, "nats_jetstream", "subject: js.lost", batch).errors == [None]
                assert taken.raws(2) == ["a", "b"]
            # Both come again, and then one that is new.
            info = ask(server, lambda client: _wait_for_acknowledged(client, "LOST", "d"))
            assert info.num_ack_pending == 0
            assert send(server, "nats_jetstream", "subject: js.lost", [Message(b"c")]).errors
            assert taken.raws(3) == ["a", "b", "c"]

    def test_a_pull_consumer_that_is_there(self, server: str, tmp_path: Path) -> None:
        async def prepare(client: Any) -> None:
            from nats.js.api import ConsumerConfig

            context = client.jetstream()
            await context.add_stream(name="PULL", subjects=["js.pull"])
            await context.add_consumer("PULL", ConsumerConfig(durable_name="p"))
            for n in range(10):
                await context.publish("js.pull", str(n).encode())

        ask(server, prepare)
        config = f"nats_jetstream: {{urls: ['{server}'], stream: PULL, durable: p, bind: true}}"
        with receiving(tmp_path, config) as taken:
            assert taken.raws(10) == [str(n) for n in range(10)]

    def test_where_a_new_consumer_begins(self, server: str, tmp_path: Path) -> None:
        async def prepare(client: Any) -> None:
            context = client.jetstream()
            await context.add_stream(name="BEGIN", subjects=["js.begin.*"])
            for n in range(4):
                await context.publish(f"js.begin.{n % 2}", str(n).encode())

        ask(server, prepare)
        for deliver, expected in {
            "all": ["0", "1", "2", "3"],
            "last": ["3"],
            "last_per_subject": ["2", "3"],
        }.items():
            fields = f"subject: 'js.begin.*', deliver: {deliver}"
            config = f"nats_jetstream: {{urls: ['{server}'], {fields}}}"
            with receiving(tmp_path / deliver, config) as taken:
                assert taken.raws(len(expected)) == expected

    def test_a_subject_that_no_stream_takes(self, server: str) -> None:
        [error] = send(server, "nats_jetstream", "subject: nowhere", [Message(b"a")]).errors
        assert error is not None and not error.is_rejected
        assert "no response from stream" in str(error)

    def test_a_header_lets_the_server_drop_what_is_sent_twice(
        self, server: str, tmp_path: Path
    ) -> None:
        async def prepare(client: Any) -> None:
            await client.jetstream().add_stream(name="TWICE", subjects=["js.twice"])

        ask(server, prepare)
        fields = "subject: js.twice, headers: {Nats-Msg-Id: '${! content() }'}"
        batch = [Message(b"a"), Message(b"a"), Message(b"b")]
        assert send(server, "nats_jetstream", fields, batch).errors == [None]
        info = ask(server, lambda client: client.jetstream().stream_info("TWICE"))
        assert info.state.messages == 2


async def _wait_for_acknowledged(client: Any, stream: str, durable: str) -> Any:
    for _ in range(300):
        info = await client.jetstream().consumer_info(stream, durable)
        if info.num_ack_pending == 0 and info.num_redelivered == 0:
            return info
        await asyncio.sleep(0.1)
    return info


@pytest.mark.slow
def test_a_request_and_its_reply(server: str) -> None:
    from streamer.components.catalog import build_context
    from streamer.config import parse_config

    stop = threading.Event()
    ready = threading.Event()

    async def serve(client: Any) -> None:
        async def answer(message: Any) -> None:
            await client.publish(
                message.reply, message.data.upper(), headers={"from": message.headers["to"]}
            )

        await client.subscribe("prices.*", cb=answer)
        await client.flush()
        ready.set()
        while not stop.is_set():
            await asyncio.sleep(0.05)

    thread = threading.Thread(target=ask, args=(server, serve))
    thread.start()
    try:
        assert ready.wait(30)
        fields = "subject: '${! @s }', headers: {to: me}, timeout: 2s"
        config = parse_config(
            "pipeline:\n  processors:\n"
            f"    - nats_request_reply: {{urls: ['{server}'], {fields}}}\n"
        )
        processor = build_context(config.resources).build(config.processors[0])
        batch = [Message(b"a", {"s": "prices.x", "m": 1}), Message(b"b", {"s": "nobody"})]
        [[good, bad]] = processor.process(batch, Seen().ex)
        assert (good.raw, good.meta["from"], good.meta["m"], good.error) == (b"A", "me", 1, None)
        assert bad.raw == b"b" and "no responders" in (bad.error or "")
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("nats: {urls: [], subject: a}", "urls is an empty list; expected a URL such as nats://"),
        ("nats: {urls: ['http://a'], subject: a}", "expected a URL such as nats://localhost:4222"),
        ("nats: {urls: [a], subject: a, auth: {user_jwt: x}}", "need each other"),
        ("nats: {urls: [a], subject: a, auth: {password: x}}", "needs the field user"),
        ("nats_jetstream: {urls: [a]}", "subject is missing; only bind goes without it"),
        ("nats_jetstream: {urls: [a], bind: true}", "needs the field stream, and durable or queue"),
        (
            "nats_jetstream: {urls: [a], subject: b, create_stream: true}",
            "needs the fields stream and subject",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(fields: str, text: str) -> None:
    from streamer.config import parse_config

    with pytest.raises(ConfigError, match=text):
        parse_config(f"input: {{{fields}}}\n")


@pytest.fixture(scope="module")
def bucket(server: str) -> str:
    async def prepare(client: Any) -> None:
        await client.jetstream().create_key_value(bucket="things", history=5)

    ask(server, prepare)
    return f"urls: ['{server}'], bucket: things"


def process(fields: str, *batch: Message) -> list[Message]:
    from streamer.components.catalog import build_context
    from streamer.config import parse_config

    config = parse_config(f"pipeline:\n  processors:\n    - nats_kv: {{{fields}}}\n")
    processor = build_context(config.resources).build(config.processors[0])
    [made] = processor.process(list(batch), Seen().ex)
    return made


@pytest.mark.slow
class TestKeyValue:
    def test_operations(self, bucket: str) -> None:
        key = f"{bucket}, key: op.a, operation: "
        [made] = process(key + "put", Message(b"1", {"m": 1}))
        first = made.meta["nats_kv_revision"]
        assert dict(made.meta) == {
            "m": 1,
            "nats_kv_bucket": "things",
            "nats_kv_key": "op.a",
            "nats_kv_operation": "KeyValuePutOp",
            "nats_kv_revision": first,
        }
        [failed] = process(key + "create", Message(b"2"))
        assert "wrong last sequence" in (failed.error or "")
        update = key + "update, revision: '${! @r }'"
        [updated, outdated] = process(
            update, Message(b"3", {"r": str(first)}), Message(b"4", {"r": str(first)})
        )
        assert updated.error is None and "wrong last sequence" in (outdated.error or "")
        [got] = process(key + "get", Message(b"x", {"m": 1}))
        assert (got.raw, got.meta["nats_kv_revision"]) == (b"3", updated.meta["nats_kv_revision"])
        assert got.meta["m"] == 1
        [old] = process(key + f"get_revision, revision: '{first}'", Message(b"x"))
        assert old.raw == b"1"
        [history] = process(key + "history", Message(b"x"))
        assert [one["value"] for one in history.doc] == [b"1", b"3"]
        [deleted] = process(key + "delete", Message(b"x"))
        assert deleted.meta["nats_kv_operation"] == "KeyValueDeleteOp"
        [missing] = process(key + "get", Message(b"x"))
        assert missing.error == "nats: key not found"
        process(f"{bucket}, key: op.b, operation: put", Message(b"1"))
        [keys] = process(f"{bucket}, key: op.*, operation: keys", Message(b"x"))
        assert keys.doc == ["op.b"]
        [purged] = process(f"{bucket}, key: op.b, operation: purge", Message(b"x"))
        assert purged.error is None

    def test_a_bucket_is_read_and_watched(self, bucket: str, tmp_path: Path) -> None:
        output = built(f"nats_kv: {{{bucket}, key: 'w.${{! @k }}'}}")

        def put(**values: str) -> None:
            batch = [Message(value.encode(), {"k": key}) for key, value in values.items()]
            assert output.deliver([batch], Seen().ex).errors == [None]

        put(a="1", b="2")
        config = f"nats_kv: {{{bucket}, key: 'w.*'}}"
        with receiving(tmp_path, config) as taken:
            assert sorted(taken.raws(2)) == ["1", "2"]
            put(a="3")
            assert taken.raws(3)[-1] == "3"
        put(b="4")
        with receiving(tmp_path, config) as taken:
            assert taken.raws(4)[-1] == "4"
        meta = taken.messages[-1].meta
        assert (meta["nats_kv_key"], meta["nats_kv_operation"]) == ("w.b", "KeyValuePutOp")

    def test_values_of_a_key_keep_their_order(self, bucket: str) -> None:
        output = built(f"nats_kv: {{{bucket}, key: '${{! @k }}'}}")
        batch = [Message(f"{n}".encode(), {"k": f"order.{n % 3}"}) for n in range(300)]
        batch += [Message(b"x", {"k": "not a key"}), Message(b"x" * 2_000_000, {"k": "order.0"})]
        [error] = output.deliver([batch], Seen().ex).errors
        assert error is not None and error.is_rejected and sorted(error.errors) == [300, 301]
        for rest in range(3):
            [got] = process(f"{bucket}, key: order.{rest}, operation: get", Message(b"x"))
            assert got.raw == f"{297 + rest}".encode()
        assert output.probe() == "the bucket is there"

    def test_a_cache(self, bucket: str) -> None:
        from streamer.components.catalog import build_context
        from streamer.config import parse_config
        from streamer.sdk.cache import KeyAlreadyExistsError, KeyNotFoundError

        config = parse_config(f"cache_resources: [{{label: c, nats_kv: {{{bucket}}}}}]\n")
        [component] = config.resources.values()
        cache: Any = build_context(config.resources).build(component)
        ex = Seen().ex
        with pytest.raises(KeyNotFoundError):
            cache.get("c.a", ex)
        cache.add("c.a", b"1", None, ex)
        with pytest.raises(KeyAlreadyExistsError):
            cache.add("c.a", b"2", None, ex)
        cache.set("c.a", b"3", None, ex)
        assert cache.get("c.a", ex) == b"3"
        cache.delete("c.a", ex)
        cache.delete("c.a", ex)
        cache.add("c.a", b"4", None, ex)

    def test_a_bucket_that_is_not_there(self, server: str) -> None:
        fields = f"urls: ['{server}'], bucket: nope, key: a"
        with pytest.raises(NatsError, match="bucket 'nope' not found"):
            built(f"nats_kv: {{{fields}}}").probe()
        [failed] = process(f"{fields}, operation: get", Message(b"x"))
        assert failed.error == "bucket 'nope' not found"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("operation: update, key: a", "'revision' must be set when operation is 'update'"),
        ("operation: get, key: a, revision: '1'", "'revision' cannot be set when operation is"),
        ("operation: get, key: ''", "'key' must be set to a non-empty string"),
    ],
)
def test_operations_that_cannot_work_are_refused(fields: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        process(f"urls: [a], bucket: b, {fields}")
