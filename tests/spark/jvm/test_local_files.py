"""Spark creates files on this machine without a process for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError

from streamer.spark.compat import Fallback, Fallbacks, java_gateway, java_packages, java_spark
from streamer.spark.jvm.local_files import CLASSES_DIRECTORY, FILE_SYSTEM, define_file_system
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
    fallbacks = Fallbacks()
    assert not define_file_system(Unwilling(), fallbacks)
    assert fallbacks.counts()[Fallback.FORKED_FILES] == 1
    lines: list[str] = []
    fallbacks.log_new(lambda level, text, fields: lines.append(text))
    assert len(lines) == 1 and "(no such class)" in lines[0]
