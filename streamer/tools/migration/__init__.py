"""Configs of Benthos and Redpanda Connect, and what they come to here."""
