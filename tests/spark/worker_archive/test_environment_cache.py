"""The cache of environments on a worker's host: unpacked once, mended, bounded, and not needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from streamer.spark.worker_archive import Packages, environment_cache, write_archive
from streamer.spark.worker_archive.archive import WORKER_PYTHON, worker_launcher_script
from streamer.spark.worker_archive.environment_cache import (
    EnvironmentCache,
    acquire_environment,
    archive_key,
)

PATH = f"{Path(sys.executable).parent}:/usr/bin:/bin"
CODE = "import greeting; print(greeting.TEXT)"


@pytest.fixture
def archive(tmp_path: Path) -> Callable[[str], str]:
    """Makes the archive of a package of a module, of a version."""

    def make(version: str = "1.0") -> str:
        module = tmp_path / "greeting.py"
        module.write_text(f"TEXT = 'hello {version}'\n")
        path = tmp_path / f"environment-{version}.tar.gz"
        write_archive(path, Packages({"greeting": version}, {"greeting.py": module}))
        return str(path)

    return make


@pytest.fixture
def cache(tmp_path: Path) -> EnvironmentCache:
    return EnvironmentCache(str(tmp_path / "cache"))


def executor(directory: Path, archive: str, key: str, environ: dict[str, str]) -> list[str]:
    """Return what starts Python where an executor of a cluster would."""
    directory.mkdir()
    shutil.copy(environment_cache.__file__, directory)
    if "/" not in archive:
        shutil.copy(directory.parent / archive, directory)
    script = directory / WORKER_PYTHON
    script.write_text(worker_launcher_script(sys.version_info[:2], archive, key))
    script.chmod(0o755)
    variables = (f"{name}={text}" for name, text in {"PATH": PATH, **environ}.items())
    return ["env", "-i", *variables, f"./{script.name}"]


def run(command: list[str], directory: Path, code: str = CODE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, "-c", code], cwd=directory, capture_output=True, text=True, timeout=60
    )


def test_executors_that_start_at_once_unpack_it_once(
    tmp_path: Path, archive: Callable[[str], str]
) -> None:
    path = archive("1.0")
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    commands = [
        (executor(tmp_path / f"{n}", path, "", environ), tmp_path / f"{n}") for n in range(4)
    ]
    with ThreadPoolExecutor() as starts:
        found = list(starts.map(lambda one: run(*one), commands))
    assert [one.stdout for one in found] == ["hello 1.0\n"] * 4
    assert sum("is unpacked in" in one.stderr for one in found) == 1
    environments = tmp_path / "cache" / "streamer" / "environments"
    key = archive_key(path)
    assert {one.name for one in environments.iterdir()} == {".lock", key, f"{key}.lock"}
    assert environments.stat().st_mode & 0o077 == 0


def test_an_archive_that_spark_has_brought_is_deleted_when_it_is_unpacked(
    tmp_path: Path, archive: Callable[[str], str]
) -> None:
    path = Path(archive("1.0"))
    environ = {"HOME": str(tmp_path)}
    command = executor(tmp_path / "one", path.name, archive_key(str(path)), environ)
    assert run(command, tmp_path / "one").stdout == "hello 1.0\n"
    assert not (tmp_path / "one" / path.name).exists()
    # Spark starts another Python there when the first one has died.
    again = run(command, tmp_path / "one")
    assert (again.stdout, again.stderr) == ("hello 1.0\n", "")
    assert (tmp_path / ".cache" / "streamer" / "environments").is_dir()


def test_without_a_place_for_a_cache_each_has_its_own(
    tmp_path: Path, archive: Callable[[str], str]
) -> None:
    (tmp_path / "file").write_text("")
    environ = {"XDG_CACHE_HOME": str(tmp_path / "file")}
    command = executor(tmp_path / "one", archive("1.0"), "", environ)
    found = run(command, tmp_path / "one")
    assert found.stdout == "hello 1.0\n"
    assert "streamer: the environment cannot be kept for others on this host" in found.stderr
    assert (tmp_path / "one" / "environment" / "pack.json").is_file()
    assert run(command, tmp_path / "one").stderr == ""


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"")])
def test_one_that_is_damaged_is_unpacked_again(
    archive: Callable[[str], str], tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    told: list[str] = []
    cache = EnvironmentCache(str(tmp_path / "cache"), told.append)
    place, held = cache.acquire(archive("1.0"))
    lib = Path(place) / "lib"
    damage(lib / "greeting.py")
    os.close(cache.acquire(archive("1.0"))[1])
    assert "is not whole, and is unpacked again" in told[1]
    assert (lib / "greeting.py").read_text() == "TEXT = 'hello 1.0'\n"
    os.close(held)


def test_one_that_its_host_has_changed_is_whole(
    archive: Callable[[str], str], tmp_path: Path
) -> None:
    told: list[str] = []
    cache = EnvironmentCache(str(tmp_path / "cache"), told.append)
    lib = Path(cache.acquire(archive("1.0"))[0]) / "lib"
    # As Python does when it compiles, and an administrator who adds a certificate.
    (lib / "__pycache__").mkdir()
    (lib / "__pycache__" / "greeting.pyc").write_bytes(b"x")
    (lib / "greeting.py").write_text("TEXT = 'another greeting'\n")
    cache.acquire(archive("1.0"))
    assert len(told) == 1


def test_an_archive_that_is_broken_off_leaves_nothing(
    tmp_path: Path, archive: Callable[[str], str], cache: EnvironmentCache
) -> None:
    path = Path(archive("1.0"))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 20])
    with pytest.raises(OSError, match="is not a complete archive"):
        cache.acquire(str(path))
    names = {one.name for one in (tmp_path / "cache").iterdir()}
    assert {name for name in names if not name.endswith(".lock")} == set()
    path.write_bytes(whole)
    os.close(cache.acquire(str(path))[1])


def test_what_is_no_archive_of_ours_is_named(tmp_path: Path, cache: EnvironmentCache) -> None:
    path = tmp_path / "other.tar.gz"
    with tarfile.open(path, "w:gz") as out:
        out.add(__file__, "test.py")
    with pytest.raises(OSError, match="other.tar.gz was not made by `streamer pack`"):
        cache.acquire(str(path))
    path.write_bytes(b"nothing")
    with pytest.raises(OSError, match="other.tar.gz is not a complete archive"):
        cache.acquire(str(path))


def test_those_that_nobody_uses_are_removed_but_for_one(
    tmp_path: Path, archive: Callable[[str], str], cache: EnvironmentCache
) -> None:
    used = cache.acquire(archive("1"))
    keys = [archive_key(archive("1"))]
    for version in ("2", "3", "4"):
        place, held = cache.acquire(archive(version))
        keys.append(Path(place).name)
        os.close(held)
        # Of two that are used within a tick of the file system's clock, either is the later one.
        os.utime(f"{place}.lock", (len(keys), len(keys)))
    kept = {path.name for path in (tmp_path / "cache").iterdir() if path.suffix == ""}
    assert kept == {".lock", keys[0], keys[2], keys[3]}
    os.close(used[1])
    cache.acquire(archive("5"))
    assert not (tmp_path / "cache" / keys[2]).exists()


def test_a_program_keeps_its_environment_for_as_long_as_it_runs(
    tmp_path: Path, archive: Callable[[str], str]
) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    command = executor(tmp_path / "one", archive("1"), "", environ)
    code = "import sys, greeting; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [*command, "-c", code],
        cwd=tmp_path / "one",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as program:
        assert program.stdout is not None and program.stdout.readline()
        for version in ("2", "3", "4"):
            _, held = acquire_environment(archive(version), str(tmp_path / "x"), environ, print)
            assert held is not None
            os.close(held)
        left = {path.name for path in (tmp_path / "streamer" / "environments").iterdir()}
        assert archive_key(archive("1")) in left and archive_key(archive("2")) not in left
        program.kill()


def test_an_archive_that_is_not_there_is_named(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = executor(tmp_path / "one", "/nowhere/e.tar.gz", "", environ)
    found = run(command, tmp_path / "one")
    assert found.returncode == 1
    assert "streamer: no environment on " in found.stderr and "/nowhere/e.tar.gz" in found.stderr
