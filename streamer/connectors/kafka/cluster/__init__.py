"""Clients of a Kafka cluster, and what they find there."""
