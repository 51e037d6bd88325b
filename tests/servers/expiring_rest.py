"""A proxy before a REST catalog, which gives tokens that expire, and takes no others."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import parse_qs

from tests.servers.forwarding import ForwardingProxy, ProxyAnswer

TOKEN_PATH = "/v1/oauth/tokens"
CLIENT, SECRET = "the-client", "the-client's-secret"


class ExpiringRest(ForwardingProxy):
    """A proxy that is the token server of a catalog, and checks the tokens of requests.

    Attributes:
        lifetime_s: how long a token is valid.
        takes_clients: whether the client's secret is right.
        given: how many tokens it has given.
        expired: how many requests had a token that was valid once.
    """

    lifetime_s = 2.0
    takes_clients = True
    given = 0
    expired = 0

    def answer_instead(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> ProxyAnswer | None:
        if path.startswith(TOKEN_PATH):
            return self._give_token(body)
        name, _, since = headers.get("authorization", "").removeprefix("Bearer ").partition("@")
        if name == "token" and time.monotonic() < float(since) + self.lifetime_s:
            return None
        self.expired += name == "token"
        self.refused += 1
        return _refuse("NotAuthorizedException", "the token has expired")

    def _give_token(self, body: bytes) -> ProxyAnswer:
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if not self.takes_clients or (form["client_id"], form["client_secret"]) != (CLIENT, SECRET):
            self.refused += 1
            answer = {"error": "invalid_client", "error_description": "the secret is another one"}
            return ProxyAnswer(401, "application/json", json.dumps(answer).encode())
        self.given += 1
        token = {
            "access_token": f"token@{time.monotonic()}",
            "token_type": "bearer",
            "expires_in": int(self.lifetime_s),
        }
        return ProxyAnswer(200, "application/json", json.dumps(token).encode())

    @contextmanager
    def refuse_clients(self) -> Iterator[None]:
        """Give no token until the block ends, and take none that was given."""
        self.takes_clients, lifetime_s = False, self.lifetime_s
        self.lifetime_s = 0
        try:
            yield
        finally:
            self.takes_clients, self.lifetime_s = True, lifetime_s


def _refuse(kind: str, text: str) -> ProxyAnswer:
    error = {"error": {"message": text, "type": kind, "code": 401}}
    return ProxyAnswer(401, "application/json", json.dumps(error).encode())


@contextmanager
def expiring_rest(target: str) -> Iterator[ExpiringRest]:
    """Run one until the block ends."""
    proxy = ExpiringRest(target)
    try:
        yield proxy
    finally:
        proxy.stop()
