"""The driver's part of a micro-batch: it writes what the shards emitted, and commits."""
