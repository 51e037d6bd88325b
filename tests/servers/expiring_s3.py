"""A proxy before a simulated S3, whose credentials expire and are valid again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.servers.forwarding import ForwardingProxy, ProxyAnswer

_EXPIRED = ProxyAnswer(
    400,
    "application/xml",
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>ExpiredToken</Code>'
    b"<Message>The provided token has expired.</Message></Error>",
)


class ExpiringS3(ForwardingProxy):
    """A proxy that answers as S3 does once a session's token has expired.

    Attributes:
        expired_methods: the methods of requests that are refused now.
    """

    expired_methods: frozenset[str] = frozenset()

    def answer_instead(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> ProxyAnswer | None:
        if method not in self.expired_methods:
            return None
        self.refused += 1
        return _EXPIRED

    @contextmanager
    def expire(self, *methods: str) -> Iterator[None]:
        """Refuse requests of these methods until the block ends."""
        self.expired_methods = frozenset(methods)
        try:
            yield
        finally:
            self.expired_methods = frozenset()


@contextmanager
def expiring_s3(target: str) -> Iterator[ExpiringS3]:
    """Run one until the block ends."""
    proxy = ExpiringS3(target)
    try:
        yield proxy
    finally:
        proxy.stop()
