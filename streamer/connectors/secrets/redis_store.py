"""Secrets in Redis: `redis://host:6379/0`, each in a key of its name, as in Redpanda Connect."""

from __future__ import annotations

from typing import Any

from streamer.connectors.secrets.store import TIMEOUT_S, SecretError


class RedisStore:
    """Reads secrets with GET."""

    def __init__(self, url: str) -> None:
        """Take the URL; nothing is connected yet.

        Raises:
            ValueError: it is none.
        """
        import redis

        self._client: Any = redis.Redis.from_url(
            url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S
        )

    def get(self, name: str) -> str | None:
        """Return the text of a key; see `SecretStore.get`."""
        import redis

        try:
            raw = self._client.get(name)
        except redis.RedisError as e:
            raise SecretError(f"Redis does not give {name}: {type(e).__name__}") from None
        try:
            return None if raw is None else bytes(raw).decode()
        except UnicodeDecodeError:
            raise SecretError(f"the value of {name} in Redis is not UTF-8") from None
