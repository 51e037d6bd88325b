from __future__ import annotations

from pathlib import Path

import pytest

from streamer.config.partial import read_partial_config
from streamer.tools.migration.differences import find_differences

SILENT = (
    "http: {address: 0.0.0.0:4195}\nspark: {checkpoint: state, trigger_interval: 1s}\n"
    "input: {generate: {mapping: root = 1}}\n"
)


def subjects(directory: Path, text: str) -> dict[str, int]:
    file = directory / "config.yaml"
    file.write_text(text)
    config = read_partial_config(str(file), {})
    return {one.subject: one.line for one in find_differences(config)}


class TestFindDifferences:
    def test_none_where_all_is_set(self, tmp_path: Path) -> None:
        assert subjects(tmp_path, SILENT) == {}

    @pytest.mark.parametrize(
        ("text", "subject", "line"),
        [
            ("http: {root_path: /a}\n" + SILENT.partition("\n")[2], "http_address", 1),
            (SILENT.replace("checkpoint: state, ", ""), "checkpoint", 0),
            (SILENT.replace(", trigger_interval: 1s", ""), "micro_batches", 0),
            (SILENT + "pipeline:\n  threads: 4\n", "threads", 5),
            (SILENT + "pipeline:\n  processors: [{noop: {}}]\n", "retries", 5),
            (SILENT + "buffer: {system_window: {size: 1m}}\n", "windows", 4),
            (SILENT + "buffer: {memory: {}}\n", "memory_buffer", 4),
            (SILENT + "buffer: {sqlite: {path: a}}\n", "sqlite_buffer", 4),
            (
                SILENT + "output:\n  switch: {cases: [{output: {drop: {}}}]}\n",
                "switch_order",
                5,
            ),
            (
                SILENT + "output:\n  amqp_0_9: {urls: ['amqp://a'], exchange: b}\n",
                "amqp_message_id",
                5,
            ),
            (SILENT + "cache_resources:\n  - {label: a, lru: {}}\n", "memory_cache", 5),
            (
                SILENT + "rate_limit_resources:\n  - {label: a, local: {}}\n",
                "local_rate_limit",
                5,
            ),
        ],
    )
    def test_each(self, tmp_path: Path, text: str, subject: str, line: int) -> None:
        assert subjects(tmp_path, text) == {subject: line}

    @pytest.mark.parametrize(
        ("text", "subject"),
        [
            ("kafka_franz: {seed_brokers: [a], topics: [b]}", "kafka_group"),
            ("file: {paths: [a]}", "file_positions"),
            ("http_server: {}", "spool"),
            ("broker: {inputs: [{stdin: {}}]}", "spool"),
        ],
    )
    def test_inputs(self, tmp_path: Path, text: str, subject: str) -> None:
        given = SILENT.replace("generate: {mapping: root = 1}", text)
        assert list(subjects(tmp_path, given)) == [subject]

    @pytest.mark.parametrize(
        ("text", "subject"),
        [
            ("amqp_0_9: {urls: ['amqp://a'], queue: b}", "amqp_acknowledgement"),
            ("amqp_1: {urls: ['amqp://a'], source_address: b}", "amqp_1_acknowledgement"),
            ("cassandra: {addresses: ['a:1'], query: b}", "cassandra_pages"),
            ("gcp_pubsub: {project: a, subscription: b}", "pubsub_acknowledgement"),
            ("aws_dynamodb_cdc: {tables: [a]}", "dynamodb_positions"),
            ("sftp: {address: a, credentials: {password: b}, paths: [/c]}", "sftp_positions"),
        ],
    )
    def test_inputs_with_positions_and_acknowledgements_of_their_own(
        self, tmp_path: Path, text: str, subject: str
    ) -> None:
        given = SILENT.replace("generate: {mapping: root = 1}", text)
        assert set(subjects(tmp_path, given)) == {"spool", subject}

    def test_a_period_ends_with_the_micro_batch(self, tmp_path: Path) -> None:
        output = "http_client: {url: http://a, batching: {%s}}"
        for given, found in (("period: 1s", ["batching_period"]), ("count: 9", [])):
            text = f"{SILENT}output:\n  {output % given}\n"
            assert list(subjects(tmp_path, text)) == found

    @pytest.mark.parametrize("name", ["kafka_franz", "kafka"])
    def test_a_period_of_a_kafka_input_is_a_distance_of_micro_batches(
        self, tmp_path: Path, name: str
    ) -> None:
        brokers = "addresses" if name == "kafka" else "seed_brokers"
        kafka = f"{name}: {{{brokers}: [a], topics: [b], batching: {{%s}}}}"
        for given, found in (("period: 1s", ["input_batching_period"]), ("count: 9", [])):
            text = SILENT.replace("generate: {mapping: root = 1}", kafka % given)
            assert [*subjects(tmp_path, text)][1:] == found

    def test_one_for_each_subject(self, tmp_path: Path) -> None:
        given = "broker: {inputs: [{file: {paths: [a]}}, {csv: {paths: [b]}}]}"
        text = SILENT.replace("generate: {mapping: root = 1}", given)
        assert list(subjects(tmp_path, text)) == ["file_positions"]

    def test_missing_components_hide_no_others(self, tmp_path: Path) -> None:
        text = SILENT.replace("generate: {mapping: root = 1}", "zmq4: {urls: [a]}")
        text += "output: {switch: {cases: [{output: {pusher: {}}}, {output: {drop: {}}}]}}\n"
        assert list(subjects(tmp_path, text)) == ["switch_order"]
