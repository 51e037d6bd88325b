"""Stages as Spark's tasks run them."""
