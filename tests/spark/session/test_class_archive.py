"""The archive of classes: which one fits, who may have written it, starts with and without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from streamer.core.errors import StreamerError
from streamer.spark.jvm.java import Java
from streamer.spark.session import class_archive
from streamer.spark.session.class_archive import (
    ClassArchive,
    cache_directory,
    draft_path,
    is_enabled,
)

JARS = ("a.jar", "b.jar")


@pytest.fixture
def java(tmp_path: Path) -> Java:
    home = tmp_path / "java"
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "libjvm.so").write_bytes(b"jvm")
    return Java(home, 25, "JAVA_HOME", home)


@pytest.fixture
def jars(tmp_path: Path) -> list[str]:
    for name in JARS:
        (tmp_path / name).write_bytes(b"classes")
    return [str(tmp_path / name) for name in JARS]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def archive(java: Java, jars: list[str], environ: dict[str, str]) -> ClassArchive:
    return ClassArchive.for_jvm(java, jars, environ)


def install(archive: ClassArchive, content: bytes = b"archive") -> int:
    with archive.lock() as mine:
        assert mine
        draft = archive.file.with_suffix(".draft")
        draft.write_bytes(content)
        return archive.install(draft, 1.0)


def test_one_that_was_made_is_used(archive: ClassArchive) -> None:
    assert archive.use_options() == []
    assert install(archive) == 7
    assert archive.is_usable()
    assert archive.use_options()[0] == f"-XX:AOTCache={archive.file}"
    assert archive.file.stat().st_mode & 0o777 == 0o400
    assert archive.file.parent.stat().st_mode & 0o777 == 0o700


def test_older_javas_have_another_kind(java: Java, jars: list[str], environ) -> None:
    older = Java(java.home, 17, "PATH", java.home)
    archive = ClassArchive.for_jvm(older, jars, environ)
    install(archive)
    assert archive.use_options()[0] == f"-XX:SharedArchiveFile={archive.file}"
    assert archive.make_options(Path("x"))[0] == "-XX:ArchiveClassesAtExit=x"


@pytest.mark.parametrize("changed", ["jar", "jvm", "order", "less", "version"])
def test_another_java_or_jar_has_another_archive(
    java: Java, jars: list[str], environ: dict[str, str], archive: ClassArchive, changed: str
) -> None:
    install(archive)
    assert ClassArchive.for_jvm(java, jars, environ) == archive
    if changed == "jar":
        Path(jars[0]).write_bytes(b"other classes")
    elif changed == "jvm":
        os.utime(java.library, (1, 1))
    elif changed == "order":
        jars.reverse()
    elif changed == "less":
        jars.pop()
    else:
        java = Java(java.home, 26, "PATH", java.home)
    found = ClassArchive.for_jvm(java, jars, environ)
    assert found != archive
    assert found.use_options() == []


def test_one_that_was_cut_is_not_used(archive: ClassArchive) -> None:
    install(archive)
    archive.file.chmod(0o600)
    with archive.file.open("r+b") as file:
        file.truncate(3)
    archive.file.chmod(0o400)
    assert not archive.is_usable()


@pytest.mark.parametrize("writable", ["file", "directory"])
def test_one_that_somebody_else_could_have_written_is_not_used(
    archive: ClassArchive, writable: str
) -> None:
    install(archive)
    path = archive.file if writable == "file" else archive.file.parent
    path.chmod(0o777)
    assert not archive.is_usable()


def test_one_of_another_user_is_not_used(
    archive: ClassArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(archive)
    os.chown(archive.file, 12345, -1) if os.getuid() == 0 else None
    monkeypatch.setattr(class_archive.os, "getuid", lambda: os.stat(archive.file).st_uid + 1)
    assert not archive.is_usable()


def test_two_do_not_make_it_at_once(archive: ClassArchive) -> None:
    with archive.lock() as first, archive.lock() as second:
        assert (first, second) == (True, False)
    with archive.lock() as third:
        assert third


def test_the_machines_is_used_where_the_user_has_none(
    java: Java, jars: list[str], environ, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_archive, "SHARED_DIRECTORY", tmp_path / "shared")
    shared = ClassArchive.for_jvm(java, jars, environ, tmp_path / "shared")
    install(shared)
    assert ClassArchive.for_jvm(java, jars, environ) == shared
    own = ClassArchive.for_jvm(java, jars, environ, cache_directory(environ))
    install(own)
    assert ClassArchive.for_jvm(java, jars, environ) == own


def test_those_that_nobody_uses_go(java: Java, jars: list[str], environ, tmp_path: Path) -> None:
    made = []
    for number in range(5):
        Path(jars[0]).write_bytes(b"x" * number)
        archive = ClassArchive.for_jvm(java, jars, environ)
        install(archive)
        made.append(archive)
        old = time.time() - 1000 + number
        os.utime(archive.record, (old, old))
    assert [archive.is_usable() for archive in made] == [False, False, True, True, True]
    assert len(list(cache_directory(environ).iterdir())) == 9


def test_nobody_tries_again_for_a_day_after_a_failure(archive: ClassArchive) -> None:
    archive.file.parent.mkdir(parents=True)
    assert archive.should_be_made()
    archive.note_failure()
    assert not archive.should_be_made()
    old = time.time() - 25 * 3600
    os.utime(archive.file.with_suffix(".failed"), (old, old))
    assert archive.should_be_made()
    install(archive)
    assert not archive.should_be_made()
    assert not archive.file.with_suffix(".failed").exists()


def test_a_full_disk_is_named(archive: ClassArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.file.parent.mkdir(parents=True)
    monkeypatch.setattr(class_archive, "free_bytes", lambda _: 5 << 20)
    assert not archive.should_be_made()
    with pytest.raises(StreamerError, match=r"has 5 MB free, .* takes 1024 MB; make room"):
        class_archive.check_free(archive.file.parent)


def test_a_directory_that_cannot_be_written_is_not_tried(archive: ClassArchive) -> None:
    blocker = archive.file.parent.parent
    blocker.parent.mkdir(parents=True)
    blocker.write_text("a file where the directory should be")
    assert not archive.is_usable()
    assert not archive.should_be_made()


@pytest.mark.parametrize(
    ("text", "wanted"), [("", True), ("on", True), ("off", False), ("OFF ", False), ("0", False)]
)
def test_it_can_be_turned_off(text: str, wanted: bool) -> None:
    assert is_enabled({"STREAMER_CLASS_ARCHIVE": text}) is wanted
    assert draft_path({"STREAMER_CLASS_ARCHIVE": text}) is None
    assert draft_path({"STREAMER_CLASS_ARCHIVE": "make:/x/y"}) == Path("/x/y")


CONFIG = """
http: {enabled: false}
input: {generate: {count: 1, interval: "", mapping: 'root.n = 1'}}
output: {stdout: {}}
"""


class Starts:
    """Starts of the program with a cache directory of their own."""

    def __init__(self, directory: Path) -> None:
        self.cache = directory / "cache"
        self.directory = directory
        (directory / "config.yaml").write_text(CONFIG)
        self.environ = {**os.environ, "XDG_CACHE_HOME": str(self.cache)}

    def start(self, name: str, **more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "streamer.cli.main", "-c", "config.yaml"]
        return subprocess.Popen(
            [*command, "--checkpoint", str(self.directory / name)],
            cwd=self.directory,
            env={**self.environ, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, name: str, **more: str) -> str:
        """Run to the end, check that it has done its work, and return its log."""
        out, log = self.start(name, **more).communicate(timeout=300)
        assert out == '{"n":1}\n', log
        return log

    def warm(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "streamer.cli.main", "warm"],
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def archives(self) -> list[Path]:
        found = self.cache / "streamer" / "jvm"
        return [path for path in found.glob("*") if path.suffix in (".aot", ".jsa")]


def uses(archive: Path) -> list[int]:
    """The processes that have an archive in their memory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(archive) in (process / "maps").read_text():
                found.append(int(process.name))
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_starts_with_an_archive_without_one_and_with_a_bad_one(tmp_path: Path) -> None:
    starts = Starts(tmp_path)
    # Two at once: one makes it, and the other leaves it to that.
    both = [starts.warm(), starts.warm()]
    said = sorted(process.communicate(timeout=900)[0] for process in both)
    assert [process.returncode for process in both] == [0, 0], said
    assert any("MB, made in" in text for text in said)
    assert any("another process makes" in text or "is there already" in text for text in said)
    (archive,) = starts.archives()
    about = json.loads(archive.with_suffix(".json").read_text())
    assert about["bytes"] == archive.stat().st_size > 50_000_000
    assert sorted(path.name for path in archive.parent.iterdir()) == sorted(
        archive.with_suffix(suffix).name for suffix in (archive.suffix, ".json", ".lock")
    )

    # A start uses it.
    process = starts.start("used")
    seen = False
    while process.poll() is None and not seen:
        seen = bool(uses(archive))
        time.sleep(0.02)
    out, log = process.communicate(timeout=300)
    assert (seen, out) == (True, '{"n":1}\n'), log

    # Not when it is turned off, and none is made then.
    while uses(archive):
        time.sleep(0.1)
    process = starts.start("off", STREAMER_CLASS_ARCHIVE="off")
    while process.poll() is None:
        assert not uses(archive)
        time.sleep(0.1)
    assert process.communicate()[0] == '{"n":1}\n'

    # One that is no archive, but as long as it should be: Java sees it, and the start goes on.
    size = archive.stat().st_size
    archive.chmod(0o600)
    with archive.open("r+b") as file:
        file.write(b"\0" * 4096)
    archive.chmod(0o400)
    assert archive.stat().st_size == size
    starts.run("bad")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    starts = Starts(tmp_path)
    starts.cache.write_text("a file where the directory should be")
    log = starts.run("unwritable")
    assert "rror" not in log
    process = starts.warm()
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "the archive of classes cannot be written to" in said
    assert "Traceback" not in said
