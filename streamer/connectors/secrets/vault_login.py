"""Settings of a Vault or OpenBao, and the token by which it is asked.

The names of variables are those of Vault's own command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qsl

from streamer.connectors.secrets.store import SecretError

TOKEN: Final = "token"
APPROLE: Final = "approle"
KUBERNETES: Final = "kubernetes"
_METHODS: Final = (TOKEN, APPROLE, KUBERNETES)
_PARAMETERS: Final = ("auth", "auth_mount", "role", "kv")
_SERVICE_TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"


@dataclass(frozen=True, slots=True)
class VaultPlace:
    """The place of secrets in a Vault, and the method of login.

    Attributes:
        url: the server's URL, without a path.
        mount: the mount of the KV engine.
        prefix: stands before the names of secrets.
        method: `token`, `approle` or `kubernetes`.
        auth_mount: where the method is mounted.
        role: of the method `kubernetes`.
        version: of the KV engine, 1 or 2; 0 for what the server says.
    """

    url: str
    mount: str
    prefix: str
    method: str
    auth_mount: str
    role: str
    version: int


def parse_place(url: SplitResult, environ: Mapping[str, str]) -> VaultPlace:
    """Return the settings of a URN such as `vault://host:8200/secret/prefix/?auth=approle`.

    Args:
        url: the URN: `vault` is HTTPS, `vault+http` is not encrypted. Without a host, it is that
            of `VAULT_ADDR`.
        environ: the environment.

    Raises:
        ValueError: it is none; the text says why.
    """
    scheme = "http" if url.scheme == "vault+http" else "https"
    address = f"{scheme}://{url.netloc}" if url.netloc else environ.get("VAULT_ADDR", "")
    if not address:
        raise ValueError("it has no host, and VAULT_ADDR is not set")
    if "@" in url.netloc:
        raise ValueError("it has credentials; set VAULT_TOKEN, or ?auth=approle")
    mount, _, prefix = url.path.strip("/").partition("/")
    if not mount:
        raise ValueError("it has no mount; expected vault://HOST/MOUNT, such as …/secret")
    if prefix and url.path.endswith("/"):
        prefix += "/"
    given = dict(parse_qsl(url.query, keep_blank_values=True))
    if unknown := given.keys() - set(_PARAMETERS):
        raise ValueError(
            f"it has the parameter {min(unknown)}; expected one of {', '.join(_PARAMETERS)}"
        )
    method = given.get("auth", TOKEN)
    if method not in _METHODS:
        raise ValueError(f"auth is {method!r}; expected one of {', '.join(_METHODS)}")
    if method == KUBERNETES and not given.get("role"):
        raise ValueError("auth=kubernetes needs a role: &role=NAME")
    version = given.get("kv", "0")
    if version not in ("0", "1", "2"):
        raise ValueError(f"kv is {version!r}; expected 1 or 2, the version of the KV engine")
    return VaultPlace(
        address.rstrip("/"),
        mount,
        prefix,
        method,
        given.get("auth_mount", method),
        given.get("role", ""),
        int(version),
    )


def read_token(environ: Mapping[str, str]) -> str:
    """Return the token of the environment, or of Vault's own file of it.

    Raises:
        SecretError: there is none.
    """
    token = environ.get("VAULT_TOKEN", "")
    path = environ.get("VAULT_TOKEN_FILE") or str(Path.home() / ".vault-token")
    if not token:
        token = _read_text(path, "set VAULT_TOKEN or VAULT_TOKEN_FILE, or use ?auth=approle")
    return token


def login_document(place: VaultPlace, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the body of a login by AppRole or by the service account of a pod.

    Raises:
        SecretError: a credential is missing.
    """
    if place.method == KUBERNETES:
        path = environ.get("VAULT_K8S_TOKEN_FILE") or _SERVICE_TOKEN
        return {"role": place.role, "jwt": _read_text(path, "it is there in a pod")}
    document = {"role_id": environ.get("VAULT_ROLE_ID", "")}
    if not document["role_id"]:
        raise SecretError("VAULT_ROLE_ID is not set, which auth=approle needs")
    secret_id = environ.get("VAULT_SECRET_ID", "")
    if not secret_id and environ.get("VAULT_SECRET_ID_FILE"):
        secret_id = _read_text(environ["VAULT_SECRET_ID_FILE"], "it is named by the variable")
    # A role may be bound to addresses alone, and then has no secret id.
    return {**document, "secret_id": secret_id} if secret_id else document


def _read_text(path: str, hint: str) -> str:
    try:
        return Path(path).read_text().strip()
    except (OSError, ValueError) as e:
        reason = getattr(e, "strerror", None) or "it is not UTF-8"
        raise SecretError(f"the file {path} cannot be read: {reason}; {hint}") from None
