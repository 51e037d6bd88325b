"""Classes of ours in Spark's JVM: files without a process for each, and how they are made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf

from streamer.spark.compat import Fallback, Fallbacks, java_gateway, java_packages, java_spark
from streamer.spark.jvm.local_files import FILE_SYSTEM, FILE_SYSTEM_SETTING, use_unforked_files
from streamer.spark.jvm.own_classes import CLASSES_DIRECTORY
from tests.spark.jvm.java_classes import compile_classes


def ended_children(process: int) -> str:
    """Return the page faults of all processes that this one has started and that have ended."""
    return Path("/proc", str(process), "stat").read_text().rpartition(")")[2].split()[8]


def test_spark_sets_the_modes_of_its_files_without_a_process(session: Any, tmp_path: Path) -> None:
    context = session.sparkContext
    jvm, process = java_packages(context), java_gateway(context).proc.pid
    hadoop = jvm.org.apache.hadoop
    settings = java_spark(context).hadoopConfiguration()
    files = hadoop.fs.FileSystem.get(hadoop.fs.Path(str(tmp_path)).toUri(), settings)
    assert files.getClass().getName() == FILE_SYSTEM
    before = ended_children(process)
    for mode in (0o644, 0o600, 0o755, 0o007):
        path = hadoop.fs.Path(str(tmp_path / f"{mode:o}"))
        files.create(path).close()
        made = [tmp_path / f"{mode:o}", tmp_path / f".{mode:o}.crc"]
        assert [one.stat().st_mode & 0o7777 for one in made] == [0o644, 0o644]
        files.setPermission(path, hadoop.fs.permission.FsPermission(f"{mode:04o}"))
        assert (tmp_path / f"{mode:o}").stat().st_mode & 0o7777 == mode
    assert ended_children(process) == before
    # What Java cannot set is left to the process.
    path = hadoop.fs.Path(str(tmp_path / "644"))
    files.setPermission(path, hadoop.fs.permission.FsPermission("1755"))
    assert (tmp_path / "644").stat().st_mode & 0o7777 == 0o1755
    assert ended_children(process) != before


def test_the_classes_are_those_of_their_sources(session: Any) -> None:
    context = session.sparkContext
    made = compile_classes(java_packages(context), java_gateway(context))
    kept = {one.name: one.read_bytes() for one in CLASSES_DIRECTORY.glob("*.class")}
    assert made == kept, "run python -m tests.spark.jvm.java_classes"


class Unwilling:
    """Stands for a JVM that does not do what it is asked."""

    def __getattr__(self, name: str) -> Any:
        if name == "forName":
            raise Py4JError("no such class\nand a trace")
        return self


def test_a_jvm_that_does_not_take_the_classes_is_counted() -> None:
    fallbacks, settings = Fallbacks(), SparkConf(loadDefaults=False)
    use_unforked_files(Unwilling(), settings, "local[2]", fallbacks)
    assert not settings.contains(FILE_SYSTEM_SETTING)
    assert fallbacks.counts()[Fallback.FORKED_FILES] == 1
    lines: list[str] = []
    fallbacks.log_new(lambda level, text, fields: lines.append(text))
    assert len(lines) == 1 and "(no such class)" in lines[0]


def test_a_cluster_and_a_user_that_names_a_file_system_keep_theirs() -> None:
    settings = SparkConf(loadDefaults=False)
    for master in ("local-cluster[2,1,1024]", "spark://somewhere:7077", "yarn"):
        use_unforked_files(Unwilling(), settings, master, Fallbacks())
    settings.set(FILE_SYSTEM_SETTING, "theirs")
    fallbacks = Fallbacks()
    use_unforked_files(Unwilling(), settings, "local", fallbacks)
    assert settings.get(FILE_SYSTEM_SETTING) == "theirs"
    assert fallbacks.counts()[Fallback.FORKED_FILES] == 0
