"""Hadoop's local file system without a process for each file.

Hadoop sets the mode of each file that it creates, by a process `chmod` where its native library is
missing, which no PySpark has. Spark writes two files for each log and each shard of a micro-batch,
one of them with sums: four processes without windows and eight with two shards, 3 ms of CPU each.
The two classes set the mode by Java itself.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark import SparkConf

from streamer.spark.compat import FALLBACKS, Fallback, Fallbacks
from streamer.spark.jvm.own_classes import define_classes, is_one_jvm

FILE_SYSTEM_SETTING: Final = "spark.hadoop.fs.file.impl"
FILE_SYSTEM: Final = "org.apache.hadoop.fs.UnforkedLocalFileSystem"
_NEIGHBOUR: Final = "org.apache.hadoop.fs.LocalFileSystem"
_CLASS_NAMES: Final = ("UnforkedRawLocalFileSystem", "UnforkedLocalFileSystem")


def use_unforked_files(
    jvm: Any, settings: SparkConf, master: str, fallbacks: Fallbacks = FALLBACKS
) -> None:
    """Have a Spark of one machine use `FILE_SYSTEM`, unless its user has named another.

    Args:
        jvm: py4j's view of its JVM, before Spark is started there.
        settings: what it is going to start with.
        master: a Spark master URL.
        fallbacks: counts where it does not work.
    """
    if (
        is_one_jvm(master)
        and not settings.contains(FILE_SYSTEM_SETTING)
        and define_classes(jvm, _NEIGHBOUR, _CLASS_NAMES, Fallback.FORKED_FILES, fallbacks)
    ):
        settings.set(FILE_SYSTEM_SETTING, FILE_SYSTEM)
