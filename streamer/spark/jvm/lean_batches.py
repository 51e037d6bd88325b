"""Parts of Spark that cost each micro-batch CPU for nothing, taken out of a JVM that has started.

Measured with a message in a window and two shards, which took 0.112 s of CPU:

- Threads that serve Python's state run for no session. Spark's settings for such threads generate
  and format Java code for each projection of each shard, which is thrown away: 9 ms.
- The settings of Hadoop travel with each micro-batch, and for each of a thousand the name of the
  file that it is from, compressed by itself: 3 ms.
- What SQL's page would show of a query is summed up, where there is no page: 1.5 ms.
"""

from __future__ import annotations

from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from streamer.spark.compat import FALLBACKS, Fallback, Fallbacks, java_packages, java_spark
from streamer.spark.jvm.own_classes import define_classes, is_one_jvm

CODEGEN_SETTING: Final = "spark.sql.codegen.factoryMode"
_NEIGHBOUR: Final = "org.apache.spark.sql.internal.SQLConf"
_CLASS_NAME: Final = "InterpretedSettings"


def make_batches_lean(session: SparkSession, fallbacks: Fallbacks = FALLBACKS) -> None:
    """Take out of a JVM what is known to cost micro-batches for nothing.

    Args:
        session: the first of a Spark that has just started.
        fallbacks: counts each part that is not as it is known.
    """
    context = session.sparkContext
    settings = context.getConf()
    interpret_projections(java_packages(context), settings, context.master, fallbacks)
    forget_setting_sources(context, fallbacks)
    if settings.get("spark.ui.enabled", "true") == "false":
        stop_query_pages(session, fallbacks)


def interpret_projections(
    jvm: Any, settings: SparkConf, master: str, fallbacks: Fallbacks = FALLBACKS
) -> None:
    """Let threads without a session make projections as the sessions' settings say.

    Args:
        jvm: py4j's view of it.
        settings: Spark's.
        master: a Spark master URL; JVMs of a cluster's workers are left as they are.
        fallbacks: counts where it does not work.
    """
    mode = settings.get(CODEGEN_SETTING, None)
    kind = Fallback.COSTLY_BATCHES
    if mode is None or not is_one_jvm(master):
        return
    if define_classes(jvm, _NEIGHBOUR, (_CLASS_NAME,), kind, fallbacks):
        try:
            jvm.org.apache.spark.sql.internal.InterpretedSettings.install(mode)
        except Py4JError as error:
            _add_fallback(error, fallbacks)


def forget_setting_sources(context: SparkContext, fallbacks: Fallbacks = FALLBACKS) -> None:
    """Let Hadoop's settings forget the files that they are from; nothing but pages shows them."""
    try:
        settings = java_spark(context).hadoopConfiguration()
        field = settings.getClass().getDeclaredField("updatingResource")
        field.setAccessible(True)
        # They are read when the first is asked for.
        settings.size()
        field.get(settings).clear()
    except (Py4JError, AttributeError, TypeError) as error:
        _add_fallback(error, fallbacks)


def stop_query_pages(session: SparkSession, fallbacks: Fallbacks = FALLBACKS) -> None:
    """Let nobody listen to what SQL's page would show."""
    try:
        listener = session._jsparkSession.sharedState().statusStore().listener()
        if listener.isDefined():
            java_spark(session.sparkContext).listenerBus().removeListener(listener.get())
    except (Py4JError, AttributeError, TypeError) as error:
        _add_fallback(error, fallbacks)


def _add_fallback(error: Exception, fallbacks: Fallbacks) -> None:
    fallbacks.add(Fallback.COSTLY_BATCHES, str(error).strip().partition("\n")[0])
