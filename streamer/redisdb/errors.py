"""What goes wrong with Redis, in one error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamer.errors import StreamerError


class RedisError(StreamerError):
    """Redis refuses, or does not answer.

    Attributes:
        lost: whether there is no connection.
    """

    def __init__(self, text: str, *, lost: bool) -> None:
        super().__init__(text)
        self.lost = lost


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
