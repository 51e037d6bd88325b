"""Queries of results, and their answers."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from streamer.core.errors import StreamerError
from streamer.core.json.dump import dump_json
from streamer.core.json.parse import parse_json
from streamer.core.timestamps import format_rfc3339

MAX_RESULTS: Final = 10_000
"""How many results a page has at most."""

DEFAULT_RESULTS: Final = 1_000
"""How many it has when nothing is said."""

_NEWEST_FIRST: Final = "newest"


class ResultQueryError(StreamerError):
    """A question that cannot be answered; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class ResultQuery:
    """A selection of results: those for which all conditions hold.

    Attributes:
        key: the windows' key, as `window_key` shows it or as JSON; None for all.
        since: windows start at or after this, Unix ns.
        until: windows end at or before this, Unix ns.
        revisions: all revisions of a window that there still are; else the latest only.
        limit: how many at most, 1 to `MAX_RESULTS`.
        after: where the page before ended, its `Page.next`; empty for the first.
        newest_first: the windows that end last come first; the messages of one window keep their
            order.
    """

    key: str | None = None
    since: int | None = None
    until: int | None = None
    revisions: bool = False
    limit: int = DEFAULT_RESULTS
    after: str = ""
    newest_first: bool = False

    def find_problem(self) -> str | None:
        """Return what is wrong with it, or None."""
        if not 1 <= self.limit <= MAX_RESULTS:
            return f"limit is {self.limit}, expected 1 to {MAX_RESULTS}; ask for more page by page"
        if self.since is not None and self.until is not None and self.since > self.until:
            since, until = format_rfc3339(self.since), format_rfc3339(self.until)
            return f"from is {since}, which is after to, {until}: no window lies between them"
        return None


@dataclass(frozen=True, slots=True)
class WindowResult:
    """A message that the pipeline has made of a window.

    Attributes:
        key: the window's key, as JSON; None where windows have none.
        start: of the window, Unix ns.
        end: of the window, Unix ns.
        emitted_at: the time of the micro-batch in which it came out, Unix ns.
        emit: why it did: the value of `window_emit`.
        revision: counts the emissions of the window, from 1.
        part: the message's place among those of its emission, from 0.
        content: the message's bytes.
        metadata: the message's, as a JSON object, without what stands here.
        error: what the message had failed on; None when on nothing.
    """

    key: str | None
    start: int
    end: int
    emitted_at: int
    emit: str
    revision: int
    part: int
    content: bytes
    metadata: str
    error: str | None

    def to_json_values(self) -> dict[str, Any]:
        """Return the answer as values for `value.dump_json`; numbers stay as they were written.

        The content is the value that it is the JSON of; else a text; else, under
        `content_base64`, bytes.
        """
        document: dict[str, Any] = {
            "key": None if self.key is None else parse_json(self.key.encode()),
            "start": format_rfc3339(self.start),
            "end": format_rfc3339(self.end),
            "emitted_at": format_rfc3339(self.emitted_at),
            "emit": self.emit,
            "revision": self.revision,
            **content_fields(self.content),
            "metadata": parse_json(self.metadata.encode()),
        }
        return document if self.error is None else {**document, "error": self.error}


def content_fields(raw: bytes) -> dict[str, Any]:
    """Return a content as `Result.plain` has it."""
    try:
        return {"content": parse_json(raw)}
    except ValueError:
        pass
    try:
        return {"content": raw.decode()}
    except UnicodeDecodeError:
        return {"content_base64": base64.b64encode(raw).decode()}


@dataclass(frozen=True, slots=True)
class ResultPage:
    """Some results, by the end of their windows, their start and their key.

    Attributes:
        results: the results.
        next: goes on behind them, as `ResultQuery.after`; empty when these are the last.
    """

    results: tuple[WindowResult, ...]
    next: str = ""


def key_texts(key: str) -> list[str]:
    """Return how keys may be shown that a question means: `1.0` and `1` are one key as JSON."""
    texts = [key]
    try:
        value = orjson.loads(key)
    except ValueError:
        return texts
    if isinstance(value, str):
        texts.append(value)
    else:
        texts.append(dump_json(_canonical(value)).decode())
    return texts


def _canonical(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, dict):
        return {name: _canonical(item) for name, item in value.items()}
    return value


def encode_cursor(place: Sequence[int | str], newest_first: bool = False) -> str:
    """Return a place among results, and the order of these, as a text that can stand in a URL."""
    position = [*place, _NEWEST_FIRST] if newest_first else [*place]
    return base64.urlsafe_b64encode(orjson.dumps(position)).decode().rstrip("=")


def decode_cursor(after: str, newest_first: bool = False) -> list[Any]:
    """Read what `encode_cursor` made.

    Raises:
        ResultQueryError: it was made by nobody here, or for the other order.
    """
    try:
        padded = after + "=" * (-len(after) % 4)
        position = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if (position[7:] == [_NEWEST_FIRST]) != newest_first:
            raise ResultQueryError(
                "after is of a page in the other order; give the same order for all pages"
            )
        position = position[:7]
        end, start, key, branch, epoch, ordinal, part = position
        numbers = (end, start, branch, epoch, ordinal, part)
        if isinstance(key, str) and all(type(one) is int for one in numbers):
            return list(position)
    except (ValueError, TypeError, KeyError):
        pass
    raise ResultQueryError(
        f"after is {after[:40]!r}, which is no place among results; give the `next` of the page "
        "before as it is"
    )
