"""Kafka: what its inputs and outputs share.

Messages are moved by Spark's own connector, and by librdkafka's producer. What is asked beside that
(offsets, groups, rights, whether a broker is there at all) is asked by librdkafka, through
`confluent_kafka`, which is imported when a broker is asked first.
"""
