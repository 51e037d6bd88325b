"""Clients of HDFS, and its errors.

The library speaks the protocols of NameNodes and DataNodes itself: no Java, no gateway over HTTP,
and `hosts` are the addresses that Connect takes.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from streamer.core.errors import StreamerError
from streamer.core.permissions import ALL, NotPermittedError, Permissions
from streamer.core.urls import address_problem
from streamer.sdk.output.each_message import MessageRefusedError, ReceiverLostError
from streamer.sdk.spec import Access, BuildContext, Field, Package, ParsedFields

T = TypeVar("T")

HOSTS: Final = "hosts"
USER: Final = "user"
DIRECTORY: Final = "directory"

PACKAGES: Final = (Package("hdfs_native"),)

_USER_VARIABLE: Final = "HADOOP_USER_NAME"
_NAME_SERVICE: Final = "hosts"
_MAX_TEXT: Final = 300
_CONNECT_TIMEOUT_S: Final = 5.0
_REFUSAL: Final = re.compile(r'^RPCError\("(?:[\w.$]*[.$])?(\w+)", "(.*?)(?:\\n|"\))', re.DOTALL)
_PATH_REFUSALS: Final = frozenset(
    (
        *("InvalidPathException", "ParentNotDirectoryException", "FileAlreadyExistsException"),
        *("PathComponentTooLongException", "IllegalArgumentException"),
        "InvalidPathHandleException",
    )
)


def _hosts_problem(hosts: Sequence[str]) -> str | None:
    for text in hosts:
        host, separator, port = text.rpartition(":")
        is_whole = separator and host and port and "/" not in text
        if not is_whole or address_problem(text):
            return f"has {text!r}; expected host:port of a NameNode, such as localhost:9000"
    return None


def _user_problem(name: str) -> str | None:
    return f"is {name!r}; expected the name of a user" if "\0" in name else None


CONNECTION_FIELDS: Final = (
    Field(
        HOSTS,
        "string",
        "The NameNodes, as host and port of their RPC. Several are those of one cluster; the "
        "active one is used.",
        shape="array",
        access=Access.ADDRESS,
        check=_hosts_problem,
        examples=(("localhost:9000",),),
    ),
    Field(
        USER,
        "string",
        "The user, for a cluster without Kerberos. Without it, that of `HADOOP_USER_NAME` or of "
        "the process. With Kerberos, the user is the one of the ticket.",
        default="",
        check=_user_problem,
    ),
)


def hosts_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with the fields together: there are no hosts."""
    if not parsed[HOSTS]:
        yield HOSTS, "is an empty list; expected at least one host:port of a NameNode"


class HdfsError(StreamerError):
    """A request was refused.

    Attributes:
        kind: the class of the error, such as `AccessControlException`.
    """

    def __init__(self, text: str, kind: str = "") -> None:
        super().__init__(text)
        self.kind = kind


class HdfsMissingError(HdfsError):
    """There is no such file or directory."""


class HdfsExistsError(HdfsError):
    """There is a file already."""


class _UserGate:
    """Lets requests of one user alone run at once.

    The library takes the user of a connection from the environment of the process when it connects,
    which it does at any request. Several streams share a worker, and may have several users.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._user: str | None = None

    @contextmanager
    def enter(self, user: str) -> Iterator[None]:
        """Run a request as a user; empty for the user of the process."""
        with self._changed:
            while self._running and self._user != user:
                self._changed.wait()
            if self._user != user:
                self._switch(user)
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _switch(self, user: str) -> None:
        if self._user is None:
            self._own = os.environ.get(_USER_VARIABLE)
        self._user = user
        name = user or self._own
        if name is None:
            os.environ.pop(_USER_VARIABLE, None)
        else:
            os.environ[_USER_VARIABLE] = name


_gate: Final = _UserGate()


class HdfsClient:
    """A client of a cluster, which connects at its first use. Threads may share it."""

    def __init__(
        self, hosts: Sequence[str], user: str = "", permissions: Permissions = ALL
    ) -> None:
        """Take the NameNodes, the user (empty for that of the process) and the permissions."""
        self._hosts = tuple(hosts)
        self._user = user
        self._permissions = permissions
        self._lock = threading.Lock()
        self._client: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return (HdfsClient, (self._hosts, self._user, self._permissions))

    @property
    def place(self) -> str:
        """The cluster as a URL."""
        return f"hdfs://{self._hosts[0]}"

    def run(self, request: Callable[[Any], T]) -> T:
        """Return what a request gives.

        Raises:
            HdfsMissingError: there is no such file.
            HdfsExistsError: there is a file already.
            MessageRefusedError: HDFS does not take such a path.
            ReceiverLostError: nothing answers.
            HdfsError: any other refusal.
        """
        with _gate.enter(self._user), _hdfs_errors(self.place):
            self._check_hosts()
            return request(self._connect())

    def _check_hosts(self) -> None:
        """Check that a NameNode takes connections: without one, the library waits for ever.

        Raises:
            OSError: none does.
        """
        failure = OSError("there is no host")
        for text in self._hosts:
            host, _, port = text.rpartition(":")
            try:
                self._permissions.connect(host.strip("[]"), int(port), _CONNECT_TIMEOUT_S).close()
                return
            except OSError as error:
                failure = error
        raise failure

    def _connect(self) -> Any:
        with self._lock:
            if self._client is None:
                from hdfs_native import Client

                self._client = Client(*_address_of(self._hosts))
            return self._client

    def write(self, path: str, data: bytes, *, overwrite: bool = True) -> None:
        """Write a file and the directories above it; see `run` for the errors."""
        from hdfs_native import WriteOptions

        options = WriteOptions(overwrite=overwrite, create_parent=True)

        def write_file(client: Any) -> None:
            with client.create(path, options) as file:
                file.write(data)

        self.run(write_file)

    def close(self) -> None:
        """Free the connections; the next use makes others."""
        with self._lock:
            self._client = None


def make_client(parsed: ParsedFields) -> HdfsClient:
    """Return a client by the fields of a component.

    Raises:
        NotPermittedError: the config may not use the identity of this machine.
    """
    if not parsed.permissions.local and not parsed[USER]:
        raise NotPermittedError(
            "the user of this machine is out of reach for configs that come by API; set user, or "
            "start the service with --allow-local"
        )
    return HdfsClient(parsed[HOSTS], parsed[USER], parsed.permissions)


def shared_client(parsed: ParsedFields, context: BuildContext) -> HdfsClient:
    """Return the client of a component, which lasts as long as its worker; see `make_client`."""
    client = make_client(parsed)
    return context.worker_resource("hdfs", lambda: client)


def _address_of(hosts: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the URL of a cluster, and the settings that describe its NameNodes."""
    if len(hosts) == 1:
        return f"hdfs://{hosts[0]}", {}
    names = [f"nn{number}" for number in range(len(hosts))]
    settings = {
        "dfs.nameservices": _NAME_SERVICE,
        f"dfs.ha.namenodes.{_NAME_SERVICE}": ",".join(names),
    }
    for name, host in zip(names, hosts, strict=True):
        settings[f"dfs.namenode.rpc-address.{_NAME_SERVICE}.{name}"] = host
    return f"hdfs://{_NAME_SERVICE}", settings


@contextmanager
def _hdfs_errors(place: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise HdfsMissingError(f"{place}: there is no {_first_line(error)}") from None
    except FileExistsError as error:
        raise HdfsExistsError(f"{place}: there is {_first_line(error)} already") from None
    except IsADirectoryError as error:
        raise MessageRefusedError(f"{place}: {_first_line(error)} is a directory") from None
    except OSError as error:
        raise ReceiverLostError(f"{place}: {_first_line(error)}") from None
    except (RuntimeError, NotImplementedError) as error:
        text = str(error)
        refusal = _REFUSAL.match(text)
        if refusal is None:
            raise HdfsError(f"{place}: {_first_line(error)}") from None
        kind, words = refusal.groups()
        described = f"{place}: {kind}: {words}"[:_MAX_TEXT]
        if kind == "AlreadyBeingCreatedException":
            raise HdfsError(described, kind) from None
        if kind in _PATH_REFUSALS:
            raise MessageRefusedError(described) from None
        raise HdfsError(described, kind) from None


def _first_line(error: Exception) -> str:
    return next(iter(str(error).split("\n")), "")[:_MAX_TEXT] or type(error).__name__
