"""Connections to servers of SFTP, whose host keys are known."""

from __future__ import annotations

import io
import logging
import os
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.sftp.errors import SftpError, sftp_errors
from streamer.connectors.sftp.fields import (
    ADDRESS,
    CONNECTION_TIMEOUT,
    CREDENTIALS,
    HOST_PUBLIC_KEY,
    HOST_PUBLIC_KEY_FILE,
    PASSWORD,
    PRIVATE_KEY,
    PRIVATE_KEY_FILE,
    PRIVATE_KEY_PASS,
    USERNAME,
    split_address,
)
from streamer.core.durations import SECOND
from streamer.core.permissions import NotPermittedError
from streamer.sdk.spec import ParsedFields

if TYPE_CHECKING:
    import paramiko

_KNOWN_HOSTS: Final = ("~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")
_KEEP_ALIVE_S: Final = 15
_AUTH: Final = {"allow_agent": False, "look_for_keys": False}
"""A config says by which keys it logs in: those of whoever runs the program are not tried."""


class SftpConnection:
    """A connection; one thread at a time uses it.

    Attributes:
        files: paramiko's client of the server's files.
    """

    def __init__(self, parsed: ParsedFields) -> None:
        """Connect, and log in.

        Raises:
            SftpError: the server is not there, is not known, or refuses.
            NotPermittedError: the config may not use files or the address.
        """
        import paramiko

        # Its errors are raised too, and logged by who gets them.
        logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)
        timeout_s = parsed[CONNECTION_TIMEOUT] / SECOND
        host, port = split_address(parsed[ADDRESS])
        given = parsed[CREDENTIALS]
        self._client = paramiko.SSHClient()
        try:
            with sftp_errors(parsed[ADDRESS]):
                _trust(parsed, self._client, host, port)
                self._client.connect(
                    host,
                    port,
                    given[USERNAME],
                    given[PASSWORD] or None,
                    _private_key(parsed),
                    timeout=timeout_s,
                    banner_timeout=timeout_s,
                    auth_timeout=timeout_s,
                    sock=parsed.permissions.connect(host, port, timeout_s),
                    **_AUTH,
                )
                transport = self._client.get_transport()
                assert transport is not None
                transport.set_keepalive(_KEEP_ALIVE_S)
                self.files: Any = self._client.open_sftp()
                self.files.get_channel().settimeout(timeout_s)
        except BaseException as error:
            self.close()
            raise _explain(error, given[USERNAME]) from None

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def _explain(error: BaseException, user: str) -> BaseException:
    """Return the error of a login, which says who was refused."""
    if isinstance(error, SftpError) and "Authentication failed" in str(error):
        return SftpError(
            f"{error}; check credentials: the user {user!r}, the password and the private key"
        )
    return error


def _trust(parsed: ParsedFields, client: paramiko.SSHClient, host: str, port: int) -> None:
    """Have a client connect to a server with a known key alone.

    Raises:
        SftpError: the key of the config is none.
    """
    import paramiko

    given = parsed[CREDENTIALS]
    name = host if port == paramiko.config.SSH_PORT else f"[{host}]:{port}"
    text = given[HOST_PUBLIC_KEY]
    if given[HOST_PUBLIC_KEY_FILE]:
        text = parsed.permissions.read(given[HOST_PUBLIC_KEY_FILE]).decode(errors="replace")
    if text:
        key = _public_key(text)
        client.get_host_keys().add(name, key.get_name(), key)
    else:
        for path in _KNOWN_HOSTS:
            _load_known_hosts(parsed, client, path)
    client.set_missing_host_key_policy(_refuse_policy(bool(text)))


def _load_known_hosts(parsed: ParsedFields, client: paramiko.SSHClient, path: str) -> None:
    file = os.path.expanduser(path)
    try:
        if os.path.exists(file):
            readable = parsed.permissions.file(file)
            client.load_system_host_keys(readable)
    except NotPermittedError:
        raise NotPermittedError(
            f"{path} is out of reach for configs that come by API; set credentials.host_public_key "
            "to the public key of the server"
        ) from None


def _public_key(text: str) -> paramiko.PKey:
    """Return the key of a line such as `ssh-ed25519 AAAA… comment`.

    Raises:
        SftpError: it is none.
    """
    import base64

    import paramiko

    words = text.split()
    try:
        return paramiko.PKey.from_type_string(words[0], base64.b64decode(words[1]))
    except (IndexError, ValueError, paramiko.SSHException, paramiko.UnknownKeyType):
        raise SftpError(
            "the host's public key cannot be read; expected one line such as ssh-ed25519 AAAA…"
        ) from None


def _refuse_policy(has_key: bool) -> paramiko.MissingHostKeyPolicy:
    import paramiko

    class RefusePolicy(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
        """Refuses a server whose key is not known."""

        def missing_host_key(self, client: Any, hostname: str, key: Any) -> None:
            """Raise an SftpError that says the key, and where a known one is expected."""
            place = "credentials.host_public_key" if has_key else " and ".join(_KNOWN_HOSTS)
            raise SftpError(
                f"the host key of {hostname} is not known: it is {key.get_name()} "
                f"{key.fingerprint}, and {place} {'has' if has_key else 'have'} no such key. Check "
                "the fingerprint with the owner of the server, and set credentials.host_public_key"
            )

    return RefusePolicy()


def _private_key(parsed: ParsedFields) -> paramiko.PKey | None:
    """Return the private key of the user; None without one.

    Raises:
        SftpError: it cannot be read.
    """
    import paramiko

    given = parsed[CREDENTIALS]
    text = given[PRIVATE_KEY]
    if given[PRIVATE_KEY_FILE]:
        text = parsed.permissions.read(given[PRIVATE_KEY_FILE]).decode(errors="replace")
    if not text:
        return None
    passphrase = given[PRIVATE_KEY_PASS] or None
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            return kind.from_private_key(io.StringIO(text), passphrase)
        except paramiko.PasswordRequiredException:
            raise SftpError("the private key needs a passphrase; set private_key_pass") from None
        except (paramiko.SSHException, ValueError, IndexError):
            continue
    raise SftpError(
        "the private key cannot be read; expected an Ed25519, ECDSA or RSA key of OpenSSH in PEM, "
        "and private_key_pass where it has a passphrase"
    )


def check_connection(parsed: ParsedFields) -> str:
    """Connect once, and return the result in words.

    Raises:
        SftpError: the server is not there, is not known, or refuses.
    """
    SftpConnection(parsed).close()
    return f"{parsed[ADDRESS]} lets {parsed[CREDENTIALS][USERNAME]} in"
