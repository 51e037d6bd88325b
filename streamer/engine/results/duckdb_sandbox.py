"""A database that can read some files and do nothing else, and not for long.

What is asked may come from anybody: no other file, no network, no extension and no setting can be
reached; memory is bounded, nothing is written, and a clock runs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamer.engine.results.latest_revision_sql import escape_glob, quote_sql
from streamer.engine.results.query_model import ResultQueryError

if TYPE_CHECKING:
    import duckdb

MEMORY_LIMIT_BYTES: Final = 512 << 20
QUERY_TIMEOUT_S: Final = 10.0
_INTERRUPT_INTERVAL_S: Final = 0.05


@contextmanager
def open_sandbox(
    paths: Sequence[Path], seconds: float = QUERY_TIMEOUT_S
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection that can read these files.

    Args:
        paths: the files.
        seconds: how long what is asked may take.

    Raises:
        ResultQueryError: it took longer.
    """
    import duckdb

    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": 2,
            "memory_limit": f"{MEMORY_LIMIT_BYTES}B",
            "temp_directory": "",
            "allow_persistent_secrets": False,
            "allow_community_extensions": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        },
    )
    overdue, done = threading.Event(), threading.Event()

    def stop() -> None:
        overdue.set()
        # Between two statements there is nothing to interrupt: the next one must be, too.
        while not done.is_set():
            connection.interrupt()
            done.wait(_INTERRUPT_INTERVAL_S)

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    try:
        # A file is let through by its name, and by the pattern that stands for it alone.
        allowed = [text for path in paths for text in {str(path), escape_glob(path)}]
        connection.execute(f"SET allowed_paths = [{', '.join(map(quote_sql, allowed))}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        timer.start()
        yield connection
    except duckdb.InterruptException:
        if not overdue.is_set():
            raise
        raise ResultQueryError(time_error_text(seconds)) from None
    finally:
        timer.cancel()
        done.set()
        if timer.ident is not None:
            timer.join()
        connection.close()


def time_error_text(seconds: float) -> str:
    """Return what is wrong with a query that has taken so long."""
    return f"the answer took longer than {seconds:g} s; ask for less: one key, a shorter time"
