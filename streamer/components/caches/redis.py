"""`redis`: values in Redis, which all workers of all machines share.

"Use a Redis instance as a cache. The expiration can be set to zero or an empty string in order to
set no expiration." A command that fails is tried again for a while.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from streamer.connectors.redis import (
    CLIENT_FIELDS,
    PACKAGES,
    RedisError,
    client_problems,
    redis_errors,
    shared_client,
)
from streamer.connectors.redis.client import Client
from streamer.core.durations import MILLISECOND
from streamer.core.execution import Execution
from streamer.sdk.backoff import Backoff, pause_fields, read_pauses
from streamer.sdk.cache import CacheError, KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec, duration_field

T = TypeVar("T")

PREFIX: Final = "prefix"
DEFAULT_TTL: Final = "default_ttl"
RETRIES: Final = "retries"

SPEC: Final = Spec(
    Kind.CACHE,
    "redis",
    "Keeps values in Redis, where all workers of all machines find them.",
    fields=(
        *CLIENT_FIELDS,
        Field(
            PREFIX,
            "string",
            "Prefix of every key in Redis, to separate it from other keys.",
            optional=True,
        ),
        duration_field(
            DEFAULT_TTL,
            "Default lifetime of a value; no limit without it.",
            optional=True,
            advanced=True,
        ),
        Field(
            RETRIES,
            "object",
            "Retries of a failed command; the pauses grow by half each time.",
            advanced=True,
            children=pause_fields("500ms", "1s", "5s"),
        ),
    ),
    check=client_problems,
    examples=(
        Example(
            "Drop what was seen by any worker",
            "pipeline:\n"
            "  processors:\n"
            "    - dedupe:\n"
            "        cache: seen\n"
            "        key: ${! this.id }\n"
            "cache_resources:\n"
            "  - label: seen\n"
            "    redis:\n"
            "      url: redis://localhost:6379\n"
            "      prefix: 'seen:'\n"
            "      default_ttl: 24h\n",
        ),
    ),
    categories=("Services",),
    requires=PACKAGES,
)


class RedisCache:
    """Values in Redis."""

    def __init__(
        self,
        connect: Callable[[], Client],
        prefix: str,
        ttl: int | None,
        backoff: Backoff,
        origin: ComponentRef,
    ) -> None:
        """Take what gives the client, and the settings; `ttl` in nanoseconds."""
        self._connect = connect
        self._prefix = prefix
        self._ttl = ttl
        self._backoff = backoff
        self._origin = origin

    def get(self, key: str, ex: Execution) -> bytes:
        """Return the value of a key."""
        stored: Any = self._request("get", lambda client: client.get(self._name(key)), ex)
        if stored is None:
            raise KeyNotFoundError
        value: bytes = stored
        return value

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value."""
        name, lasts = self._name(key), self._milliseconds(ttl)
        self._request("set", lambda client: client.set(name, value, px=lasts), ex)

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a key that has none."""
        name, lasts = self._name(key), self._milliseconds(ttl)
        stored = self._request("add", lambda client: client.set(name, value, px=lasts, nx=True), ex)
        if not stored:
            raise KeyAlreadyExistsError

    def delete(self, key: str, ex: Execution) -> None:
        """Forget a key."""
        self._request("delete", lambda client: client.delete(self._name(key)), ex)

    def _name(self, key: str) -> bytes:
        return f"{self._prefix}{key}".encode(errors="surrogateescape")

    def _milliseconds(self, ttl: int | None) -> int | None:
        lasts = self._ttl if ttl is None else ttl
        return max(lasts // MILLISECOND, 1) if lasts and lasts > 0 else None

    def _request(self, what: str, operation: Callable[[Client], T], ex: Execution) -> T:
        pauses = self._backoff.pauses(ex.elapsed)
        while True:
            try:
                with redis_errors():
                    return operation(self._connect())
            except RedisError as error:
                pause = next(pauses, None)
                if pause is None:
                    raise CacheError(str(error)) from None
                self._origin.log(ex, "ERROR", f"{what.capitalize()} command failed: {error}")
                ex.sleep(pause)


def build(parsed: ParsedFields, context: BuildContext) -> RedisCache:
    """Take the settings; the client is made at the first use."""
    retries = parsed[RETRIES]
    return RedisCache(
        lambda: shared_client(parsed, context),
        parsed[PREFIX] or "",
        parsed[DEFAULT_TTL],
        read_pauses(retries),
        ComponentRef(context.component),
    )
