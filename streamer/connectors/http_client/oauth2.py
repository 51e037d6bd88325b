"""Tokens of OAuth 2: fetched when they are needed, kept until they expire."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from streamer.connectors.http_client.errors import HttpError
from streamer.sdk.spec import ParsedFields

_RENEW_BEFORE_END_S: Final = 10.0
"""Seconds before its end at which a token is no longer used."""


class TokenSource:
    """Fetches tokens for the field `oauth2`. Threads may share it."""

    def __init__(self, conf: ParsedFields, now: Callable[[], float] = time.monotonic) -> None:
        """Take the field; `now` is a clock that never runs backwards, seconds."""
        self._conf = conf
        self._now = now
        self._lock = threading.Lock()
        self._header = ""
        self._until: float | None = None
        self._in_body = False
        parameters: dict[str, Any] = dict(conf["endpoint_params"] or {})
        self._refresh = list(parameters.get("refresh_token", ()))
        self._refreshes = list(parameters.get("grant_type", ()))[:1] == ["refresh_token"]

    def authorization_header(self, client: Any) -> str:
        """Return the Authorization header, with a token that is valid.

        Args:
            client: an `httpx2.Client` to fetch one with.

        Raises:
            HttpError: there is no token to be had.
        """
        with self._lock:
            if not self._header or (self._until is not None and self._now() >= self._until):
                self._fetch(client)
            return self._header

    def _fetch(self, client: Any) -> None:
        answer = self._request_token(client)
        if answer.status_code >= 400 and not self._in_body:
            # A server takes the client's secret in a header, in the body, or both.
            self._in_body = True
            answer = self._request_token(client)
        if answer.status_code >= 300:
            self._in_body = False
            text = f"oauth2: cannot fetch token: {answer.status_code} {answer.reason_phrase}"
            raise HttpError(f"{text}, Response: {answer.text}")
        try:
            document: dict[str, Any] = answer.json()
            token, kind = document["access_token"], document.get("token_type") or "Bearer"
        except (ValueError, KeyError, TypeError):
            raise HttpError("oauth2: server response missing access_token") from None
        # Servers write bearer in any case.
        self._header = f"{'Bearer' if kind.lower() == 'bearer' else kind} {token}"
        lasts = float(document.get("expires_in") or 0)
        self._until = self._now() + lasts - _RENEW_BEFORE_END_S if lasts > 0 else None
        if document.get("refresh_token"):
            self._refresh = [document["refresh_token"]]

    def _request_token(self, client: Any) -> Any:
        import httpx2

        conf = self._conf
        form: dict[str, Any] = {"grant_type": "client_credentials"}
        if self._refreshes:
            form = {"grant_type": "refresh_token", "refresh_token": self._refresh}
        else:
            form.update(conf["endpoint_params"] or {})
        if conf["scopes"]:
            form["scope"] = " ".join(conf["scopes"])
        auth = None
        if self._in_body:
            form.update(client_id=conf["client_key"], client_secret=conf["client_secret"])
        else:
            auth = httpx2.BasicAuth(conf["client_key"], conf["client_secret"])
        try:
            return client.post(conf["token_url"], data=form, auth=auth)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise HttpError(f"oauth2: cannot fetch token: {error}") from None
