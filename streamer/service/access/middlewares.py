"""Middlewares of all requests: the server's name, origins, authentication."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import orjson
from aiohttp import hdrs, web

from streamer.connectors.http_server.cors import with_cors
from streamer.service.access.auth import Authenticator, LoginThrottle
from streamer.service.access.origin_check import refusal_reason, server_names

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "::1", "localhost"})
AUTHOR_KEY: Final = web.RequestKey("author", str)
"""Where a request carries the name of who asks; empty when nobody has to say."""

PING_PATH: Final = "/ping"
"""Where a program says that it is alive, to everybody: it tells nothing else."""

READY_PATH: Final = "/ready"
"""Where a program says whether messages flow: to everybody; why they do not, to who may ask."""

_COMPONENT_ROUTE: Final = "/{rest}"
_METRIC_PATHS: Final = ("/metrics", "/stats", "/version")
_RETRY_AFTER_S: Final = "5"

_FORM_CONTENT_TYPES: Final = frozenset(
    {"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"}
)


def make_middlewares(
    http: Mapping[str, Any], host: str | None, public: frozenset[str] = frozenset()
) -> list[Any]:
    """Return the middlewares of a server.

    Args:
        http: the `http` section.
        host: the address that is listened on; None for all.
        public: paths of pages without data, for which nobody has to say who they are.
    """
    middlewares = []
    access = Authenticator(http)
    if host in LOOPBACK_HOSTS or not access.is_required:
        # With credentials a page that was given this machine's address has none to send.
        own_names = server_names(host or "") | {
            name.lower().rstrip(".") for name in http["allowed_hosts"]
        }
        # Senders of messages and probes ask by whatever name an orchestrator has given.
        should_check = None if host in LOOPBACK_HOSTS else _make_name_check_filter(http, public)
        middlewares.append(_make_origin_check(own_names, should_check))
    if http["cors"]["enabled"]:
        middlewares.append(_make_cors(frozenset(http["cors"]["allowed_origins"])))
    if access.is_required:
        roots = "", http["root_path"].rstrip("/")
        pings, probes = ({root + path for root in roots} for path in (PING_PATH, READY_PATH))
        middlewares.append(_make_authentication(access, public | pings, frozenset(probes)))
    return middlewares


async def forbid_sniffing(request: web.Request, response: web.StreamResponse) -> None:
    """Keep browsers from taking an answer for a page; for `on_response_prepare`.

    Whoever makes the answer, and however it ends: it may hold what anybody sent. What streams
    answer themselves of any other type stays as they make it.
    """
    if response.content_type in ("application/json", "text/plain"):
        response.headers.setdefault("X-Content-Type-Options", "nosniff")


def cross_site_refusal(request: web.BaseRequest, http: Mapping[str, Any]) -> tuple[int, str] | None:
    """Return status and reason where a page of another site may have sent a change of something.

    Browsers say which page a request is from, and send bodies of forms without asking; programs
    such as curl say nothing of pages, and may send any body.

    Args:
        request: the request.
        http: the `http` section; pages of the origins that it allows may ask.
    """
    origin = request.headers.get(hdrs.ORIGIN)
    cors = http["cors"]
    if cors["enabled"] and origin is not None and {"*", origin} & {*cors["allowed_origins"]}:
        return None
    host = request.headers.get(hdrs.HOST, "")
    bare = host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host
    reason = refusal_reason(request.headers, frozenset({bare.strip("[]").lower()}))
    if reason is not None:
        return 403, reason
    from_page = origin is not None or "Sec-Fetch-Site" in request.headers
    if from_page and request.body_exists and request.content_type in _FORM_CONTENT_TYPES:
        return 415, "expected the content type application/json or application/yaml"
    return None


def _make_name_check_filter(
    http: Mapping[str, Any], pages: frozenset[str]
) -> Callable[[web.Request], bool]:
    """Return what tells whether the name matters that a request asks by.

    Probes, metrics and, unless names are given, what components serve are asked for by whatever
    name an orchestrator has made.
    """
    roots = "", http["root_path"].rstrip("/")
    free = {root + path for root in roots for path in (PING_PATH, READY_PATH, *_METRIC_PATHS)}
    free |= set() if http["allowed_hosts"] else {_COMPONENT_ROUTE}

    def is_of_api(request: web.Request) -> bool:
        resource = request.match_info.route.resource
        path = "" if resource is None else resource.canonical
        return path in pages or path not in free

    return is_of_api


def _make_origin_check(
    allowed: frozenset[str], should_check: Callable[[web.Request], bool] | None
) -> Any:
    """Refuse names that this machine does not have: see `guard`. Origins are for CORS to judge.

    Args:
        allowed: the names.
        should_check: tells of which requests they matter; None for all.
    """

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if should_check is not None and not should_check(request):
            return await handler(request)
        reason = refusal_reason({hdrs.HOST: _requested_host(request)}, allowed)
        if reason is None:
            return await handler(request)
        headers = {hdrs.CONTENT_TYPE: "application/json"}
        return web.Response(body=orjson.dumps({"error": reason}), status=403, headers=headers)

    return guard


def _requested_host(request: web.Request) -> str:
    """Return host and port that a request asks by: that of a whole URL wins (RFC 9112, 3.2.2)."""
    target = request.raw_path
    if target.startswith("/"):
        return request.headers.get(hdrs.HOST, "")
    return target.partition("://")[2].partition("/")[0]


def _make_cors(origins: frozenset[str]) -> Any:
    @web.middleware
    async def cors(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await with_cors(request, origins, lambda: handler(request))

    return cors


def _make_authentication(
    access: Authenticator, public: frozenset[str], probes: frozenset[str]
) -> Any:
    """Let in who may ask.

    Args:
        access: decides who may.
        public: paths that everybody may ask for.
        probes: paths of which everybody may know the status of the answer; orchestrators that look
            whether a program is ready have no credentials.
    """
    throttle = LoginThrottle()

    @web.middleware
    async def authenticate(request: web.Request, handler: Handler) -> web.StreamResponse:
        # The path of the route that was found: what is written otherwise may lead elsewhere.
        resource = request.match_info.route.resource
        path = "" if resource is None else resource.canonical
        if path in public:
            return await handler(request)
        header = request.headers.get(hdrs.AUTHORIZATION, "")
        if path in probes and not header:
            status = (await handler(request)).status
            return web.Response(status=status, text="OK" if status == 200 else "not ready\n")
        author = access.recent_author(header)
        if author is None:
            address = request.remote or ""
            pause = throttle.reserve_attempt(address) if header else 0.0
            if pause is None:
                refused = {hdrs.RETRY_AFTER: _RETRY_AFTER_S}
                return web.Response(status=429, text="Too many wrong attempts\n", headers=refused)
            await asyncio.sleep(pause)
            # A hash takes long on purpose: other requests go on meanwhile.
            author = await asyncio.to_thread(access.authenticate, header)
            if author is None and header:
                throttle.record_failure(address)
        if author is not None:
            request[AUTHOR_KEY] = author
            return await handler(request)
        is_console = "X-Requested-With" in request.headers
        challenge = access.console_challenge if is_console else access.challenge
        headers = {hdrs.WWW_AUTHENTICATE: challenge}
        return web.Response(status=401, text="Unauthorized\n", headers=headers)

    return authenticate
