"""The image: what it says of itself, what is in it, and what is not."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamer import __version__
from streamer.core.extras import DISTRIBUTION, EXTRAS, NOT_IN_ALL
from tests.deploy.container import USER, Container
from tests.deploy.image import ROOT, Image

# The first one builds the image, where there is none yet.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

_WRITABLE = {"/data", "/tmp", "/var/tmp", "/run/lock"}
"""The volume and what Debian lets everybody write; /dev and /proc are the engine's."""

_MOST = 2050
"""Megabytes that the image may have: Spark is 450 of them, Java's archive of classes 180, tables of
Delta Lake and Iceberg 200, databases that few have (SQL Server, Oracle) 70, WebAssembly 30, other
packages of Python most of the rest."""


def files(image: Image) -> Iterator[Path]:
    for folder, folders, names in os.walk(image.root):
        folders[:] = [name for name in folders if not os.path.ismount(os.path.join(folder, name))]
        for name in (*names, *folders):
            yield Path(folder) / name


def test_engines_are_told_how_to_run_it(image: Image) -> None:
    config = image.config
    assert config["Entrypoint"] == ["/usr/bin/tini", "--", "/opt/streamer/bin/streamer"]
    assert not config.get("Cmd")
    assert config["User"] == f"{USER}:{USER}"
    assert config["Volumes"] == {"/data": {}}
    assert config["WorkingDir"] == "/data"
    assert config["ExposedPorts"] == {"4195/tcp": {}}
    assert config["StopSignal"] == "SIGTERM"
    assert config["Healthcheck"]["Test"][0] == "CMD"
    labels = {name.rpartition(".")[2] for name in config["Labels"]}
    assert {"title", "description", "version", "revision", "created"} <= labels


def test_its_size(image: Image, capsys: pytest.CaptureFixture[str]) -> None:
    said = subprocess.run(
        ["du", "-xsm", image.root], capture_output=True, text=True, check=True, timeout=120
    )
    size = int(said.stdout.split()[0])
    with capsys.disabled():
        print(f"\nthe image has {size} MB")
    assert size < _MOST


def test_nothing_can_be_written_but_the_volume_and_temporary_files(image: Image) -> None:
    found = set()
    for path in files(image):
        inside = "/" + str(path.relative_to(image.root))
        if inside.startswith(("/proc/", "/dev/", "/sys/")):
            continue
        mode = path.lstat()
        mine = mode.st_uid == USER or mode.st_gid == USER
        if not stat.S_ISLNK(mode.st_mode) and (mode.st_mode & stat.S_IWOTH or mine):
            found.add(inside)
    assert found <= _WRITABLE
    assert {"/data", "/tmp"} <= found


def test_nothing_gives_other_rights(image: Image) -> None:
    special = [
        path
        for path in files(image)
        if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o6000
    ]
    assert special == []


def test_nothing_of_its_making_is_left(image: Image) -> None:
    for name in ("gcc", "cc", "make", "git", "mvn", "javac", "curl", "wget"):
        for place in ("usr/bin", "usr/local/bin", "opt/streamer/bin"):
            assert not (image.root / place / name).exists(), name
    for place in ("var/lib/apt/lists", "root/.cache", "build", "deploy", "jars", "run/secrets"):
        left = image.root / place
        assert not left.is_dir() or not any(left.iterdir()), place
    (packages,) = (image.root / "opt/streamer/lib").glob("python3.*/site-packages")
    assert not [p for p in packages.iterdir() if re.match(r"pip\b|setuptools|cyclonedx", p.name)]
    secret = (Path("/etc/ssl/certs/ca-certificates.crt")).read_bytes()
    assert (image.root / "etc/ssl/certs/ca-certificates.crt").read_bytes() != b""
    for path in (image.root / "opt/streamer").rglob("*.pem"):
        assert path.read_bytes() != secret


def test_the_code_is_compiled_since_it_cannot_be_when_it_runs(image: Image) -> None:
    (package,) = (image.root / "opt/streamer/lib").glob("python3.*/site-packages/streamer")
    for source in package.rglob("*.py"):
        compiled = source.parent / "__pycache__"
        assert [*compiled.glob(f"{source.stem}.cpython-*.pyc")], source


def test_the_bill_of_materials_has_what_is_in_it(image: Image) -> None:
    bill = json.loads((image.root / "opt/streamer/share/sbom.cdx.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    about = bill["metadata"]["component"]
    assert (about["name"], about["version"]) == (DISTRIBUTION, __version__)
    named = {part.get("purl", "").split("@")[0].split("?")[0] for part in bill["components"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {*EXTRAS} - {*NOT_IN_ALL} | {"java"}
    optional = [one for extra in extras for one in project["optional-dependencies"][extra]]
    for wanted in (*project["dependencies"], *optional):
        name = re.split(r"[\[<>=!~;]", wanted)[0].strip().lower().replace("_", "-")
        assert f"pkg:pypi/{name}" in named
    assert {"pkg:deb/debian/tini", "pkg:deb/debian/libc6"} <= named
    assert {
        "pkg:maven/org.apache.hadoop/hadoop-aws",
        "pkg:maven/software.amazon.awssdk/s3",
    } <= named
    jars = {path.name for path in (image.root / "opt/streamer").rglob("*.jar")}
    listed = {
        part["bom-ref"].rpartition("/")[2]
        for part in bill["components"]
        if part["bom-ref"].startswith("jar:")
    }
    assert listed == jars


def test_it_knows_its_version_and_reads_kafka_without_jars(image: Image, tmp_path: Path) -> None:
    with Container(image, tmp_path / "data", "--version") as container:
        code, said, _ = container.ended()
    assert code == 0 and __version__ in said
    program = "import kafka.net.manager, confluent_kafka; print('there')"
    command = ["/opt/streamer/bin/python", "-c", program]
    with Container(image, tmp_path / "data", command=command) as container:
        code, said, _ = container.ended()
    assert code == 0
    assert said.strip() == "there"
    assert not list((image.root / "opt/streamer").rglob("*kafka*.jar"))


_ARCHIVE = """
import os, subprocess
from streamer.spark.session.class_archive import ClassArchive
from streamer.spark.jvm.gateway import MODULE_OPTIONS, class_path
from streamer.spark.jvm.java import find_java
from streamer.spark.session.session_start import JAVA_OPTIONS
java, jars = find_java(os.environ), class_path(os.environ)
archive = ClassArchive.for_jvm(java, jars, os.environ)
print(archive.file, *archive.use_options()[:1])
# Java refuses to start where the archive does not fit.
strict = ["-XX:AOTMode=on", f"-XX:AOTCache={archive.file}", "-cp", ":".join(jars)]
options = [*JAVA_OPTIONS, *MODULE_OPTIONS, *strict]
subprocess.run([java.executable, *options, "-version"], check=True)
"""


def test_its_archive_of_classes_fits_and_is_used(image: Image, tmp_path: Path) -> None:
    command = ["/opt/streamer/bin/python", "-c", _ARCHIVE]
    with Container(image, tmp_path / "data", command=command) as container:
        code, said, log = container.ended()
    assert code == 0, log
    file, option = said.split()[:2]
    assert file.startswith("/opt/streamer/jvm/25-") and option == f"-XX:AOTCache={file}"
