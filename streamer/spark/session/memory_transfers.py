"""Hand data from Python to the JVM in memory, not in files of Spark's local directory.

PySpark writes what `createDataFrame` takes, and functions over `UDFCompressionThreshold`, to files
there. They hold messages, and values of secrets that a plan has; a kill leaves them behind.
"""

from __future__ import annotations

from typing import Final

from pyspark import SparkContext

FUNCTION_FILE_SETTINGS: Final = {"spark.broadcast.UDFCompressionThreshold": "2047m"}
"""Settings with which a function of any size goes to workers as part of its tasks."""


def transfer_in_memory(context: SparkContext) -> None:
    """Send data to the JVM through a socket, as PySpark does by itself where Spark encrypts files.

    Only the driver's Python reads this: the JVM and the workers learn of encryption by a setting.
    """
    context.__dict__["_encryption_enabled"] = True
