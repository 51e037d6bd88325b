"""Errors of Redis, as one class."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from streamer.core.errors import StreamerError

_VALUE_ERROR: Final = re.compile(
    r"not an integer|not a valid float|exceeds maximum|out of range|invalid bulk length|"
    r"equal or smaller than the target|ID specified in XADD|Invalid stream ID"
)


class RedisError(StreamerError):
    """Redis refuses, or does not answer.

    Attributes:
        is_connection_lost: whether there is no connection.
        is_value_error: whether it says that a value cannot be what it should be, or is too large.
        is_key_error: whether it says that there is something else at the key.
    """

    def __init__(self, text: str, *, is_connection_lost: bool) -> None:
        super().__init__(text)
        self.is_connection_lost = is_connection_lost
        self.is_value_error = not is_connection_lost and _VALUE_ERROR.search(text) is not None
        self.is_key_error = not is_connection_lost and text.startswith("WRONGTYPE")


@contextmanager
def redis_errors() -> Iterator[None]:
    """Raise what the library raises as a `RedisError`."""
    import redis

    try:
        yield
    except redis.RedisError as error:
        raise as_redis_error(error) from None
    except OSError as error:
        raise RedisError(str(error), is_connection_lost=True) from None


def as_redis_error(error: Exception) -> RedisError:
    """Return an error of the library as ours."""
    import redis

    lost = isinstance(error, redis.ConnectionError | redis.TimeoutError)
    return RedisError(str(error) or type(error).__name__, is_connection_lost=lost)
