"""Kafka: what its inputs and outputs share.

Messages are moved by Spark's own connector, and by librdkafka's producer (`confluent_kafka`). What
is asked beside that (offsets, groups, rights, whether a broker is there at all) is asked by
kafka-python. Both are imported when they are needed first.
"""
