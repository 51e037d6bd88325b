"""A simulated AWS in this process: moto, asked over HTTP. It is not AWS's own code."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.servers import lasting_port

REGION = "eu-west-1"
KEY, SECRET = "someone", "aws-secret-of-the-test"


class Aws:
    """A simulated AWS.

    Attributes:
        url: its endpoint.
        fields: those of a component that uses it, in YAML's flow style.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.fields = (
            f"region: {REGION}, endpoint: '{self.url}', "
            f"credentials: {{id: {KEY}, secret: {SECRET}}}"
        )

    def client(self, service: str) -> Any:
        """Return a client of the suite's own."""
        import boto3

        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
        )


@contextmanager
def aws_server(port: int | None = None) -> Iterator[Aws]:
    """Run one; what it keeps stays in this process until it is reset."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    port = port or lasting_port()
    server = ThreadedMotoServer("127.0.0.1", port, verbose=False)
    server.start()
    try:
        yield Aws(port)
    finally:
        server.stop()
