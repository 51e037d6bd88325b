"""Tokens for the files of a table in Google Cloud Storage, from the credentials of a config.

PyArrow, which reads and writes the files, takes a token and no credentials. A token is for an hour,
so files are opened anew before it ends.
"""

from __future__ import annotations

from typing import Any, Final

from streamer.connectors.google.credentials import CREDENTIALS_JSON, TokenSource
from streamer.core.permissions import Permissions
from streamer.sdk.spec import Package, ParsedFields

CREDENTIALS_TYPE: Final = "credentials_type"
CREDENTIALS_FILE: Final = "credentials_file"
CREDENTIALS_TYPES: Final = ("service_account", "authorized_user")
"""Types that a config may have: others name files and programs of the machine."""

_MILLISECONDS: Final = 1_000


def _has_credentials(storage: Any) -> bool:
    gcs = storage and storage.get("gcp_cloud_storage")
    return bool(gcs and (gcs.get(CREDENTIALS_JSON) or gcs.get(CREDENTIALS_FILE)))


CATALOG_PACKAGES: Final = (
    Package("pyiceberg"),
    Package(
        "google.auth",
        "storage",
        is_needed_by=_has_credentials,
        setting="`gcp_cloud_storage` has credentials",
    ),
)
"""The packages of components that read or write tables of Iceberg."""


class GcsToken:
    """The token of a store, which is made when it is needed; workers make their own."""

    def __init__(self, parsed: ParsedFields, permissions: Permissions) -> None:
        """Take the fields of the store, and which files may be read."""
        self._parsed, self._permissions = parsed, permissions
        self._source: TokenSource | None = None
        self._token = ""

    def __getstate__(self) -> dict[str, Any]:
        """Return what other processes need: credentials, and no token."""
        return {**self.__dict__, "_source": None, "_token": ""}

    @property
    def is_stale(self) -> bool:
        """Whether files that are open have a token that ends soon, or has ended."""
        return self._source is not None and self._source.read_token()[0] != self._token

    def read_properties(self) -> dict[str, str]:
        """Return the properties of a catalog, as PyIceberg names them.

        Raises:
            HttpError: there is no token for the credentials.
        """
        if self._source is None:
            self._source = TokenSource(self._parsed, self._read_file())
        self._token, expiry = self._source.read_token()
        properties = {"gcs.oauth2.token": self._token}
        if expiry is not None:
            milliseconds = int(expiry.timestamp() * _MILLISECONDS)
            properties["gcs.oauth2.token-expires-at"] = str(milliseconds)
        return properties

    def _read_file(self) -> str:
        path = self._parsed[CREDENTIALS_FILE]
        if not path:
            return ""
        with self._permissions.open(path) as file:
            text: str = file.read()
        return text


def read_gcs_token(storage: ParsedFields, permissions: Permissions) -> GcsToken | None:
    """Return the token of a store; None where the config has no credentials for one."""
    if not _has_credentials(storage):
        return None
    return GcsToken(storage["gcp_cloud_storage"], permissions)
