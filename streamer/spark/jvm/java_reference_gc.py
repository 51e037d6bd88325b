"""Frees Java objects that Python holds: each stays in Java until Python forgets it.

Py4J keeps the methods that were called of an object in the object, and in each of them the object:
a cycle, which only a collection of all of Python's heap takes apart. Python makes one when there is
a quarter more than at the last one: after hundreds of micro-batches, of which each leaves its plan
and its RDDs, with them their broadcasts: half a megabyte of Java's heap.
"""

from __future__ import annotations

import gc
from typing import Final

COLLECT_INTERVAL_S: Final = 10.0
"""Seconds from one collection to the next. A service has thousands of objects for each stream."""


class JavaReferenceCollector:
    """Frees, in time, Java objects that the streams of a process do not need any more."""

    def __init__(self) -> None:
        """Have nothing to wait for."""
        self._due = 0.0

    def freeze_loaded(self) -> None:
        """Leave out from now on what there is: modules and classes, which stay."""
        gc.collect()
        gc.freeze()

    def collect_if_due(self, now: float) -> None:
        """Collect, when it is time to.

        Args:
            now: seconds of a clock that does not run backwards.
        """
        if now >= self._due:
            self._due = now + COLLECT_INTERVAL_S
            gc.collect()


JAVA_REFERENCES: Final = JavaReferenceCollector()
"""Of this process, as Python's heap is."""
