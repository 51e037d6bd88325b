"""Options of the JVM's compilers and collector.

Without Kafka the JVM moves a few rows of packs: code that is compiled fast, and once, is best (a
start took 9.8 s instead of 10.7, and a short run 15 s of CPU instead of 25). A message of Kafka is
a row, which goes through consumer, rows and Arrow: a loop for each message, for which code that is
optimised pays within the first million. And it is garbage soon: with the heap of other streams,
1 GB and one thread that clears it, a fifth of the time went into that (304,000 messages a second
became 364,000, and 5.0 s of CPU for a million 4.5).

What pays is the loop alone. Of the optimising compiler's time nine parts of ten went into loading
classes, planning, sending tasks and waiting for the network; told to leave those, it takes 0.25 s
of CPU for each of the first eight million messages where it took 0.95.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

FULL_OPTIMISATION_OPTION: Final = "-XX:TieredStopAtLevel=4"
"""Optimise what is run often. The last of such options holds: it comes after the session's."""

_COMPILER_DIRECTIVES_OPTION: Final = (
    f'"-XX:CompilerDirectivesFile={Path(__file__).with_name("compiler-directives.json")}"'
)
"""Not what runs for each class, task or micro-batch; quoted, for a directory may have a blank."""

_DRIVER_OPTIONS_SETTING: Final = "spark.driver.extraJavaOptions"

EXECUTOR_OPTIONS_SETTING: Final = "spark.executor.extraJavaOptions"

EXECUTOR_OPTIONS: Final = f"{FULL_OPTIMISATION_OPTION} -XX:-UseSerialGC"
"""For a JVM on another machine, which does not have the file that says what is left out of
optimising when it starts; how the heap is cleared, Java chooses by the cores."""

_GC_OPTIONS: Final = "-XX:-UseSerialGC -XX:+UseParallelGC -XX:+UseTransparentHugePages"
"""All cores clear the heap, while nothing else can run."""

_HEAP_SETTING: Final = "spark.driver.memory"
_HEAP_SIZE: Final = "2g"
_YOUNG_HEAP_OPTION: Final = "-Xmn1g"
"""What is fetched, and the rows of it, end before they are taken for lasting."""


def per_message_jvm_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a Spark whose JVM handles every message.

    Args:
        conf: the user's Spark settings, which win.

    Returns:
        Settings to put over `conf`.
    """
    options = [
        FULL_OPTIMISATION_OPTION,
        _COMPILER_DIRECTIVES_OPTION,
        _GC_OPTIONS,
        conf.get(_DRIVER_OPTIONS_SETTING, ""),
    ]
    executors = " ".join(filter(None, (EXECUTOR_OPTIONS, conf.get(EXECUTOR_OPTIONS_SETTING, ""))))
    if _HEAP_SETTING in conf:
        return {
            _DRIVER_OPTIONS_SETTING: " ".join(filter(None, options)),
            EXECUTOR_OPTIONS_SETTING: executors,
        }
    options.insert(3, _YOUNG_HEAP_OPTION)
    return {
        _HEAP_SETTING: _HEAP_SIZE,
        _DRIVER_OPTIONS_SETTING: " ".join(filter(None, options)),
        EXECUTOR_OPTIONS_SETTING: executors,
    }
