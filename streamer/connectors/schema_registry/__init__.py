"""Schemas of a Confluent schema registry, and messages in the wire format that goes with it."""
