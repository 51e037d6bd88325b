"""Initialise classes of Spark SQL while Spark's core starts, on a core that would wait.

Two threads of Java that initialise classes of a circle at once wait for each other for ever. So
what is initialised here is nothing that the core asks for, and it is over before SQL is asked for
anything.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Final

from py4j.protocol import Py4JError

_CLASSES: Final = (
    "org.apache.spark.sql.internal.SQLConf$",
    "org.apache.spark.sql.catalyst.analysis.FunctionRegistry$",
    "org.apache.spark.sql.catalyst.parser.SqlBaseParser",
)
_ROCKSDB: Final = "org.rocksdb.RocksDB"
"""Its library is unpacked from a jar: for the state of windows."""


class ClassPreload:
    """Classes that a thread initialises."""

    def __init__(self, jvm: Any, has_state: bool) -> None:
        """Begin.

        Args:
            jvm: py4j's view of the JVM.
            has_state: whether the stream keeps state, in RocksDB.
        """
        self._jvm = jvm
        self._names = (*_CLASSES, *((_ROCKSDB,) if has_state else ()))
        self._thread = threading.Thread(target=self._load, daemon=True, name="class-preload")
        self._thread.start()

    def _load(self) -> None:
        # A class that another version of Spark does not have is one that is not waited for.
        with contextlib.suppress(Py4JError, OSError):
            for name in self._names:
                loaded = self._jvm.java.lang.Class.forName(name)
                if name == _ROCKSDB:
                    self._jvm.org.rocksdb.RocksDB.loadLibrary()
                del loaded

    def join(self) -> None:
        """Wait until all are initialised."""
        self._thread.join()
