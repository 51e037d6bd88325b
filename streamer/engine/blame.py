"""Which component a failure comes from: said in the worker where it happens, read on the driver.

Between the two stands Spark, which passes on a text with a traceback in it, and more around that.
So what is to arrive is one line of it, with a mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar

from streamer.errors import StreamerError
from streamer.value import dump_json

Item = TypeVar("Item")

_MARK: Final = "streamer-failure "
_MARKED: Final = re.compile(re.escape(_MARK) + r"(\{.*\})")
_LONGEST: Final = 2_000


class Blamed(NamedTuple):
    """A failure, in a line, and the component that it comes from.

    Attributes:
        text: what went wrong.
        label: the component's label, or an empty string.
        path: where it stands (`root.output`).
    """

    text: str
    label: str
    path: str

    @classmethod
    def found(cls, error: str) -> Blamed | None:
        """Return the failure that a text of Spark's tells of, if a component has said so."""
        for marked in _MARKED.findall(error):
            try:
                return cls(**json.loads(marked))
            except (ValueError, TypeError):
                continue
        return None


class BlamedError(StreamerError):
    """A component has broken down.

    Attributes:
        blamed: which one, and why.
    """

    def __init__(self, blamed: Blamed) -> None:
        self.blamed = blamed
        super().__init__(f"{blamed.path}: {blamed.text}")

    def __reduce__(self) -> tuple[type[BlamedError], tuple[Blamed]]:
        return BlamedError, (self.blamed,)


@contextmanager
def blamed(place: Mapping[str, str]) -> Iterator[None]:
    """Say of what goes wrong inside that it comes from a component, unless another is blamed.

    Args:
        place: the component's `label` and `path`, as its log lines have them.
    """
    try:
        yield
    except BlamedError:
        raise
    except Exception as e:
        said = " ".join(str(e).split())[:_LONGEST]
        # What we say ourselves is a sentence; of all else its type says most.
        text = said if isinstance(e, StreamerError) else f"{type(e).__name__}: {said}"
        raise BlamedError(Blamed(text, place["label"], place["path"])) from e


def blaming(items: Iterable[Item], place: Mapping[str, str]) -> Iterator[Item]:
    """Give items; what goes wrong while they are made comes from a component."""
    with blamed(place):
        yield from items


def marking(items: Iterable[Item]) -> Iterator[Item]:
    """Give items; a component that breaks down meanwhile is named so that Spark passes it on."""
    try:
        yield from items
    except BlamedError as e:
        raise StreamerError(_MARK + dump_json(e.blamed._asdict()).decode()) from e
