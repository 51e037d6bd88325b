"""Texts of the pages of the three inputs, which differ in their fields only."""

from __future__ import annotations

from typing import Final

READING_DESCRIPTION: Final = """\
Spark's workers fetch the messages. The checkpoint has the positions; without one, a stream
starts at the offsets of the consumer group, or at the configured position. The group receives the
safe offsets, so that Kafka's tools show the lag. A group with active members does not accept
them, which is logged once and has no other effect. New partitions and topics are read from their
beginning.

Adds the metadata `kafka_key`, `kafka_topic`, `kafka_partition`, `kafka_offset`, `kafka_lag`,
`kafka_timestamp_ms`, `kafka_timestamp_unix`, `kafka_tombstone_message` and every header. A batch
is one message, unless `batching` makes larger ones of the messages of each partition.

A start checks brokers, TLS, SASL, topics and rights for at most ten seconds. A running stream
waits for unavailable brokers. Messages that are deleted before they are read end the stream with
an error that names them, unless `fail_on_data_loss` is false, and so does a recreated topic. A
checkpoint belongs to one cluster: with another one the stream does not start.

The user needs READ and DESCRIBE on the topics, and READ on the group."""
