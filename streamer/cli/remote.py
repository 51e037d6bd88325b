"""A service that runs elsewhere, as commands ask it: its address, who asks, and what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote, urlsplit

import click

from streamer.errors import ConfigError, Lint, StreamerError
from streamer.redaction import scrub_urls

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT: Final = "http://127.0.0.1:4195"
_UNKNOWN: Final = "Stream not found"
_SECONDS: Final = 900.0
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
            default=DEFAULT,
            metavar="URL",
            help=f"Where the service is ({DEFAULT}, or the variable STREAMER_URL).",
        ),
    ):
        command = option(command)
    return command


class Refused(StreamerError):
    """The service refused; the text is its own.

    Attributes:
        status: the answer's.
    """

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class Remote:
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
            raise StreamerError(f"--url is {scrub_urls(url)!r}; expected http://HOST:PORT")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        auth = None
        if user and not token:
            name, _, password = user.partition(":")
            auth = httpx2.BasicAuth(name, password)
        self._url = scrub_urls(url)
        self._given = "--token" if token else "--user" if user else ""
        self._client = httpx2.Client(
            base_url=url, headers=headers, auth=auth, timeout=httpx2.Timeout(_SECONDS, connect=10.0)
        )

        context = click.get_current_context(silent=True)
        if context is not None:
            context.call_on_close(self._client.close)

    def ask(
        self,
        method: str,
        path: str,
        body: str | None = None,
        query: dict[str, str] | None = None,
        file: str = "",
    ) -> Any:
        """Ask; return the answer's JSON, or its text.

        Args:
            method: the method.
            path: the path; see `path_of`.
            body: what is sent.
            query: parameters.
            file: what findings are about.

        Raises:
            ConfigError: the config that was sent has findings.
            Refused: the service refused.
            StreamerError: there is no answer.
        """
        import httpx2

        headers = {"Content-Type": "application/yaml"} if body is not None else {}
        try:
            answer = self._client.request(method, path, content=body, params=query, headers=headers)
        except httpx2.HTTPError as e:
            raise StreamerError(
                f"there is no answer from {self._url}: {str(e).lower() or type(e).__name__}; is "
                "the service running there? Name another one with --url"
            ) from None
        return _read(answer, path, file, self._given)


def _read(answer: Any, path: str, file: str, given: str) -> Any:
    kind = answer.headers.get("Content-Type", "")
    found = answer.text
    if kind.startswith("application/json"):
        try:
            found = json.loads(answer.content)
        except ValueError:
            raise StreamerError("the service's answer is no JSON") from None
    if answer.status_code < 400:
        return found
    if isinstance(found, dict) and "lint_errors" in found:
        raise ConfigError([_lint(text, file) for text in found["lint_errors"]])
    if answer.status_code == 401:
        text = "the service does not know you: give --token or --user"
        if given:
            text = f"the service does not take what {given} (or its variable) says"
        raise Refused(401, text)
    text = found["error"] if isinstance(found, dict) and "error" in found else str(found)
    text = text.strip().removeprefix("Error: ")
    if answer.status_code == 404 and text == _UNKNOWN:
        name = unquote(path.split("/")[2])
        text = f"there is no stream {name!r}; `streamer list-streams` shows those that there are"
    # What a request says by a parameter is an option here.
    raise Refused(answer.status_code, text.replace("on_reset=", "--on-reset "))


def _lint(text: str, file: str) -> Lint:
    """Return a finding as it was before it became a text: `(1,2) what is wrong`."""
    place, _, message = text.partition(") ")
    line, _, column = place.removeprefix("(").partition(",")
    if line.isdecimal() and column.isdecimal():
        return Lint(file, int(line), int(column), "", message)
    return Lint(file, 0, 0, "", text)


def path_of(stream_id: str, *more: str) -> str:
    """Return the path of a stream, or of something that it has."""
    return "/".join(("/streams", quote(stream_id, safe=""), *more))
