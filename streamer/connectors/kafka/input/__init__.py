"""Kafka as an input."""
