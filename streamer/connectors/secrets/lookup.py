"""Lookups of names in stores of secrets, in the order of `--secrets`.

As in Redpanda Connect: the first store that has a name gives its value; one that does not answer is
passed over, and is named when no other has it. `env:`, the only one by default, stands for the
environment; `none:` for nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from streamer.connectors.secrets.store import SecretError, SecretStore
from streamer.core.errors import StreamerError
from streamer.core.extras import install_hint, is_installed
from streamer.core.redaction import redact_urls

URNS_VARIABLE: Final = "STREAMER_SECRETS"
"""The variable that has URNs, separated by spaces, where no `--secrets` is given."""

_ENVIRONMENT: Final = "env"
_NOTHING: Final = "none"
_EXPECTED: Final = (
    "expected env:, none:, vault://HOST/MOUNT, aws-secretsmanager://REGION or redis://HOST:PORT"
)
_PACKAGES: Final = {
    "aws": "boto3",
    "aws-secretsmanager": "boto3",
    "redis": "redis",
    "rediss": "redis",
}
_NOT_AVAILABLE: Final = {
    "az": "Azure Key Vault",
    "gcp": "Google Secret Manager",
}


class LookupResult(NamedTuple):
    """The value of a name.

    Attributes:
        value: the value; None when nobody has it.
        is_secret: whether a store of secrets gave it, and not the environment.
        failures: what stores that do not answer have said.
    """

    value: str | None
    is_secret: bool = False
    failures: tuple[str, ...] = ()


class SecretLookup:
    """Stores in an order; None among them stands for the environment.

    Attributes:
        urns: those of the stores; empty for the environment alone, which needs none.
    """

    def __init__(
        self, stores: Sequence[SecretStore | None] = (None,), urns: Sequence[str] = ()
    ) -> None:
        """Take the stores, and their URNs."""
        self._stores = tuple(stores)
        self.urns = tuple(urns)

    def find(self, name: str, env: Mapping[str, str]) -> LookupResult:
        """Return the value of a name.

        Args:
            name: the name, as it stands between the braces.
            env: the environment.
        """
        failures: list[str] = []
        for store in self._stores:
            try:
                value = env.get(name) if store is None else store.get(name)
            except SecretError as e:
                failures.append(redact_urls(str(e)))
                continue
            if value is not None:
                return LookupResult(value, store is not None)
        return LookupResult(None, failures=tuple(failures))


def parse_urns(urns: Iterable[str], environ: Mapping[str, str]) -> SecretLookup:
    """Return what looks up names in the stores of URNs; nothing is connected.

    Args:
        urns: in their order.
        environ: the environment, for credentials.

    Raises:
        StreamerError: one is none, or its package is not installed; passwords are not shown.
    """
    stores: list[SecretStore | None] = []
    given = tuple(urns)
    for urn in given:
        try:
            url = urlsplit(urn)
            if url.scheme == _NOTHING:
                continue
            stores.append(None if url.scheme == _ENVIRONMENT else _make_store(urn, url, environ))
        except ValueError as e:
            raise StreamerError(f"--secrets {redact_urls(urn)}: {e}") from None
    return SecretLookup(stores, given)


def _make_store(urn: str, url: SplitResult, environ: Mapping[str, str]) -> SecretStore:
    """Return the store of a URN.

    Raises:
        ValueError: there is none; the text says why.
    """
    scheme = url.scheme
    package = _PACKAGES.get(scheme)
    if package is not None and not is_installed(package):
        raise ValueError(
            f"the scheme {scheme} needs the package {package}: {install_hint([package])}"
        )
    if scheme in ("redis", "rediss"):
        from streamer.connectors.secrets.redis_store import RedisStore

        return RedisStore(urn)
    if scheme in ("aws", "aws-secretsmanager"):
        from streamer.connectors.secrets.aws_store import AwsStore

        return AwsStore(url.netloc, url.path.removeprefix("/"))
    if scheme in ("vault", "vault+http"):
        from streamer.connectors.secrets.vault_login import parse_place
        from streamer.connectors.secrets.vault_store import VaultStore

        return VaultStore(parse_place(url, environ), environ)
    if scheme in _NOT_AVAILABLE:
        raise ValueError(
            f"{_NOT_AVAILABLE[scheme]} is not available; mount its secrets as files, and use "
            "${file:…}"
        )
    named = f"the scheme {scheme!r} is not known" if scheme else "it has no scheme"
    raise ValueError(f"{named}; {_EXPECTED}")


_ENVIRONMENT_ONLY: Final = SecretLookup()
_installed: list[SecretLookup] = []


@contextmanager
def install_lookup(urns: Sequence[str]) -> Iterator[None]:
    """Install the stores of URNs for as long as the block runs, in all threads.

    Raises:
        StreamerError: see `parse_urns`.
    """
    _installed.append(parse_urns(urns, os.environ))
    try:
        yield
    finally:
        _installed.pop()


def current_lookup() -> SecretLookup:
    """Return what looks up names now: that of the command line, or of `STREAMER_SECRETS`.

    Raises:
        StreamerError: the variable has a URN that is none.
    """
    if _installed:
        return _installed[-1]
    urns = os.environ.get(URNS_VARIABLE, "").split()
    return parse_urns(urns, os.environ) if urns else _ENVIRONMENT_ONLY
