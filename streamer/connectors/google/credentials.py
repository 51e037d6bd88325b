"""Credentials of Google Cloud, and the tokens that requests carry."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from streamer.connectors.http_client.auth import AUTHORIZATION
from streamer.connectors.http_client.errors import HttpError
from streamer.core.json.parse import parse_json
from streamer.sdk.spec import Field, Package, ParsedFields

CREDENTIALS_JSON: Final = "credentials_json"

PACKAGES: Final = (Package("google.auth"),)

_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
# Others may name files and programs of the machine.
_KINDS: Final = ("service_account", "authorized_user")
_TIMEOUT_S: Final = 10.0


def _credentials_problem(text: str) -> str | None:
    expected = f"expected the JSON of credentials whose type is {' or '.join(_KINDS)}"
    if not text or "${" in text:
        return None
    try:
        kind = parse_json(text.encode())["type"]
    except (ValueError, TypeError, KeyError):
        return f"is no JSON object with a type; {expected}"
    return None if kind in _KINDS else f"is of the type {str(kind)[:40]!r}; {expected}"


CREDENTIALS_FIELD: Final = Field(
    CREDENTIALS_JSON,
    "string",
    "The JSON of a service account's key. Without it, credentials are those of the machine: "
    "`GOOGLE_APPLICATION_CREDENTIALS`, gcloud's, or those of the virtual machine.",
    default="",
    secret=True,
    check=_credentials_problem,
    examples=("${GOOGLE_CREDENTIALS}",),
)


class TokenSource:
    """Tokens for requests, which are fetched anew before they expire. Threads may share it."""

    def __init__(self, parsed: ParsedFields, text: str = "") -> None:
        """Take the fields of the component.

        Args:
            parsed: the fields.
            text: the JSON of credentials from elsewhere; empty for that of the fields.
        """
        self._parsed = parsed
        self._text = text
        self._lock = threading.Lock()
        self._credentials: Any = None
        self._project = ""

    def header(self) -> tuple[str, str]:
        """Return the header of a request.

        Raises:
            HttpError: there are no credentials, or there is no token for them.
        """
        from google.auth.exceptions import GoogleAuthError

        with self._lock:
            try:
                if self._credentials is None:
                    self._credentials = self._load()
                if not self._credentials.valid:
                    self._credentials.refresh(_request)
            except (GoogleAuthError, ValueError, OSError) as error:
                # Its words may have the whole answer of a server behind the first part.
                words = str(error.args[0] if error.args else error)[:300]
                raise HttpError(f"there is no token of Google: {words}") from None
            return AUTHORIZATION, f"Bearer {self._credentials.token}"

    def read_token(self) -> tuple[str, datetime | None]:
        """Return the token of requests, and when it ends where that is known.

        Raises:
            HttpError: there are no credentials, or there is no token for them.
        """
        token = self.header()[1].partition(" ")[2]
        expiry = self._credentials.expiry
        return token, None if expiry is None else expiry.replace(tzinfo=UTC)

    def project(self) -> str:
        """Return the project of the credentials; empty where they name none.

        Raises:
            HttpError: there are no credentials.
        """
        self.header()
        return self._project

    def _load(self) -> Any:
        import google.auth
        from google.oauth2 import credentials, service_account

        text = self._text or self._parsed[CREDENTIALS_JSON]
        if text:
            info = parse_json(text.encode())
            self._project = str(info.get("project_id") or "")
            if info.get("type") == _KINDS[0]:
                make = service_account.Credentials.from_service_account_info
                return make(info, scopes=_SCOPES)
            return credentials.Credentials.from_authorized_user_info(info, scopes=_SCOPES)
        if not self._parsed.permissions.local:
            raise ValueError("credentials_json is empty, and this config has none of the machine's")
        made, project = google.auth.default(scopes=_SCOPES, request=_request)
        self._project = project or ""
        return made


class _Response:
    """A response as google-auth wants it."""

    def __init__(self, status: int, headers: Mapping[str, str], data: bytes) -> None:
        self.status, self.headers, self.data = status, headers, data


def _request(
    url: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
    **_: Any,
) -> _Response:
    """Send a request of google-auth, in the place of its own client.

    Raises:
        TransportError: there is no answer.
    """
    import httpx2
    from google.auth.exceptions import TransportError

    try:
        answer = httpx2.request(
            method, url, content=body, headers=headers, timeout=timeout or _TIMEOUT_S
        )
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise TransportError(str(error) or type(error).__name__) from None
    return _Response(answer.status_code, answer.headers, answer.content)
