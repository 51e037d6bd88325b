"""Hadoop's local file system without a process for each file.

Hadoop sets the mode of each file that it creates, by a process `chmod` where its native library is
missing, which no PySpark has. Spark writes two files for each log and each shard of a micro-batch,
one of them with sums: four processes without windows and eight with two shards, 3 ms of CPU each.

The two classes in `classes` set the mode by Java itself. Their sources are beside them; `python -m
tests.spark.jvm.java_classes` compiles them with the compiler that Spark brings.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkConf

from streamer.spark.compat import FALLBACKS, Fallback, Fallbacks

FILE_SYSTEM_SETTING: Final = "spark.hadoop.fs.file.impl"
FILE_SYSTEM: Final = "org.apache.hadoop.fs.UnforkedLocalFileSystem"
CLASSES_DIRECTORY: Final = Path(__file__).with_name("classes")
_CLASS_NAMES: Final = ("UnforkedRawLocalFileSystem", "UnforkedLocalFileSystem")
"""The names, each before the classes that need it."""
_NEIGHBOUR: Final = "org.apache.hadoop.fs.LocalFileSystem"
"""A class of the same package and class loader."""


def use_unforked_files(jvm: Any, settings: SparkConf, master: str) -> None:
    """Have a Spark of one machine use `FILE_SYSTEM`, unless its user has named another.

    Args:
        jvm: py4j's view of its JVM, before Spark is started there.
        settings: what it is going to start with.
        master: a Spark master URL. Workers of a cluster have JVMs that do not know the class.
    """
    is_one_jvm = re.match(r"local($|\[)", master) is not None
    if is_one_jvm and not settings.contains(FILE_SYSTEM_SETTING) and define_file_system(jvm):
        settings.set(FILE_SYSTEM_SETTING, FILE_SYSTEM)


def define_file_system(jvm: Any, fallbacks: Fallbacks = FALLBACKS) -> bool:
    """Define the classes in a JVM, unless it has them.

    Args:
        jvm: py4j's view of it, before Spark is started there.
        fallbacks: counts what does not work.

    Returns:
        Whether `FILE_SYSTEM` can be used.
    """
    try:
        class_type, handles = jvm.java.lang.Class, jvm.java.lang.invoke.MethodHandles
        try:
            class_type.forName(FILE_SYSTEM)
        except Py4JError:
            lookup = handles.privateLookupIn(class_type.forName(_NEIGHBOUR), handles.lookup())
            for name in _CLASS_NAMES:
                lookup.defineClass((CLASSES_DIRECTORY / f"{name}.class").read_bytes())
    except (Py4JError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        fallbacks.add(Fallback.FORKED_FILES, reason)
        return False
    return True
