"""The fields of every component that talks to Redis, and the client that they describe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import SplitResult, unquote

from streamer.connectors.tls import TLS, TLS_FIELD, tls_problems
from streamer.core.urls import split_url
from streamer.sdk.spec import Access, BuildContext, Field, Package, ParsedFields

Client = Any
"""A `redis.Redis`, or a `redis.cluster.RedisCluster`, which has the same methods."""

URL: Final = "url"
KIND: Final = "kind"
MASTER: Final = "master"
CLIENT_NAME: Final = "client_name"

SIMPLE: Final = "simple"
CLUSTER: Final = "cluster"
FAILOVER: Final = "failover"

_TIMEOUT_S: Final = 5.0
_DEFAULT_PORT: Final = 6379
_SCHEMES: Final = ("redis", "rediss", "tcp")


def _url_problem(text: str) -> str | None:
    try:
        urls = _parse_urls(text)
    except ValueError as e:
        return f"has {e}"
    for url in urls:
        if url.scheme not in _SCHEMES:
            return f"has the scheme {url.scheme!r}; expected a URL such as redis://localhost:6379"
        database = url.path.strip("/")
        if database and not (database.isascii() and database.isdigit()):
            return f"has the path {url.path!r}; expected the number of a database, such as /1"
    return None


PACKAGES: Final = (Package("redis"),)

CLIENT_FIELDS: Final = (
    Field(
        URL,
        "string",
        "URL of Redis, optionally with the number of a database. With `cluster` and "
        "`failover` there may be several URLs, separated by commas.",
        access=Access.ADDRESS,
        check=_url_problem,
        secret=True,
        examples=("redis://localhost:6379", "redis://:${PASSWORD}@localhost:6379/1"),
    ),
    Field(
        KIND,
        "string",
        "`simple` for one server, `cluster`, or `failover` with the URLs of sentinels.",
        default=SIMPLE,
        options=(SIMPLE, CLUSTER, FAILOVER),
        advanced=True,
    ),
    Field(
        MASTER,
        "string",
        "The name by which sentinels know the master, with `failover`.",
        default="",
        advanced=True,
        examples=("mymaster",),
    ),
    Field(
        CLIENT_NAME,
        "string",
        "The name of connections, as Redis shows it.",
        default="redpanda-connect",
        advanced=True,
    ),
    TLS_FIELD,
)


def client_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    yield from tls_problems(parsed)
    if parsed[KIND] == FAILOVER and not parsed[MASTER]:
        yield MASTER, "is not set; sentinels must be asked for a master by its name"
    certs = parsed[TLS]["client_certs"]
    if len(certs) > 1 or any(cert["cert"] for cert in certs):
        yield f"{TLS}.client_certs", "takes one certificate here, by cert_file and key_file"


def shared_client(parsed: ParsedFields, context: BuildContext) -> Client:
    """Return the client of a component, which threads may share.

    Call it when Redis is asked first, not when a component is built: the client of a cluster
    connects at once.
    """
    return context.worker_resource("redis", lambda: own_client(parsed))


def own_client(parsed: ParsedFields, timeout_s: float = _TIMEOUT_S) -> Client:
    """Return a client of its own.

    Args:
        parsed: the fields.
        timeout_s: seconds to wait for an answer.
    """
    import redis
    from redis import cluster, sentinel
    from redis.backoff import ExponentialBackoff
    from redis.retry import Retry

    from streamer.connectors.redis.reply_bounds import BoundedParser, BoundedPool

    urls = _parse_urls(parsed[URL])
    # As in Redpanda Connect, the last URL says who asks, and for which database.
    last = urls[-1]
    places = [(url.hostname or "localhost", url.port or _DEFAULT_PORT) for url in urls]
    options: dict[str, Any] = {
        "username": unquote(last.username) if last.username else None,
        "password": unquote(last.password) if last.password else None,
        "client_name": parsed[CLIENT_NAME] or None,
        "socket_timeout": timeout_s,
        "protocol": 2,
        # As Go's client: what takes longer is up to the component, which knows what may wait.
        # One that says nothing is not asked three times more: that would take minutes.
        "retry": Retry(
            ExponentialBackoff(cap=0.512, base=0.008), 3, supported_errors=(redis.ConnectionError,)
        ),
        **_tls_options(parsed[TLS], last),
    }
    database = int(last.path.strip("/") or 0)
    if parsed[KIND] == CLUSTER:
        node: Any = cluster.ClusterNode
        # Only by a URL does the library take a class of pools, and by its scheme it encrypts.
        is_encrypted = options.pop("ssl", False)
        (host, port), *others = places
        return cluster.RedisCluster(
            url=f"{'rediss' if is_encrypted else 'redis'}://{_bracketed(host)}:{port}",
            startup_nodes=[node(*place) for place in others],
            connection_pool_class=BoundedPool,
            **options,
        )
    if parsed[KIND] == FAILOVER:
        sentinel_settings = {"socket_timeout": timeout_s, "protocol": 2}
        watchers: Any = sentinel.Sentinel(places, sentinel_kwargs=sentinel_settings)  # type: ignore[no-untyped-call]
        for one in watchers.sentinels:
            one.connection_pool.connection_kwargs["parser_class"] = BoundedParser
        redis_client = watchers.master_for(parsed[MASTER], db=database, **options)
    else:
        host, port = places[0]
        redis_client = redis.Redis(host=host, port=port, db=database, **options)
    redis_client.connection_pool.connection_kwargs["parser_class"] = BoundedParser
    # What a command answers is taken as it is, as with Go's client.
    redis_client.response_callbacks.clear()
    return redis_client


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _parse_urls(text: str) -> list[SplitResult]:
    return [split_url(url.strip()) for url in text.split(",")]


def _tls_options(tls: ParsedFields, url: SplitResult) -> dict[str, Any]:
    if not tls["enabled"] and url.scheme != "rediss":
        return {}
    options: dict[str, Any] = {"ssl": True}
    if tls["root_cas"]:
        options["ssl_ca_data"] = tls["root_cas"]
    if tls["root_cas_file"]:
        options["ssl_ca_certs"] = tls.permissions.file(tls["root_cas_file"])
    for cert in tls["client_certs"]:
        options |= {
            "ssl_certfile": cert.permissions.file(cert["cert_file"]),
            "ssl_keyfile": cert.permissions.file(cert["key_file"]),
        }
        options["ssl_password"] = cert["password"] or None
    if tls["skip_cert_verify"]:
        options |= {"ssl_cert_reqs": "none", "ssl_check_hostname": False}
    return options
