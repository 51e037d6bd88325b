"""The Spark session of the suite, and streams that run in it."""

from tests.spark.conftest import run_stream, session

__all__ = ["run_stream", "session"]
