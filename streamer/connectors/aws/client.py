"""Clients of AWS: made by the fields of a component, at their first use, for all threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from streamer.connectors.aws.errors import AwsError, aws_errors
from streamer.connectors.aws.fields import (
    CONNECT_TIMEOUT,
    CREDENTIALS,
    ENDPOINT,
    FROM_EC2_ROLE,
    ID,
    PROFILE,
    REGION,
    ROLE,
    ROLE_EXTERNAL_ID,
    SECRET,
    TCP,
    TOKEN,
)
from streamer.core.durations import SECOND
from streamer.core.permissions import NotPermittedError
from streamer.core.urls import split_url
from streamer.sdk.spec import BuildContext, ParsedFields

T = TypeVar("T")

_CONNECT_TIMEOUT_S: Final = 5.0
READ_TIMEOUT_S: Final = 30.0
_MAX_CONNECTIONS: Final = 64
_ONE_AT_A_TIME: Final = threading.Lock()
"""boto3 does not let several threads make clients at once."""


class AwsClient:
    """A client of one service; threads may share it."""

    def __init__(
        self,
        parsed: ParsedFields,
        service: str,
        *,
        attempts: int = 3,
        read_timeout_s: float = READ_TIMEOUT_S,
        options: Mapping[str, Any] | None = None,
        endpoint: str = "",
    ) -> None:
        """Take the fields of the component.

        Args:
            parsed: the fields.
            service: as boto3 names it, such as `sqs`.
            attempts: how often boto3 tries a request that may be repeated, in all.
            read_timeout_s: how long an answer may take.
            options: more of botocore's `Config`.
            endpoint: in place of the one of the fields; empty for that one.
        """
        self._parsed = parsed
        self._service = service
        self._attempts = attempts
        self._read_timeout_s = read_timeout_s
        self._options = options or {}
        self._endpoint: str = endpoint or parsed[ENDPOINT]
        self._client: Any = None

    def run(self, work: Callable[[Any], T]) -> T:
        """Return what work with boto3's client returns.

        Raises:
            AwsError: it fails.
        """
        with aws_errors():
            return work(self._connected())

    def _connected(self) -> Any:
        if self._client is None:
            with _ONE_AT_A_TIME:
                if self._client is None:
                    self._client = self._make_client()
        return self._client

    def _make_client(self) -> Any:
        from botocore.config import Config

        parsed = self._parsed
        _check_endpoint(parsed, self._endpoint)
        config = Config(
            connect_timeout=(parsed[TCP][CONNECT_TIMEOUT] or 0) / SECOND or _CONNECT_TIMEOUT_S,
            read_timeout=self._read_timeout_s,
            retries={"mode": "standard", "total_max_attempts": self._attempts},
            max_pool_connections=_MAX_CONNECTIONS,
            # A config of a stranger is not sent to where the machine's own environment points.
            ignore_configured_endpoint_urls=not parsed.permissions.local,
            **self._options,
        )
        return make_session(parsed).client(
            self._service, endpoint_url=self._endpoint or None, config=config
        )

    def close(self) -> None:
        """Close the connections; the next use makes others."""
        client, self._client = self._client, None
        if client is not None:
            client.close()


def make_session(parsed: ParsedFields) -> Any:
    """Return a boto3 session by the fields of a component.

    Raises:
        NotPermittedError: the config may not use credentials of this machine.
        BotoCoreError: there is no such profile.
    """
    import boto3
    import botocore.session

    given = parsed[CREDENTIALS]
    core = botocore.session.Session(profile=given[PROFILE] or None)
    if not parsed.permissions.local:
        _hide_machine(parsed, core)
    session = boto3.Session(
        botocore_session=core,
        region_name=parsed[REGION] or None,
        aws_access_key_id=given[ID] or None,
        aws_secret_access_key=given[SECRET] or None,
        aws_session_token=given[TOKEN] or None,
    )
    if given[FROM_EC2_ROLE]:
        return _with_credentials(parsed, _machine_provider())
    if given[ROLE]:
        return _with_credentials(parsed, _role_provider(parsed, session))
    return session


def _hide_machine(parsed: ParsedFields, core: Any) -> None:
    """Let a session see neither files nor roles of this machine.

    Raises:
        NotPermittedError: it would need them.
    """
    given = parsed[CREDENTIALS]
    if given[FROM_EC2_ROLE] or given[PROFILE] or not given[ID]:
        raise NotPermittedError(
            "credentials of this machine are out of reach for configs that come by API; set "
            "credentials.id and credentials.secret, or start the service with --allow-local"
        )
    if not parsed[REGION]:
        raise NotPermittedError(
            "the region of this machine is out of reach for configs that come by API; set region"
        )
    for name in ("config_file", "credentials_file"):
        core.set_config_variable(name, os.devnull)


def _check_endpoint(parsed: ParsedFields, endpoint: str) -> None:
    """Check that a config that may not reach the machine's own addresses does not name one.

    Raises:
        NotPermittedError: it does.
    """
    permissions = parsed.permissions
    if permissions.local or not endpoint:
        return
    import socket

    for *_, place in socket.getaddrinfo(split_url(endpoint).hostname, None):
        permissions.address(str(place[0]))


def _with_credentials(parsed: ParsedFields, provider: Any) -> Any:
    import boto3
    import botocore.session
    from botocore.credentials import CredentialResolver

    core = botocore.session.Session(profile=parsed[CREDENTIALS][PROFILE] or None)
    core.register_component("credential_provider", CredentialResolver([provider]))
    return boto3.Session(botocore_session=core, region_name=parsed[REGION] or None)


def _machine_provider() -> Any:
    from botocore.credentials import InstanceMetadataProvider
    from botocore.utils import InstanceMetadataFetcher

    return InstanceMetadataProvider(InstanceMetadataFetcher(timeout=2, num_attempts=2))


def _role_provider(parsed: ParsedFields, session: Any) -> Any:
    """Return what assumes the role, and assumes it again before the credentials expire."""
    from botocore.credentials import (
        AssumeRoleCredentialFetcher,
        CredentialProvider,
        DeferredRefreshableCredentials,
    )

    given = parsed[CREDENTIALS]
    more: Mapping[str, str] = (
        {"ExternalId": given[ROLE_EXTERNAL_ID]} if given[ROLE_EXTERNAL_ID] else {}
    )

    def make_client(service: str, **options: Any) -> Any:
        keys = {
            name: options[name]
            for name in ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
            if name in options
        }
        return session.client(service, endpoint_url=parsed[ENDPOINT] or None, **keys)

    source = session.get_credentials()
    if source is None:
        raise AwsError("there are no credentials with which to assume the role")
    fetcher = AssumeRoleCredentialFetcher(
        make_client, source, given[ROLE], extra_args={"RoleSessionName": "streamer", **more}
    )

    class RoleProvider(CredentialProvider):  # type: ignore[misc]
        """Gives the credentials of the role."""

        METHOD = "assume-role"

        def load(self) -> Any:
            """Return credentials that are fetched at their first use."""
            return DeferredRefreshableCredentials(fetcher.fetch_credentials, self.METHOD)

    return RoleProvider()


def shared_client(
    parsed: ParsedFields, context: BuildContext, service: str, **options: Any
) -> AwsClient:
    """Return the client of a component that lasts as long as its worker."""
    return context.worker_resource(service, lambda: AwsClient(parsed, service, **options))
