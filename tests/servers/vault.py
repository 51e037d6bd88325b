"""A stand-in for HashiCorp Vault in this process: its HTTP API of the KV engine and of two logins.

It answers as Vault's documentation of the API says; it is not Vault's own code, which is a Go
program of half a gigabyte.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Vault:
    """The contents of a Vault.

    Attributes:
        url: its URL.
        mounts: the version of each KV engine, by its mount.
        secrets: the fields of each secret, by mount and name; None for one that was deleted.
        tokens: the tokens that are good.
        logins: the bodies of logins that are good, by the mount of the method.
        requests: method and path of each request.
    """

    url: str = ""
    mounts: dict[str, int] = field(default_factory=lambda: {"secret": 2, "old": 1})
    secrets: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    logins: dict[str, dict[str, str]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def answer(self, method: str, path: str, token: str, body: Any) -> tuple[int, Any]:
        """Return the status and the document of an answer."""
        self.requests.append(f"{method} {path}")
        parts = path.split("/")
        if parts[0] == "auth" and parts[-1] == "login" and method == "POST":
            return self._log_in("/".join(parts[1:-1]), body)
        if token not in self.tokens:
            return 403, {"errors": ["permission denied"]}
        if path.startswith("sys/internal/ui/mounts/"):
            version = self.mounts.get(parts[4])
            if version is None:
                return 403, {"errors": ["preflight capability check returned 403"]}
            options = {"version": "2"} if version == 2 else None
            return 200, {"data": {"type": "kv", "path": f"{parts[4]}/", "options": options}}
        return self._read(parts)

    def _log_in(self, mount: str, body: Any) -> tuple[int, Any]:
        if self.logins.get(mount) != body:
            return 400, {"errors": ["invalid role or secret ID"]}
        token = f"hvs.{mount}-{len(self.tokens)}"
        self.tokens.add(token)
        return 200, {"auth": {"client_token": token, "lease_duration": 60, "renewable": True}}

    def _read(self, parts: list[str]) -> tuple[int, Any]:
        mount, version = parts[0], self.mounts.get(parts[0])
        if version == 2 and parts[1:2] != ["data"]:
            return 404, {"errors": [], "warnings": ["Invalid path for a versioned K/V"]}
        key = "/".join([mount, *parts[2 if version == 2 else 1 :]])
        if key not in self.secrets:
            return 404, {"errors": []}
        fields = self.secrets[key]
        if version == 1:
            return 200, {"data": fields, "lease_duration": 2_764_800}
        document = {"data": {"data": fields, "metadata": {"version": 1, "destroyed": False}}}
        return (404 if fields is None else 200), document


@contextmanager
def vault_server() -> Iterator[Vault]:
    """Run one on a free port."""
    vault = Vault()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._respond(None)

        def do_POST(self) -> None:
            self._respond(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _respond(self, body: Any) -> None:
            token = self.headers.get("X-Vault-Token", "")
            status, document = vault.answer(
                self.command, self.path.removeprefix("/v1/"), token, body
            )
            text = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    vault.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield vault
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
