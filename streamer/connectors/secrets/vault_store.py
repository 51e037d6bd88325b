"""Secrets in HashiCorp Vault or OpenBao, by its HTTP API: the KV engine, version 1 and 2."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from streamer.connectors.secrets.store import (
    TIMEOUT_S,
    SecretError,
    get_document_field,
    split_name,
)
from streamer.connectors.secrets.vault_login import (
    TOKEN,
    VaultPlace,
    login_document,
    read_token,
)
from streamer.core.header_bytes import encode_headers

_ONLY_FIELD: Final = "value"
"""The field that is the secret where a name says no field, and there are several."""

_MAX_ANSWER_BYTES: Final = 4 << 20


class VaultStore:
    """Reads secrets of one mount. It logs in at the first need."""

    def __init__(self, place: VaultPlace, environ: Mapping[str, str]) -> None:
        """Take where secrets are, and the environment; nothing is connected yet."""
        self._place = place
        self._environ = environ
        self._token = ""
        self._version = place.version

    def get(self, name: str) -> str | None:
        """Return a secret's text, or a field of it; see `SecretStore.get`.

        A secret of several fields is its field `value`, or else all of it as JSON.
        """
        parts = split_name(name, self._place.prefix)
        if parts is None:
            return None
        document = self._read(parts.key)
        if document is None:
            return None
        if parts.fields:
            return get_document_field(document, parts.fields)
        if len(document) == 1:
            return get_document_field(document, tuple(document))
        if _ONLY_FIELD in document:
            return get_document_field(document, (_ONLY_FIELD,))
        return json.dumps(document, separators=(",", ":"))

    def _read(self, key: str) -> dict[str, Any] | None:
        """Return the fields of a secret; None when it is not there, or its version is deleted."""
        version = self._version or self._query_version(key)
        folder = "data/" if version == 2 else ""
        answer = self._request("GET", f"{self._place.mount}/{folder}{quote(key)}")
        fields = (answer or {}).get("data")
        if version == 2 and isinstance(fields, dict):
            fields = fields.get("data")
        return fields if isinstance(fields, dict) else None

    def _query_version(self, key: str) -> int:
        """Return the version of the KV engine: whoever may read a secret may ask for it too."""
        path = f"sys/internal/ui/mounts/{self._place.mount}/{quote(key)}"
        data = (self._request("GET", path) or {}).get("data") or {}
        options = data.get("options") or {} if isinstance(data, dict) else {}
        self._version = 2 if options.get("version") == "2" else 1
        return self._version

    def _request(self, method: str, path: str) -> dict[str, Any] | None:
        """Return the answer to a request with the token; None when there is no such thing.

        Raises:
            SecretError: there is no answer, or a refusal.
        """
        is_new = not self._token
        if is_new:
            self._token = self._log_in()
        status, answer = self._send(method, path, None)
        if status == 403 and not is_new:
            # A token ends: the next one may be good.
            self._token = self._log_in()
            status, answer = self._send(method, path, None)
        if status == 404:
            return None
        if status != 200:
            raise SecretError(
                f"Vault at {self._place.url} answers {status} to {path}"
                f"{': the token may not read it' if status == 403 else ''}"
            )
        return answer

    def _log_in(self) -> str:
        place = self._place
        if place.method == TOKEN:
            return read_token(self._environ)
        path = f"auth/{place.auth_mount}/login"
        status, answer = self._send("POST", path, login_document(place, self._environ))
        token = (answer.get("auth") or {}).get("client_token")
        if status != 200 or not isinstance(token, str):
            raise SecretError(f"Vault at {place.url} refuses the login by {path}: {status}")
        return token

    def _send(
        self, method: str, path: str, document: Mapping[str, str] | None
    ) -> tuple[int, dict[str, Any]]:
        """Return the status and the JSON object of an answer; an empty one for all else."""
        import httpx2

        environ = self._environ
        headers = {"X-Vault-Request": "true"}
        if self._token and document is None:
            headers["X-Vault-Token"] = self._token
        if environ.get("VAULT_NAMESPACE"):
            headers["X-Vault-Namespace"] = environ["VAULT_NAMESPACE"]
        url = f"{self._place.url}/v1/{path}"
        try:
            with httpx2.Client(timeout=TIMEOUT_S, verify=self._trust()) as client:
                answer = client.request(
                    method, url, headers=encode_headers(headers.items()), json=document
                )
        except (httpx2.HTTPError, OSError) as e:
            raise SecretError(
                f"Vault at {self._place.url} does not answer: {type(e).__name__}: {e}"
            ) from None
        if len(answer.content) > _MAX_ANSWER_BYTES:
            raise SecretError(f"the answer of Vault at {self._place.url} is too large")
        try:
            body = answer.json()
        except ValueError:
            body = {}
        return answer.status_code, body if isinstance(body, dict) else {}

    def _trust(self) -> Any:
        """Return whom to trust: the authorities of `VAULT_CACERT`, or those of the system."""
        import ssl

        path = self._environ.get("VAULT_CACERT")
        if not path:
            return True
        try:
            return ssl.create_default_context(cafile=path)
        except OSError as e:
            raise SecretError(f"VAULT_CACERT {path} cannot be read: {e.strerror or e}") from None
