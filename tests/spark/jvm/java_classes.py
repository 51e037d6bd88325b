"""Compiles the classes of `streamer/spark/jvm/classes` with the compiler that Spark brings.

python -m tests.spark.jvm.java_classes
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamer.spark.jvm.own_classes import CLASSES_DIRECTORY

CLASS_FILE_VERSION = 8
"""Java's, of the classes: Spark's oldest Java is newer."""


def compile_classes(jvm: Any, gateway: Any) -> dict[str, bytes]:
    """Return the compiled classes by the names of their files.

    Args:
        jvm: py4j's view of a JVM with Spark's jars.
        gateway: py4j's gateway to it.
    """
    resources = jvm.org.codehaus.commons.compiler.util.resource
    janino = jvm.org.codehaus.janino
    compiler, made = janino.Compiler(), jvm.java.util.HashMap()
    compiler.setSourceVersion(CLASS_FILE_VERSION)
    compiler.setTargetVersion(CLASS_FILE_VERSION)
    compiler.setClassFileCreator(resources.MapResourceCreator(made))
    compiler.setClassFileFinder(resources.ResourceFinder.EMPTY_RESOURCE_FINDER)
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    compiler.setIClassLoader(janino.ClassLoaderIClassLoader(loader))
    sources = sorted(CLASSES_DIRECTORY.glob("*.java"))
    given = gateway.new_array(resources.Resource, len(sources))
    for number, source in enumerate(sources):
        given[number] = resources.StringResource(source.name, source.read_text())
    compiler.compile(given)
    return {Path(name).name: bytes(made[name]) for name in made}


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    context = SparkSession.builder.master("local[1]").getOrCreate().sparkContext
    for name, code in compile_classes(context._jvm, context._gateway).items():
        (CLASSES_DIRECTORY / name).write_bytes(code)
