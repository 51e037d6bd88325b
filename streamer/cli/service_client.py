"""A service that runs elsewhere, as commands ask it: its address, who asks, and what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote, urlsplit

import click

from streamer.core.errors import ConfigError, Lint, StreamerError
from streamer.core.redaction import redact_urls

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_URL: Final = "http://127.0.0.1:4195"
_MISSING_STREAM_TEXT: Final = "Stream not found"
_REQUEST_TIMEOUT_S: Final = 900.0
"""Letting open windows out may take as long as an output takes."""


def remote_options(command: F) -> F:
    """Add the options that say where the service is, and who asks."""
    for option in (
        click.option(
            "--token",
            envvar="STREAMER_TOKEN",
            metavar="TOKEN",
            help="A token that the service takes; better in the variable STREAMER_TOKEN, where "
            "nobody else sees it.",
        ),
        click.option(
            "--user",
            envvar="STREAMER_USER",
            metavar="NAME:PASSWORD",
            help="A user; better in the variable STREAMER_USER.",
        ),
        click.option(
            "--url",
            envvar="STREAMER_URL",
            default=DEFAULT_URL,
            metavar="URL",
            help=f"Where the service is ({DEFAULT_URL}, or the variable STREAMER_URL).",
        ),
    ):
        command = option(command)
    return command


class RefusedError(StreamerError):
    """The service refused; the text is its own.

    Attributes:
        status: the answer's.
    """

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class ServiceClient:
    """A service."""

    def __init__(self, url: str, token: str | None = None, user: str | None = None) -> None:
        """Take its address, and who asks.

        Raises:
            StreamerError: the address is none.
        """
        # Imported here: other commands should not wait for it.
        import httpx2

        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise StreamerError(f"--url is {redact_urls(url)!r}; expected http://HOST:PORT")
        headers = {b"Authorization": f"Bearer {token}".encode()} if token else {}
        auth = None
        if user and not token:
            name, _, password = user.partition(":")
            auth = httpx2.BasicAuth(name, password)
        self._url = redact_urls(url)
        self._credential_option = "--token" if token else "--user" if user else ""
        self._client = httpx2.Client(
            base_url=url,
            headers=headers,
            auth=auth,
            timeout=httpx2.Timeout(_REQUEST_TIMEOUT_S, connect=10.0),
        )

        context = click.get_current_context(silent=True)
        if context is not None:
            context.call_on_close(self._client.close)

    def request(
        self,
        method: str,
        path: str,
        body: str | None = None,
        query: dict[str, str] | None = None,
        file: str = "",
    ) -> Any:
        """Send a request; return the answer's JSON, or its text.

        Args:
            method: the method.
            path: the path; see `build_stream_path`.
            body: what is sent.
            query: parameters.
            file: what findings are about.

        Raises:
            ConfigError: the config that was sent has findings.
            Refused: the service refused.
            StreamerError: there is no answer.
        """
        answer = self._send(method, path, body, query)
        return _read_answer(answer, path, file, self._credential_option)

    def download(self, path: str, query: dict[str, str]) -> tuple[str, Mapping[str, str]]:
        """Return the text of a file, and the answer's headers. Raises as `request`."""
        answer = self._send("GET", path, None, query)
        if answer.status_code >= 400:
            _read_answer(answer, path, "", self._credential_option)
        return answer.text, answer.headers

    def _send(self, method: str, path: str, body: str | None, query: dict[str, str] | None) -> Any:
        import httpx2

        headers = {"Content-Type": "application/yaml"} if body is not None else {}
        try:
            return self._client.request(method, path, content=body, params=query, headers=headers)
        except httpx2.HTTPError as e:
            raise StreamerError(
                f"there is no answer from {self._url}: {str(e).lower() or type(e).__name__}; is "
                "the service running there? Name another one with --url"
            ) from None


def _read_answer(answer: Any, path: str, file: str, credential_option: str) -> Any:
    kind = answer.headers.get("Content-Type", "")
    content = answer.text
    if kind.startswith("application/json"):
        try:
            content = json.loads(answer.content)
        except ValueError:
            raise StreamerError("the service's answer is no JSON") from None
    if answer.status_code < 400:
        return content
    if isinstance(content, dict) and "lint_errors" in content:
        raise ConfigError([_parse_lint(text, file) for text in content["lint_errors"]])
    if answer.status_code == 401:
        text = "the service does not know you: give --token or --user"
        if credential_option:
            text = f"the service does not take what {credential_option} (or its variable) says"
        raise RefusedError(401, text)
    text = content["error"] if isinstance(content, dict) and "error" in content else str(content)
    text = text.strip().removeprefix("Error: ")
    if answer.status_code == 404 and text == _MISSING_STREAM_TEXT:
        name = unquote(path.split("/")[2])
        text = f"there is no stream {name!r}; `streamer list-streams` shows those that there are"
    # What a request says by a parameter is an option here.
    raise RefusedError(answer.status_code, text.replace("on_reset=", "--on-reset "))


def _parse_lint(text: str, file: str) -> Lint:
    """Return a finding as it was before it became a text: `(1,2) what is wrong`."""
    place, _, message = text.partition(") ")
    line, _, column = place.removeprefix("(").partition(",")
    if line.isdecimal() and column.isdecimal():
        return Lint(file, int(line), int(column), "", message)
    return Lint(file, 0, 0, "", text)


def build_stream_path(stream_id: str, *more: str) -> str:
    """Return the path of a stream, or of something that it has."""
    return "/".join(("/streams", quote(stream_id, safe=""), *more))
