"""Sends traces and metrics over HTTP within a deadline for each whole exchange.

The library of the exporter, requests, takes its timeout for each read of the socket: a collector
that sends a byte now and then would hold it for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any, Final

import httpx2
import requests
from requests.adapters import BaseAdapter

from streamer.connectors.http_client.exchange_deadline import Deadline, keep_deadline
from streamer.core.permissions import Permissions

_MAX_ANSWER_BYTES: Final = 1 << 16
"""What is read of an answer, which says no more than that spans have come."""


class _DeadlineAdapter(BaseAdapter):
    """Does the exchanges of a session of requests, one at a time."""

    def __init__(self, permissions: Permissions) -> None:
        super().__init__()
        self._deadline = Deadline()
        self._client = httpx2.Client(timeout=None, follow_redirects=False)
        keep_deadline(self._client, self._deadline, permissions)

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Do one exchange; the arguments are those of `BaseAdapter.send`.

        Args:
            request: what is sent.
            stream: not looked at: the answer is read whole, up to a bound.
            timeout: seconds for all of it.
            verify: not looked at: certificates always are.
            cert: not looked at: there is no field for one.
            proxies: not looked at: those of the environment are used.

        Raises:
            requests.RequestException: there is no whole answer within the time.
        """
        assert request.url is not None and request.method is not None
        assert isinstance(request.body, bytes | None)
        headers = {name: str(value) for name, value in request.headers.items()}
        self._deadline.start(timeout)
        try:
            with self._client.stream(
                request.method, request.url, headers=headers, content=request.body
            ) as answer:
                body = b""
                for piece in answer.iter_raw():
                    body += piece
                    if len(body) > _MAX_ANSWER_BYTES:
                        break
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            if self._deadline.has_expired or isinstance(error, httpx2.TimeoutException):
                raise requests.Timeout(f"no whole answer within {timeout:g} s") from None
            raise requests.ConnectionError(str(error) or type(error).__name__) from None
        made = requests.Response()
        made.request, made.url = request, request.url
        made.status_code, made.reason = answer.status_code, answer.reason_phrase
        made.headers.update(answer.headers)
        made.raw = BytesIO(body)
        return made

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def make_deadline_session(permissions: Permissions) -> requests.Session:
    """Return a session whose timeout is for the whole of each exchange.

    Args:
        permissions: to which addresses it may connect.
    """
    session = requests.Session()
    adapter = _DeadlineAdapter(permissions)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session
