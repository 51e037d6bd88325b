"""A stand-in for Hive's metastore: its Thrift protocol, with databases and tables in memory.

It answers what PyIceberg asks of a metastore, locks included: a lock that another holds is waited
for. It knows no rights, and forgets all when it ends.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hive_metastore.ThriftHiveMetastore import Processor
from hive_metastore.ttypes import (
    AlreadyExistsException,
    LockResponse,
    LockState,
    NoSuchLockException,
    NoSuchObjectException,
)
from thrift.protocol.TBinaryProtocol import TBinaryProtocolFactory
from thrift.server.TServer import TThreadedServer
from thrift.transport.TSocket import TServerSocket
from thrift.transport.TTransport import TBufferedTransportFactory


@dataclass
class Metastore:
    """The answers of the server; each method is one of the protocol.

    Attributes:
        locks_taken: how many locks were taken.
    """

    databases: dict[str, Any] = field(default_factory=dict)
    tables: dict[tuple[str, str], Any] = field(default_factory=dict)
    locks_taken: int = 0
    _locks: dict[int, tuple[str, str]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _guard: threading.RLock = field(default_factory=threading.RLock)

    def create_database(self, database: Any) -> None:
        if database.name in self.databases:
            raise AlreadyExistsException(f"database {database.name} exists")
        self.databases[database.name] = database

    def get_database(self, name: str) -> Any:
        if name not in self.databases:
            raise NoSuchObjectException(f"no database {name}")
        return self.databases[name]

    def get_all_databases(self) -> list[str]:
        return list(self.databases)

    def get_table(self, dbname: str, tbl_name: str) -> Any:
        with self._guard:
            if (dbname, tbl_name) not in self.tables:
                raise NoSuchObjectException(f"no table {dbname}.{tbl_name}")
            return copy.deepcopy(self.tables[dbname, tbl_name])

    def create_table(self, tbl: Any) -> None:
        with self._guard:
            self.get_database(tbl.dbName)
            if (tbl.dbName, tbl.tableName) in self.tables:
                raise AlreadyExistsException(f"table {tbl.tableName} exists")
            self.tables[tbl.dbName, tbl.tableName] = tbl

    def alter_table_with_environment_context(
        self, dbname: str, tbl_name: str, new_tbl: Any, environment_context: Any
    ) -> None:
        with self._guard:
            self.get_table(dbname, tbl_name)
            self.tables[dbname, tbl_name] = new_tbl

    def lock(self, rqst: Any) -> Any:
        with self._guard:
            number, [part] = next(self._numbers), rqst.component
            self._locks[number] = (part.dbname, part.tablename)
            self.locks_taken += 1
            return self._state_of(number)

    def check_lock(self, rqst: Any) -> Any:
        with self._guard:
            if rqst.lockid not in self._locks:
                raise NoSuchLockException(f"no lock {rqst.lockid}")
            return self._state_of(rqst.lockid)

    def unlock(self, rqst: Any) -> None:
        with self._guard:
            self._locks.pop(rqst.lockid, None)

    def _state_of(self, number: int) -> Any:
        """The oldest lock of a table is held; all others wait."""
        first = min(one for one, of in self._locks.items() if of == self._locks[number])
        state = LockState.ACQUIRED if first == number else LockState.WAITING
        return LockResponse(lockid=number, state=state)


@contextmanager
def hive_metastore() -> Iterator[tuple[str, Metastore]]:
    """Run the server in a thread; give its URL and what it knows."""
    store = Metastore()
    socket = TServerSocket("127.0.0.1", 0)
    socket.listen()
    port = socket.handle.getsockname()[1]
    socket.listen = lambda: None
    server = TThreadedServer(
        Processor(store), socket, TBufferedTransportFactory(), TBinaryProtocolFactory(), daemon=True
    )
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        yield f"thrift://127.0.0.1:{port}", store
    finally:
        socket.close()
