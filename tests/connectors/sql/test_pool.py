"""The pool: how many connections are open and kept, and for how long."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import event

from streamer.connectors.sql.database import Database
from streamer.connectors.sql.drivers import find_driver
from streamer.connectors.sql.errors import SqlError
from streamer.connectors.sql.pool_bounds import PoolBounds
from tests.servers.postgres import postgres_server


class Counted:
    """A database whose connections are counted."""

    def __init__(self, path: Path, **bounds: int) -> None:
        self.database = Database(find_driver("sqlite"), str(path / "test.db"), PoolBounds(**bounds))
        self.opened = self.closed = 0
        engine = self.database._get_engine()
        event.listen(engine, "connect", self._open)
        event.listen(engine, "close", self._close)

    def _open(self, *_: object) -> None:
        self.opened += 1

    def _close(self, *_: object) -> None:
        self.closed += 1


def test_as_many_are_kept_as_may_be_idle(tmp_path: Path) -> None:
    made = Counted(tmp_path, idle=2)
    with ExitStack() as lent:
        for _ in range(3):
            lent.enter_context(made.database.session())
        assert (made.opened, made.closed) == (3, 0)
    assert (made.opened, made.closed) == (3, 1)
    made.database.run("SELECT 1")
    assert made.opened == 3
    made.database.close()
    assert made.closed == 3


def test_none_is_kept_when_none_may_be_idle(tmp_path: Path) -> None:
    made = Counted(tmp_path, idle=0)
    for _ in range(2):
        made.database.run("SELECT 1")
    assert (made.opened, made.closed) == (2, 2)


@pytest.mark.parametrize("bound", ["idle_time", "life_time"])
def test_they_are_made_anew_after_their_time(tmp_path: Path, bound: str) -> None:
    made = Counted(tmp_path, **{bound: 3600 * 10**9})
    for _ in range(2):
        made.database.run("SELECT 1")
    assert made.opened == 1
    made = Counted(tmp_path, **{bound: 1})
    made.database.run("SELECT 1")
    before = made.opened
    made.database.run("SELECT 1")
    assert made.opened > before
    assert made.opened - made.closed == 1


def test_no_more_are_open_than_may_be(tmp_path: Path) -> None:
    made = Counted(tmp_path, idle=1, open=2)
    most = lent = 0
    lock = threading.Lock()

    def use() -> None:
        nonlocal most, lent
        for _ in range(50):
            with made.database.session():
                with lock:
                    lent += 1
                    most = max(most, lent)
                with lock:
                    lent -= 1

    with made.database.session():
        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert 1 <= most <= 2
    assert made.opened - made.closed <= 2


@pytest.mark.slow
def test_after_a_restart_of_postgresql_an_idle_connection_is_made_anew() -> None:
    with postgres_server() as dsn:
        database = Database(find_driver("postgres"), dsn, PoolBounds())
        pid = database.run("SELECT pg_backend_pid() AS n")
        # Ended by the server, as by a restart.
        other = Database(find_driver("postgres"), dsn, PoolBounds())
        assert pid is not None
        other.run("SELECT pg_terminate_backend($1)", [pid.values[0][0]])
        again = database.run("SELECT pg_backend_pid() AS n")
        assert again is not None and again.values != pid.values
    with pytest.raises(SqlError):
        database.run("SELECT 1")
