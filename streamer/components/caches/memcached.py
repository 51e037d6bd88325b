"""`memcached`: values in memcached servers, which all workers of all machines share.

It "connects to a cluster of memcached services, a prefix can be specified to allow multiple cache
types to share a memcached cluster under different namespaces". A key belongs to the server that its
checksum names, as in Benthos, so that both find what the other has stored.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.core.urls import address_problem
from streamer.sdk.backoff import Backoff, pause_fields, read_pauses
from streamer.sdk.cache import CacheError, KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    Package,
    ParsedFields,
    Spec,
    duration_field,
)

T = TypeVar("T")

ADDRESSES: Final = "addresses"
PREFIX: Final = "prefix"
DEFAULT_TTL: Final = "default_ttl"
RETRIES: Final = "retries"

_DEFAULT_PORT: Final = 11211
_TIMEOUT_S: Final = 5.0


def _addresses_problem(addresses: Sequence[str]) -> str | None:
    places = _split_addresses(addresses)
    if not places:
        return "are empty; expected at least one such as localhost:11211"
    for place in places:
        if not place.rpartition(":")[2].isdigit() or address_problem(place):
            return f"have {place!r}; expected HOST:PORT, such as localhost:11211"
    return None


def _split_addresses(addresses: Sequence[str]) -> list[str]:
    places = [place.strip() for one in addresses for place in one.split(",")]
    return [place if ":" in place else f"{place}:{_DEFAULT_PORT}" for place in places if place]


SPEC: Final = Spec(
    Kind.CACHE,
    "memcached",
    "Keeps values in memcached servers, where all workers of all machines find them.",
    description=(
        "Keys have at most 250 bytes, the prefix among them, and neither spaces nor control "
        "characters. Times are whole seconds."
    ),
    fields=(
        Field(
            ADDRESSES,
            "string",
            "The servers; an item may also name several, separated by commas.",
            access=Access.ADDRESS,
            shape="array",
            check=_addresses_problem,
            examples=(["localhost:11211"],),
        ),
        Field(
            PREFIX,
            "string",
            "Prefix of every key, to separate it from other keys.",
            optional=True,
        ),
        duration_field(
            DEFAULT_TTL,
            "Default lifetime of a value.",
            default="300s",
        ),
        Field(
            RETRIES,
            "object",
            "Retries of a failed command; the pauses grow by half each time.",
            advanced=True,
            children=pause_fields("1s", "5s", "30s"),
        ),
    ),
    examples=(
        Example(
            "Near and far",
            "cache_resources:\n"
            "  - label: leveled\n"
            "    multilevel: [hot, cold]\n"
            "  - label: hot\n"
            "    memory:\n"
            "      default_ttl: 60s\n"
            "  - label: cold\n"
            "    memcached:\n"
            "      addresses: [localhost:11211]\n"
            "      default_ttl: 60s\n",
        ),
    ),
    categories=("Services",),
    limits="keys of 250 bytes at most; times in whole seconds",
    requires=(Package("pymemcache"),),
)


class MemcachedCache:
    """Values in memcached."""

    def __init__(
        self,
        connect: Callable[[], _Servers],
        prefix: str,
        ttl: int,
        backoff: Backoff,
        origin: ComponentRef,
    ) -> None:
        """Take what gives the servers' clients, and the settings; `ttl` in nanoseconds."""
        self._connect = connect
        self._prefix = prefix
        self._ttl = ttl
        self._backoff = backoff
        self._origin = origin

    def get(self, key: str, ex: Execution) -> bytes:
        """Return the value of a key."""
        value: bytes | None = self._request("get", key, lambda server, name: server.get(name), ex)
        if value is None:
            raise KeyNotFoundError
        return value

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value."""
        lasts = self._seconds(ttl)
        self._request("set", key, lambda on, name: on.set(name, value, lasts, noreply=False), ex)

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a key that has none."""
        lasts = self._seconds(ttl)
        stored = self._request(
            "add", key, lambda on, name: on.add(name, value, lasts, noreply=False), ex
        )
        if not stored:
            raise KeyAlreadyExistsError

    def delete(self, key: str, ex: Execution) -> None:
        """Forget a key."""
        self._request("delete", key, lambda on, name: on.delete(name, noreply=False), ex)

    def _seconds(self, ttl: int | None) -> int:
        lasts = self._ttl if ttl is None else ttl
        return max(lasts // SECOND, 1) if lasts > 0 else 0

    def _request(
        self, what: str, key: str, operation: Callable[[Any, bytes], T], ex: Execution
    ) -> T:
        from pymemcache.exceptions import MemcacheError, MemcacheIllegalInputError

        name = f"{self._prefix}{key}".encode(errors="surrogateescape")
        pauses = self._backoff.pauses(ex.elapsed)
        while True:
            try:
                return operation(self._connect().server_of(name), name)
            except MemcacheIllegalInputError as error:
                raise CacheError(f"malformed: {error}") from None
            except (MemcacheError, OSError) as error:
                text = str(error) or type(error).__name__
                pause = next(pauses, None)
                if pause is None:
                    raise CacheError(text) from None
                self._origin.log(ex, "ERROR", f"{what.capitalize()} command failed: {text}")
                ex.sleep(pause)


class _Servers:
    """A client for each server, which threads may share; nothing is connected before it is used."""

    def __init__(self, places: Sequence[str]) -> None:
        from pymemcache.client.base import PooledClient

        addresses = (place.rpartition(":") for place in places)
        self._clients = [
            PooledClient(
                (host.strip("[]"), int(port)), connect_timeout=_TIMEOUT_S, timeout=_TIMEOUT_S
            )
            for host, _, port in addresses
        ]

    def server_of(self, name: bytes) -> Any:
        """Return the client of the server that a key belongs to."""
        return self._clients[zlib.crc32(name) % len(self._clients)]

    def __del__(self) -> None:
        for client in self._clients:
            client.close()


def build(parsed: ParsedFields, context: BuildContext) -> MemcachedCache:
    """Take the settings; the clients are made at the first use."""
    retries, places = parsed[RETRIES], _split_addresses(parsed[ADDRESSES])
    return MemcachedCache(
        lambda: context.worker_resource("memcached", lambda: _Servers(places)),
        parsed[PREFIX] or "",
        parsed[DEFAULT_TTL] or 0,
        read_pauses(retries),
        ComponentRef(context.component),
    )
