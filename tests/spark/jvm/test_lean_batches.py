"""What costs micro-batches for nothing is taken out of Spark's JVM, and nothing else with it."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf

from streamer.spark.cluster.executors import describe_executors
from streamer.spark.compat import FALLBACKS, Fallback, Fallbacks, java_packages, java_spark
from streamer.spark.jvm.lean_batches import (
    CODEGEN_SETTING,
    forget_setting_sources,
    interpret_projections,
    make_batches_lean,
    stop_query_pages,
)


def test_threads_without_a_session_make_projections_as_the_sessions_do(session: Any) -> None:
    settings = java_packages(session.sparkContext).org.apache.spark.sql.internal.SQLConf
    for _ in range(2):
        assert settings.getFallbackConf().codegenFactoryMode().toString() == "NO_CODEGEN"
        # Starting again, for another session of the same JVM, changes nothing.
        make_batches_lean(session)
    assert FALLBACKS.counts()[Fallback.COSTLY_BATCHES] == 0


def test_hadoop_keeps_its_settings_and_forgets_their_files(session: Any) -> None:
    settings = java_spark(session.sparkContext).hadoopConfiguration()
    assert settings.size() > 300
    assert settings.get("fs.AbstractFileSystem.file.impl") == "org.apache.hadoop.fs.local.LocalFs"
    assert settings.getPropertySources("fs.AbstractFileSystem.file.impl") is None


def test_a_query_leaves_no_page_and_its_tasks_are_counted(session: Any) -> None:
    context = session.sparkContext

    def finished() -> float:
        java_spark(context).listenerBus().waitUntilEmpty()
        return sum(one["task_seconds"] for one in describe_executors(context, 9))

    pages = session._jsparkSession.sharedState().statusStore().executionsCount()
    before = finished()
    query = "select count(distinct id * id % 1e9) from range(0, 300000, 1, 2)"
    assert session.sql(query).collect()
    assert finished() > before
    assert session._jsparkSession.sharedState().statusStore().executionsCount() == pages


class Strange:
    """Stands for a Spark that has none of the parts."""

    master = "local[2]"

    def __getattr__(self, name: str) -> Any:
        raise Py4JError(f"there is no {name}\nand a trace")


def test_each_part_that_is_not_as_it_is_known_is_counted() -> None:
    fallbacks, spark = Fallbacks(), Strange()
    settings = SparkConf(loadDefaults=False).set(CODEGEN_SETTING, "NO_CODEGEN")
    interpret_projections(spark, settings, "local[2]", fallbacks)
    forget_setting_sources(spark, fallbacks)  # type: ignore[arg-type]
    stop_query_pages(spark, fallbacks)  # type: ignore[arg-type]
    assert fallbacks.counts()[Fallback.COSTLY_BATCHES] == 3
    interpret_projections(spark, settings, "spark://somewhere:7077", fallbacks)
    interpret_projections(spark, SparkConf(loadDefaults=False), "local[2]", fallbacks)
    assert fallbacks.counts()[Fallback.COSTLY_BATCHES] == 3
