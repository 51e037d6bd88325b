"""What goes wrong with Redis, in one error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from streamer.errors import StreamerError

_OF_VALUE: Final = re.compile(
    r"not an integer|not a valid float|exceeds maximum|out of range|invalid bulk length|"
    r"equal or smaller than the target|ID specified in XADD|Invalid stream ID"
)


class RedisError(StreamerError):
    """Redis refuses, or does not answer.

    Attributes:
        lost: whether there is no connection.
        of_value: whether it says that a value cannot be what it should be, or is too large.
        of_key: whether it says that there is something else at the key.
    """

    def __init__(self, text: str, *, lost: bool) -> None:
        super().__init__(text)
        self.lost = lost
        self.of_value = not lost and _OF_VALUE.search(text) is not None
        self.of_key = not lost and text.startswith("WRONGTYPE")


@contextmanager
def redis_errors() -> Iterator[None]:
    """Raise what the library raises as a `RedisError`."""
    import redis

    try:
        yield
    except redis.RedisError as error:
        raise told(error) from None
    except OSError as error:
        raise RedisError(str(error), lost=True) from None


def told(error: Exception) -> RedisError:
    """Return an error of the library as ours."""
    import redis

    lost = isinstance(error, redis.ConnectionError | redis.TimeoutError)
    return RedisError(str(error) or type(error).__name__, lost=lost)
