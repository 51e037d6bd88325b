"""Java classes of ours, which are defined in Spark's JVM while it runs, so that no jar is needed.

Their sources are beside them in `classes`; `python -m tests.spark.jvm.java_classes` compiles them
with the compiler that Spark brings. A class is defined in the package and by the loader of one that
Spark has. JVMs of a cluster's workers do not know it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError

from streamer.spark.compat import Fallback, Fallbacks

CLASSES_DIRECTORY: Final = Path(__file__).with_name("classes")


def is_one_jvm(master: str) -> bool:
    """Return whether the driver's JVM runs all tasks, by a Spark master URL."""
    return re.match(r"local($|\[)", master) is not None


def define_classes(
    jvm: Any, neighbour: str, names: Sequence[str], kind: Fallback, fallbacks: Fallbacks
) -> bool:
    """Define classes in a JVM, unless it has them.

    Args:
        jvm: py4j's view of it.
        neighbour: the full name of a class of the same package, and of the same class loader.
        names: of the classes, without their package, each before those that need it.
        kind: what is counted where this does not work.
        fallbacks: count it.

    Returns:
        Whether the JVM has them now.
    """
    try:
        class_type, handles = jvm.java.lang.Class, jvm.java.lang.invoke.MethodHandles
        package = neighbour.rpartition(".")[0]
        try:
            class_type.forName(f"{package}.{names[-1]}")
        except Py4JError:
            lookup = handles.privateLookupIn(class_type.forName(neighbour), handles.lookup())
            for name in names:
                lookup.defineClass((CLASSES_DIRECTORY / f"{name}.class").read_bytes())
    except (Py4JError, OSError) as error:
        fallbacks.add(kind, str(error).strip().partition("\n")[0])
        return False
    return True
