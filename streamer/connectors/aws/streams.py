"""Names of streams of Kinesis."""

from __future__ import annotations


def stream_argument(stream: str) -> dict[str, str]:
    """Return the argument of requests that names a stream, by its name or its ARN."""
    return {"StreamARN" if stream.startswith("arn:") else "StreamName": stream}
