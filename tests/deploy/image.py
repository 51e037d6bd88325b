"""Builds the container image from deploy/Dockerfile, without an engine and without a registry.

buildah runs the Dockerfile's own instructions in a chroot. Two things are put in the place of what
a registry would give: for Python's slim image a Debian with Python that debootstrap makes, and for
the stage with Maven the jars that the same script fetches on this machine.

What takes long (the system, the dependencies, the jars) is kept outside the checkout, and made anew
when a file changes that it is made from.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.servers import installed

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
STEPS = ROOT / "deploy" / "image"
CONSTRAINTS = ROOT / "deploy" / "constraints.txt"
_SUITE = "bookworm"
_BASE = "localhost/streamer-base:" + _SUITE
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_PATIENCE = 1500


@dataclass(frozen=True)
class Image:
    """An image that was built.

    Attributes:
        root: its files.
        config: what an engine reads from it: Entrypoint, Env, User, Healthcheck, …
    """

    root: Path
    config: dict[str, Any]


@contextmanager
def built() -> Iterator[Image]:
    """Give the image of the checkout as it is."""
    for package in ("buildah", "debootstrap"):
        installed(package, package, f"/usr/sbin/{package}")
    if os.geteuid() != 0:
        assert os.environ.get("STREAMER_TEST_SERVERS") != "required", "the image needs root"
        pytest.skip("only root can build the image and run it in a chroot")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = caches / "streamer" / "image"
    home.mkdir(parents=True, exist_ok=True)
    store = _Store(home)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # `last` is for who works at the tests: what was built before, whatever has changed since.
        name = store.last() if os.environ.get("STREAMER_TEST_IMAGE") == "last" else store.build()
        container = store("from", "--pull-never", name)
    try:
        config = json.loads(store("inspect", "--type", "image", name))["Docker"]["config"]
        yield Image(Path(store("mount", container)), config)
    finally:
        store("rm", container)


class _Store:
    """buildah with a storage of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def __call__(self, *arguments: str | Path) -> str:
        places = ["--root", self._home / "storage", "--runroot", self._home / "run"]
        done = subprocess.run(
            ["buildah", *places, *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
        said = f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
        assert done.returncode == 0, f"buildah {arguments[0]} ended with {done.returncode}:\n{said}"
        return done.stdout.strip()

    def last(self) -> str:
        """Return the name of the image that was built last."""
        return next(name for name in self._names() if name.startswith("localhost/streamer:"))

    def _names(self) -> list[str]:
        return self("images", "--format", "{{.Name}}:{{.Tag}}").split()

    def build(self) -> str:
        """Build what is not there yet; return the image's name."""
        text = DOCKERFILE.read_text()
        jars = _key(*(STEPS / name for name in ("jars.sh", "s3-pom.xml", "s3-SHA256SUMS")))
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        wanted = [project["dependencies"], project["optional-dependencies"]]
        system = f"localhost/streamer-system:{_key(STEPS / 'system.sh', text)}"
        dependencies = "localhost/streamer-dependencies:" + _key(
            *(STEPS / "dependencies.sh", STEPS / "pip.sh", CONSTRAINTS),
            *(json.dumps(wanted), system),
        )
        self._fetch_jars(self._home / f"jars-{jars}")
        image = "localhost/streamer:" + _key(dependencies, jars, *_sources())
        there = self._names()
        if _BASE not in there:
            self._make_base()
        contexts = [f"jars={self._home / f'jars-{jars}'}"]
        for name, stage in ((system, "system"), (dependencies, "dependencies")):
            if name not in there:
                self._bud(name, contexts, "--target", stage)
            contexts.append(f"{stage}=container-image://{name}")
        for name in there:
            wanted_still = name in (_BASE, system, dependencies, image)
            if name.startswith("localhost/streamer") and not wanted_still:
                self("rmi", "--force", name)
        if image not in there:
            self._bud(image, contexts)
        return image

    def _bud(self, name: str, contexts: list[str], *more: str) -> None:
        arguments: list[str] = ["--secret", "id=maven,src=/dev/null"]
        if _CERTIFICATES.exists():
            arguments += ["--secret", f"id=certificates,src={_CERTIFICATES}"]
        cache = Path.home() / ".cache" / "pip"
        if cache.is_dir() and "system" not in more:
            arguments += ["--volume", f"{cache}:/root/.cache/pip"]
        for variable in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
            arguments += ["--build-arg", f"{variable}={os.environ.get(variable, '')}"]
        for context in contexts:
            arguments += ["--build-context", context]
        self(
            *("bud", "--isolation", "chroot", "--format", "docker", "--pull-never"),
            *("--layers=false", "--ignorefile", f"{DOCKERFILE}.dockerignore", *arguments),
            *("--build-arg", f"PYTHON_IMAGE={_BASE}", "--build-arg", f"MAVEN_IMAGE={_BASE}"),
            *("--file", DOCKERFILE, "--tag", name, *more, "."),
        )

    def _make_base(self) -> None:
        container = self("from", "scratch")
        try:
            packages = "python3,python3-venv,ca-certificates"
            into = self("mount", container)
            made = subprocess.run(
                ["debootstrap", "--variant=minbase", f"--include={packages}", _SUITE, into],
                env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"},
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
            )
            assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
            # What the official image has of the same: a `python3` and nothing fetched lying about.
            self("run", "--isolation", "chroot", container, "--", "apt-get", "clean")
            self("commit", "--format", "docker", container, _BASE)
        finally:
            self("rm", container)

    def _fetch_jars(self, into: Path) -> None:
        mark = into / ".fetched"
        if not mark.exists():
            installed("maven", "mvn")
            done = subprocess.run(
                [STEPS / "jars.sh", into / "jars"], capture_output=True, text=True, timeout=600
            )
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
            mark.touch()


def _sources() -> list[Path]:
    """Return the files that the program's part of the image is made from."""
    found = [ROOT / "README.md", ROOT / "pyproject.toml", DOCKERFILE, *STEPS.iterdir()]
    for directory in ("configs", "schemas", "streamer"):
        found += (ROOT / directory).rglob("*")
    return sorted(path for path in found if path.is_file() and path.suffix != ".pyc")


def _key(*parts: Path | str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.read_bytes() if isinstance(part, Path) else part.encode())
        digest.update(b"\0")
    return digest.hexdigest()[:16]
