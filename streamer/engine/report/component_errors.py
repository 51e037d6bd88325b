"""Attributes failures to components: marked in the worker, read on the driver.

Between the two stands Spark, which passes on a text with a traceback in it, and more around that.
So what is to arrive is one line of it, with a mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar

from streamer.core.errors import StreamAbortedError, StreamerError
from streamer.core.json.dump import dump_json

Item = TypeVar("Item")

_MARK: Final = "streamer-failure "
_MARK_PATTERN: Final = re.compile(re.escape(_MARK) + r"(\{.*\})")
_MAX_TEXT_CHARACTERS: Final = 2_000


class ComponentFailure(NamedTuple):
    """A failure, in a line, and the component that it comes from.

    Attributes:
        text: what went wrong.
        label: the component's label, or an empty string.
        path: where it stands (`root.output`).
        is_abort: whether the component has ended the stream on purpose.
    """

    text: str
    label: str
    path: str
    is_abort: bool = False

    @classmethod
    def from_error_text(cls, error: str) -> ComponentFailure | None:
        """Return the component's failure that an error text of Spark's contains, if any."""
        for marked in _MARK_PATTERN.findall(error):
            try:
                return cls(**json.loads(marked))
            except (ValueError, TypeError):
                continue
        return None


class ComponentFailedError(StreamerError):
    """A component has broken down.

    Attributes:
        failure: which one, and why.
    """

    def __init__(self, failure: ComponentFailure) -> None:
        self.failure = failure
        super().__init__(f"{failure.path}: {failure.text}")

    def __reduce__(self) -> tuple[type[ComponentFailedError], tuple[ComponentFailure]]:
        return ComponentFailedError, (self.failure,)


@contextmanager
def attribute_errors(place: Mapping[str, str]) -> Iterator[None]:
    """Attribute errors inside the block to a component, unless they have one already.

    Args:
        place: the component's `label` and `path`, as its log lines have them.
    """
    try:
        yield
    except ComponentFailedError:
        raise
    except StreamAbortedError as e:
        text = " ".join(str(e).split())[:_MAX_TEXT_CHARACTERS]
        raise ComponentFailedError(ComponentFailure(text, e.label, e.path, is_abort=True)) from e
    except Exception as e:
        message = " ".join(str(e).split())[:_MAX_TEXT_CHARACTERS]
        # What we say ourselves is a sentence; of all else its type says most.
        text = message if isinstance(e, StreamerError) else f"{type(e).__name__}: {message}"
        raise ComponentFailedError(ComponentFailure(text, place["label"], place["path"])) from e


def attribute_iteration_errors(items: Iterable[Item], place: Mapping[str, str]) -> Iterator[Item]:
    """Give items; what goes wrong while they are made comes from a component."""
    with attribute_errors(place):
        yield from items


def encode_errors(items: Iterable[Item]) -> Iterator[Item]:
    """Give items; a component that breaks down meanwhile is named so that Spark passes it on."""
    try:
        yield from items
    except ComponentFailedError as e:
        raise StreamerError(_MARK + dump_json(e.failure._asdict()).decode()) from e
