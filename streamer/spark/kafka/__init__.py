"""Kafka sources of Spark, and what the driver does for them."""
