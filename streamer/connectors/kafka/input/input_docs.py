"""Texts of the pages of the three inputs, which differ in their fields only."""

from __future__ import annotations

from typing import Final

READING_DESCRIPTION: Final = """\
Spark's own source reads the messages. Positions are in the checkpoint; a stream without one begins
where the consumer group is, else where the config says. The group receives the safe offsets,
so that Kafka's tools show the lag; a group that has members of its own takes none, which is logged
once and changes nothing else. Partitions and topics that come later are read from their beginning.

Adds the metadata `kafka_key`, `kafka_topic`, `kafka_partition`, `kafka_offset`, `kafka_lag`,
`kafka_timestamp_ms`, `kafka_timestamp_unix`, `kafka_tombstone_message` and every header. A batch is
one message.

At the start brokers, TLS, SASL, topics and rights are looked at for ten seconds at most. A broker
that goes away later is waited for. Messages that are gone before they were read end the stream with
an error that names them, unless `fail_on_data_loss` is false; so does a topic that is made anew. A
checkpoint is of one cluster: with another one the stream does not start.

The user needs READ and DESCRIBE on the topics, and READ on the group. With TLS and without
`root_cas`, Spark trusts the authorities that its Java has. Java checks every certificate: with
`skip_cert_verify` it trusts those that the brokers show when the stream starts, and a broker with
another one only after a restart. OAUTHBEARER needs a JWT and a local master, and the token is read
once, at the start."""
