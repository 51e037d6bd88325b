"""streamer: the configurations of Benthos / Redpanda Connect, run on Apache Spark."""

__version__ = "0.2.0"
