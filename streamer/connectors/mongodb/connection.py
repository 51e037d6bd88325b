"""Connections to MongoDB, by pymongo; threads share one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.mongodb.client_fields import (
    APP_NAME,
    DATABASE,
    FILE_OPTIONS,
    PASSWORD,
    URL,
    USERNAME,
    url_hosts,
    url_options,
)
from streamer.core.errors import StreamerError
from streamer.core.redaction import redact_urls
from streamer.sdk.spec import BuildContext, ParsedFields

if TYPE_CHECKING:
    from pymongo.database import Database

CONNECT_TIMEOUT_MS: Final = 10_000
REQUEST_TIMEOUT_MS: Final = 30_000


class MongodbError(StreamerError):
    """There is no connection, or the server refuses.

    Attributes:
        is_connection_lost: whether the same may succeed later, at this or another server.
        code: the server's number of it; 0 where there is none.
    """

    def __init__(self, text: str, is_connection_lost: bool, code: int = 0) -> None:
        super().__init__(text)
        self.is_connection_lost = is_connection_lost
        self.code = code


@contextmanager
def mongodb_errors() -> Iterator[None]:
    """Turn the errors of pymongo into `MongodbError`s.

    Raises:
        MongodbError: for each of them.
    """
    import bson.errors
    import pymongo.errors

    try:
        yield
    except (pymongo.errors.PyMongoError, bson.errors.BSONError, OSError, ValueError) as e:
        lost = isinstance(e, pymongo.errors.ConnectionFailure | OSError)
        code = (e.code or 0) if isinstance(e, pymongo.errors.OperationFailure) else 0
        raise MongodbError(describe_error(e), lost, code) from None


def describe_error(error: BaseException) -> str:
    """Return the words of an error, without the client's own state, which follows them."""
    text = str(error).partition(", Timeout: ")[0].partition(", full error: ")[0]
    return redact_urls(" ".join(text.split())) or type(error).__name__


class MongodbConnection:
    """A client, which is made at its first use."""

    def __init__(self, parsed: ParsedFields) -> None:
        """Take the fields of the component."""
        self._parsed = parsed
        self._lock = threading.Lock()
        self._client: Any = None

    @property
    def database(self) -> Database[Any]:
        """The database.

        Raises:
            MongodbError: the URL cannot be understood.
            StreamerError: it names what must not be used.
        """
        with self._lock:
            if self._client is None:
                self._client = self._make_client()
            database: Database[Any] = self._client[self._parsed[DATABASE]]
            return database

    def _make_client(self) -> Any:
        import pymongo

        parsed = self._parsed
        url, permissions = parsed[URL], parsed.permissions
        for host in url_hosts(url):
            if host.startswith("/"):
                permissions.unix_path(host)
        for name, path in url_options(url).items():
            if name in FILE_OPTIONS:
                permissions.file(path)
        given: dict[str, Any] = {"appname": parsed[APP_NAME]}
        options = url_options(url)
        if parsed[USERNAME]:
            given |= {"username": parsed[USERNAME], "password": parsed[PASSWORD]}
        for name, value in (
            ("connectTimeoutMS", CONNECT_TIMEOUT_MS),
            ("serverSelectionTimeoutMS", CONNECT_TIMEOUT_MS),
            ("socketTimeoutMS", REQUEST_TIMEOUT_MS),
        ):
            if name.lower() not in options:
                given[name] = value
        with mongodb_errors():
            # Whoever writes tries again by himself, and knows what that means.
            return pymongo.MongoClient(
                url,
                retryWrites=False,
                tz_aware=True,
                # Dates that Python does not have are numbers.
                datetime_conversion="DATETIME_AUTO",
                unicode_decode_error_handler="replace",
                **given,
            )

    def close(self) -> None:
        """Close the client."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def check(self) -> None:
        """Check that the server answers, with these credentials.

        Raises:
            MongodbError: it does not.
        """
        database = self.database
        with mongodb_errors():
            database.client.admin.command("ping")
            if self._parsed[USERNAME]:
                database.command("connectionStatus")

    def probe(self) -> str:
        """Return that a server answers, over a connection that is closed then.

        Raises:
            MongodbError: none does.
        """
        try:
            self.check()
        finally:
            self.close()
        return "the server answers"


def shared_connection(parsed: ParsedFields, context: BuildContext) -> MongodbConnection:
    """Return the connection of a component that lasts as long as its worker."""
    return context.worker_resource("mongodb", lambda: MongodbConnection(parsed))
