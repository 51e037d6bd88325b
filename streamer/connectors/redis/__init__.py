"""Redis: what all components for it have in common.

A component puts `CLIENT_FIELDS` among its fields and `client_problems` into its spec's `check`;
`client(parsed, context)` is its client, which lasts as long as the worker.
"""

from __future__ import annotations

from streamer.connectors.redis.client import (
    CLIENT_FIELDS,
    PACKAGES,
    client_problems,
    own_client,
    shared_client,
)
from streamer.connectors.redis.errors import RedisError, redis_errors

__all__ = [
    "CLIENT_FIELDS",
    "PACKAGES",
    "RedisError",
    "shared_client",
    "client_problems",
    "own_client",
    "redis_errors",
]
