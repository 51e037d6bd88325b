"""What Spark is told on a cluster, beside what the user says."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.core.errors import StreamerError
from streamer.spark.cluster.worker_setup import (
    ENVIRONMENT_SETTING,
    SETTINGS,
    prepare_worker_setup,
    with_default_settings,
)
from streamer.spark.worker_archive import Packages, write_archive
from streamer.spark.worker_archive.archive import WORKER_PYTHON
from streamer.spark.worker_archive.environment_cache import archive_key


def test_the_users_settings_win() -> None:
    found = with_default_settings({"spark.network.timeout": "300s", "spark.foo": "x"})
    assert found == {**SETTINGS, "spark.network.timeout": "300s", "spark.foo": "x"}


def test_no_executor_is_passed_over_where_spark_would_refuse_it() -> None:
    passes = "spark.excludeOnFailure.enabled"
    assert with_default_settings({"spark.task.maxFailures": "4"})[passes] == "true"
    assert with_default_settings({"spark.task.maxFailures": "3"})[passes] == "false"
    few = {"spark.task.maxFailures": "1", passes: "true"}
    assert with_default_settings(few)[passes] == "true"


def test_a_cut_of_twenty_seconds_costs_no_executor() -> None:
    beat = float(SETTINGS["spark.executor.heartbeatInterval"].removesuffix("s"))
    patience = float(SETTINGS["spark.network.timeout"].removesuffix("s"))
    # TCP tries again after 0.2 s, and each time after twice as long.
    tries = [0.2 * (2**n - 1) for n in range(1, 9)]
    assert beat + next(at for at in tries if at + beat > 20) < patience


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "environment.tar.gz"
    write_archive(path, Packages({"greeting": "1.0"}, {}))
    return path


def shipped(environment: str, master: str = "spark://a:7077") -> tuple[str, list[str], str]:
    """Return the workers' Python, the names of what is brought to them, and its script."""
    found = prepare_worker_setup({ENVIRONMENT_SETTING: environment}, lambda *_: None, master)
    [files] = found.settings.values()
    paths = [Path(path) for path in files.split(",")]
    script = paths[0].read_text() if paths[0].is_file() and paths[0].name == WORKER_PYTHON else ""
    return found.python, [path.name for path in paths], script


def test_an_archive_with_a_path_is_brought_to_executors_with_what_unpacks_it_once(
    archive: Path,
) -> None:
    python, names, script = shipped(str(archive))
    assert python == f"./{WORKER_PYTHON}"
    assert names == [WORKER_PYTHON, "environment_cache.py", archive.name]
    assert f'"$here"/{archive.name} "{archive_key(str(archive))}"' in script


def test_an_archive_that_workers_have_is_brought_to_none(archive: Path) -> None:
    _, names, script = shipped(f"local:{archive}")
    assert names == [WORKER_PYTHON, "environment_cache.py"]
    assert f'{archive} "{archive_key(str(archive))}"' in script
    # The driver's machine need not have it.
    assert '/there/e.tar.gz ""' in shipped("local:/there/e.tar.gz")[2]


def test_an_archive_at_a_url_is_known_when_a_worker_has_it() -> None:
    _, names, script = shipped("s3a://ours/e.tar.gz")
    assert names == [WORKER_PYTHON, "environment_cache.py", "e.tar.gz"]
    assert '"$here"/e.tar.gz ""' in script


def test_yarn_unpacks_an_archive_once_for_a_node(archive: Path) -> None:
    python, names, _ = shipped(str(archive), "yarn")
    assert (python, names) == ("./environment/bin/python3", [f"{archive.name}#environment"])
    assert shipped(f"local:{archive}", "yarn")[1] == [WORKER_PYTHON, "environment_cache.py"]


def test_an_archive_that_is_none_of_ours_is_refused_before_spark_starts(tmp_path: Path) -> None:
    path = tmp_path / "e.tar.gz"
    path.write_bytes(b"nothing")
    with pytest.raises(StreamerError, match="e.tar.gz is not a complete archive.*`streamer pack`"):
        shipped(str(path))
