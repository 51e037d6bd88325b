"""Redis: what all components for it have in common.

A component puts `CLIENT_FIELDS` among its fields and `client_problems` into its spec's `check`;
`client(parsed, context)` is its client, which lasts as long as the worker.
"""

from __future__ import annotations

from streamer.redisdb.client import CLIENT_FIELDS, client, client_problems, own_client
from streamer.redisdb.errors import RedisError, redis_errors

__all__ = [
    "CLIENT_FIELDS",
    "RedisError",
    "client",
    "client_problems",
    "own_client",
    "redis_errors",
]
