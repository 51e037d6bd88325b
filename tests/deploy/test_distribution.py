"""The distribution as its users get it: built, installed into empty environments, and run.

The program is installed once without extras. Each extra is then put in by itself, tried, and taken
away again, so that it is alone with the base.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from typing import NamedTuple

import pytest
from uv import find_uv_bin

from streamer import __version__
from streamer.core.extras import ALL, DISTRIBUTION, EXTRA_OF, EXTRAS, install_command
from tests.deploy.extra_configs import CONFIGS
from tests.engine.results.kept import Row, keep
from tests.servers import free_port

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "deploy" / "constraints.txt"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def uv(*arguments: str | Path, **env: str) -> str:
    """Run uv, which keeps what it has fetched and built in its cache."""
    done = subprocess.run(
        [find_uv_bin(), *arguments],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Built(NamedTuple):
    wheel: Path
    sdist: Path


class Installed(NamedTuple):
    """An environment with nothing but the program and what it requires."""

    bin: Path
    wheel: Path

    def run(self, *arguments: str | Path, cwd: Path, stdin: str = "") -> tuple[int, str, str]:
        """Run the command from a directory; returns its code, and what it printed."""
        done = subprocess.run(
            [self.bin / "streamer", *arguments],
            cwd=cwd,
            env=self.env(cwd),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    def env(self, home: Path) -> dict[str, str]:
        """Return an environment in which nothing of the checkout can be found."""
        return {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            # An environment that is removed needs no archive of classes, which takes minutes.
            "STREAMER_CLASS_ARCHIVE": "off",
        }

    def install(self, extra: str) -> None:
        name = f"{DISTRIBUTION}[{extra}] @ file://{self.wheel}"
        uv("pip", "install", "--python", self.bin / "python", "-c", _pins(), name)
        uv("pip", "check", "--python", self.bin / "python")

    def packages(self) -> set[str]:
        lines = uv("pip", "freeze", "--python", self.bin / "python").splitlines()
        return {re.split(r"[=@ ]", line)[0] for line in lines}

    def uninstall(self, names: set[str]) -> None:
        if names:
            uv("pip", "uninstall", "--python", self.bin / "python", *sorted(names))


_PINNED: list[Path] = []


def _pins() -> Path:
    return _PINNED[0]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The wheel, built from the source archive, so that this has all that it takes."""
    to = tmp_path_factory.mktemp("dist")
    uv("build", "--out-dir", to, ROOT)
    (wheel,), (sdist,) = to.glob("*.whl"), to.glob("*.tar.gz")
    return Built(wheel, sdist)


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The program without extras, in an environment of its own."""
    directory = tmp_path_factory.mktemp("installed")
    # Pins without hashes: the wheel itself, which is built here, has none.
    pins = directory / "pins.txt"
    pins.write_text(
        "\n".join(re.findall(r"^[\w.-]+==[^\s\\]+(?: ; [^\\\n]+)?", CONSTRAINTS.read_text(), re.M))
    )
    _PINNED[:] = [pins]
    uv("venv", "--python", sys.executable, directory / "env")
    made = Installed(directory / "env" / "bin", built.wheel)
    uv("pip", "install", "--python", made.bin / "python", "-c", pins, built.wheel)
    return made


@pytest.fixture
def alone(request: pytest.FixtureRequest, installed: Installed) -> Iterator[Installed]:
    """The program with one extra, which the test names."""
    before = installed.packages()
    installed.install(request.param)
    yield installed
    installed.uninstall(installed.packages() - before)


def test_the_wheel_has_what_the_documentation_names(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = set(wheel.namelist())
    for directory, inside in (("configs", "examples"), ("schemas", "schemas")):
        for path in (ROOT / directory).rglob("*.*"):
            assert f"streamer/{inside}/{path.relative_to(ROOT / directory)}" in names
    assert {f"streamer/docs/{path.name}" for path in (ROOT / "streamer/docs").glob("*.md")} <= names
    assert {"streamer/py.typed", "streamer/LICENSE", "streamer/__main__.py"} <= names
    tops = {name.split("/")[0] for name in names}
    assert tops == {"streamer", f"spark_streamer-{__version__}.dist-info"}


def test_the_source_archive_has_what_it_takes_to_build_and_no_more(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert tops - {".gitignore", "PKG-INFO"} == {
        *("streamer", "configs", "schemas", "README.md", "pyproject.toml")
    }


def test_the_metadata_is_whole(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        about = message_from_bytes(wheel.read(f"spark_streamer-{__version__}.dist-info/METADATA"))
    assert (about["Name"], about["Version"]) == (DISTRIBUTION, __version__)
    assert (about["License-Expression"], about["License-File"]) == (
        "Apache-2.0",
        "streamer/LICENSE",
    )
    assert about["Requires-Python"] == "<3.15,>=3.11"
    assert about["Summary"] and about["Keywords"] and about.get_all("Project-URL")
    classifiers = about.get_all("Classifier") or []
    assert "Typing :: Typed" in classifiers
    assert f"Programming Language :: Python :: 3.{sys.version_info[1]}" in classifiers
    # There is nothing beside the page for a link to lead to.
    page = about.get_payload()
    assert "# streamer" in str(page)
    assert re.findall(r"\]\((?!https?://)[^)]*\)", str(page)) == []


def test_all_extras_install_together(installed: Installed) -> None:
    # Resolved, not installed: the suite's own environment has them all.
    told = uv(
        *("pip", "install", "--dry-run", "--python", installed.bin / "python", "-c", _pins()),
        f"{DISTRIBUTION}[{ALL},java] @ file://{installed.wheel}",
    )
    assert told == ""


def test_without_extras_it_is_whole_and_small(installed: Installed, tmp_path: Path) -> None:
    uv("pip", "check", "--python", installed.bin / "python")
    code = (
        "from streamer.core.extras import EXTRA_OF, missing_packages; "
        "print(*(set(EXTRA_OF) - set(missing_packages(EXTRA_OF))))"
    )
    found = subprocess.run(
        [installed.bin / "python", "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert (found.stdout, found.stderr) == ("\n", "")
    told = subprocess.run(
        [installed.bin / "python", "-m", "streamer", "--version"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert told.stdout == f"Version: {__version__}\n"


def test_without_extras_lint_names_them(installed: Installed, tmp_path: Path) -> None:
    lacking = 0
    for extra in CONFIGS:
        config = _config(extra, tmp_path)
        code, out, err = installed.run("lint", config, cwd=tmp_path)
        assert (code, out) == (1, ""), extra
        # Schemas of a registry may be Avro's.
        needed = ("avro", extra) if extra == "schema-registry" else (extra,)
        assert f"{install_command(*needed)} [missing_package]" in err, extra
        assert err.count("\n") == err.count("missing_package"), err
        lacking += 1
    assert lacking == len(EXTRAS) - 2


@pytest.mark.parametrize("alone", ["java"], indirect=True)
def test_the_first_example_runs_from_an_empty_directory(alone: Installed, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    # It goes on until a window comes out, however slow the machine is.
    command = [alone.bin / "streamer", "-c", "example:traffic_light"]
    with subprocess.Popen(
        command,
        cwd=tmp_path / "here",
        env=alone.env(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        try:
            line = running.stdout.readline()
        finally:
            running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    assert line, err
    assert {"created_at", "passengers", "total_cars", "traffic_light"} == set(json.loads(line)), err
    assert list((tmp_path / "here").iterdir()) == []


_SELF_TESTED = [extra for extra, text in CONFIGS.items() if "\ntests:" in text]
_CONNECTING = [extra for extra in CONFIGS if extra in ("kafka", "mqtt", "redis")]


def _config(extra: str, directory: Path) -> Path:
    path = directory / "config.yaml"
    same = '(module (memory (export "memory") 1) (func (export "process")))'
    (directory / "same.wat").write_text(same)
    path.write_text(CONFIGS[extra].replace("PORT", str(free_port())))
    return path


@pytest.mark.parametrize("alone", _SELF_TESTED, indirect=True, ids=_SELF_TESTED)
def test_with_its_extra_alone_a_component_lints_and_runs(
    alone: Installed, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    config = _config(request.node.callspec.params["alone"], tmp_path)
    assert alone.run("lint", config, cwd=tmp_path) == (0, "", "")
    code, out, err = alone.run("test", config, cwd=tmp_path)
    assert code == 0, out + err


@pytest.mark.parametrize("alone", _CONNECTING, indirect=True, ids=_CONNECTING)
def test_with_its_extra_alone_a_component_lints_and_connects(
    alone: Installed, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    config = _config(request.node.callspec.params["alone"], tmp_path)
    assert alone.run("lint", config, cwd=tmp_path) == (0, "", "")
    # Servers have tests of their own. Here its client is asked, and finds nobody.
    code, out, err = alone.run("dry-run", config, cwd=tmp_path)
    told = (out + err).lower()
    assert code == 1 and "refused" in told, told
    assert "not installed" not in told and "traceback" not in told


@pytest.mark.parametrize("alone", ["otel", "otel-grpc"], indirect=True)
def test_with_its_extra_alone_spans_are_sent(
    alone: Installed, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    config = _config(request.node.callspec.params["alone"], tmp_path)
    assert alone.run("lint", config, cwd=tmp_path) == (0, "", "")
    code = (
        "import sys; from streamer.config import load_config; "
        "from streamer.service.monitoring.tracing import make_tracer; "
        "print(make_tracer(load_config(sys.argv[1]).tracer, 'cars') is not None)"
    )
    made = subprocess.run(
        [alone.bin / "python", "-c", code, config], capture_output=True, text=True, timeout=60
    )
    assert made.stdout == "True\n", made.stderr


def test_results_are_asked_for_with_their_extra_alone(installed: Installed, tmp_path: Path) -> None:
    keep(tmp_path / "results", Row(key="alice", end=time.time_ns()))
    question = ("query", tmp_path, "--sql", "SELECT count(*) AS n FROM results", "--format", "json")
    assert installed.run(*question, cwd=tmp_path) == (
        1,
        "",
        "error: this command needs the package duckdb, which is not installed here: "
        f"{install_command('results')}\n",
    )
    before = installed.packages()
    installed.install("results")
    try:
        assert installed.run("lint", _config("results", tmp_path), cwd=tmp_path) == (0, "", "")
        assert installed.run(*question, cwd=tmp_path) == (0, '{"n":1}\n', "")
    finally:
        installed.uninstall(installed.packages() - before)


@pytest.mark.parametrize("alone", ["editor"], indirect=True)
def test_the_editor_opens_with_its_extra_alone(alone: Installed, tmp_path: Path) -> None:
    code, out, err = alone.run("blobl", "-I", cwd=tmp_path)
    assert "not installed" not in out + err and "Traceback" not in out + err
    found = subprocess.run(
        [alone.bin / "python", "-c", "import streamer.cli.blobl.interactive"], capture_output=True
    )
    assert (found.returncode, found.stderr) == (0, b"")


def test_every_extra_is_tried_alone() -> None:
    assert {*CONFIGS, "java", "editor"} == set(EXTRAS) == set(EXTRA_OF.values())
