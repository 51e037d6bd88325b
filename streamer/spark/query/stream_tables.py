"""The lookup tables of a stream on the driver: kept in its checkpoint, and shipped to workers."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from streamer.core.log_format import LogLine
from streamer.engine.driver.table_versions import TableMeters, TableVersions
from streamer.engine.planner.checkpoint_path import CheckpointPath
from streamer.engine.planner.offset_log import newest_number
from streamer.engine.report.stream_metrics import StreamMetrics
from streamer.plan import Plan
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.lookup_table import build_loaders
from streamer.sdk.spec import Kind
from streamer.spark.checkpoint.checkpoint import Checkpoint
from streamer.spark.tasks.stages import set_tables
from streamer.spark.tasks.worker_tables import describe_versions

DIRECTORY = "tables"
_DEFAULT_SESSION = "default"
"""The name that Spark keeps the files of `SparkContext.addFile` under."""


class StreamTables:
    """The tables of one query. On a cluster workers fetch versions from the driver, by Spark."""

    def __init__(
        self, plan: Plan, checkpoint: Checkpoint, log: LogLine, meters: StreamMetrics
    ) -> None:
        """Build the tables of a plan; there may be none."""
        self._checkpoint = checkpoint
        self._directory = checkpoint.root / DIRECTORY
        is_shared = plan.master.startswith("local") and not plan.master.startswith("local-cluster")
        self._workers_read = is_shared and isinstance(self._directory, Path)
        self._session: SparkSession | None = None
        self._shipped: set[str] = set()
        labels = {
            label: ComponentRef(component).fields
            for (kind, label), component in plan.resources.items()
            if kind == Kind.TABLE
        }
        self._labels = labels
        self._versions: TableVersions | None = None
        if labels:
            self._versions = TableVersions(
                self._directory,
                build_loaders(plan.resources, plan.context()),
                log,
                TableMeters(
                    lambda name, label: meters.count(name, labels[label]),
                    lambda name, label, value: meters.set(name, labels[label], value),
                ),
                on_removed=self._withdraw,
            )

    def open(self) -> None:
        """Load the tables, and keep them fresh.

        Raises:
            TableError: one cannot be loaded.
        """
        if self._versions is not None:
            planned = newest_number(self._checkpoint.spark / "offsets")
            number = -1 if planned is None else self._checkpoint.global_batch_number(planned)
            self._versions.open(number)

    def close(self) -> None:
        """End the checks for changes."""
        if self._versions is not None:
            self._versions.close()

    def prepare(self, batch: DataFrame, number: int) -> None:
        """Pass the versions to a micro-batch's tasks, from the thread that is about to run them.

        Args:
            batch: the micro-batch.
            number: its number among those of all generations.
        """
        if self._versions is None:
            return
        versions = self._versions.versions_for(number)
        directory = str(self._directory) if self._workers_read else ""
        if not self._workers_read:
            self._session = batch.sparkSession
            for label, version in versions.items():
                self._ship(self._versions.path_of(label, version), batch.sparkSession)
        set_tables(batch, describe_versions(versions, directory))

    def read_gauges(self) -> dict[str, float]:
        """Return the age of the oldest table, seconds, by the name of its metric."""
        ages = self._versions.read_ages() if self._versions is not None else {}
        return {"table_age_seconds": max(ages.values())} if ages else {}

    def _ship(self, path: CheckpointPath, session: SparkSession) -> None:
        if path.name not in self._shipped:
            session.sparkContext.addFile(str(path))
            self._shipped.add(path.name)

    def _withdraw(self, path: CheckpointPath) -> None:
        """Let executors that start from now on not fetch a version that is about to be deleted."""
        if path.name not in self._shipped or self._session is None:
            return
        self._shipped.discard(path.name)
        with suppress(Py4JError):
            forget_file(self._session, path.name)


def forget_file(session: SparkSession, name: str) -> None:
    """Take a file out of those that `SparkContext.addFile` has Spark's executors fetch.

    Spark has no public way to do so: an executor that starts later would fail for a file that is
    no longer there.
    """
    context = session.sparkContext
    by_session = context._jsc.sc().addedFiles()
    files = by_session.apply(_DEFAULT_SESSION)
    keys = files.keySet().mkString("\n").split("\n")
    for key in keys:
        if key.rpartition("/")[2] == name:
            files.remove(key)
