"""The Dockerfile leaves its work to scripts, and names no processor and no registry's host."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from streamer import __version__
from tests.deploy.image import DOCKERFILE, STEPS

SCRIPTS = sorted(STEPS.glob("*.sh"))
_TOOLS = Path(sys.executable).parent


def instructions() -> list[str]:
    """Return the instructions, each in one line."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")]
    return [line.strip() for line in "\n".join(lines).replace("\\\n", " ").splitlines() if line]


def test_hadolint_has_nothing_to_say() -> None:
    done = subprocess.run(
        [_TOOLS / "hadolint", "--failure-threshold", "style", DOCKERFILE],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_shellcheck_has_nothing_to_say() -> None:
    done = subprocess.run(
        [_TOOLS / "shellcheck", "-x", "-P", "SCRIPTDIR", *SCRIPTS],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_whatever_is_run_is_a_script_that_the_suite_runs_too() -> None:
    runs = [line.removeprefix("RUN ") for line in instructions() if line.startswith("RUN ")]
    assert len(runs) == 4
    for run in runs:
        words = [word for word in shlex.split(run) if not word.startswith("--mount=")]
        place, _, name = words[0].rpartition("/image/")
        assert place in ("/deploy", "/build/deploy"), run
        assert STEPS / name in SCRIPTS and os.access(STEPS / name, os.X_OK), run
        assert not {"&&", "|", ";", "||"} & set(words), run


@pytest.mark.parametrize("path", [DOCKERFILE, *sorted(STEPS.iterdir())], ids=lambda p: p.name)
def test_it_is_the_same_on_every_processor_and_with_every_registry(path: Path) -> None:
    text = path.read_text()
    assert not re.findall(r"x86_64|amd64|aarch64|arm64|linux-gnu", text)
    hosts = re.findall(r"https?://([\w.-]+)", text)
    assert set(hosts) <= {"127.0.0.1", "maven.apache.org"}  # the latter is the name of POM's format


def test_the_last_stage_has_no_rights_and_nothing_but_what_was_built() -> None:
    last = "\n".join(instructions()).rpartition("\nFROM ")[2].splitlines()
    assert last[0] == "system"
    copied = [line for line in last if line.startswith(("COPY", "ADD"))]
    assert copied == ["COPY --from=build /opt/streamer /opt/streamer"]
    users = [line for line in last if line.startswith("USER")]
    assert users == ["USER 10001:10001"]
    assert not [line for line in last if line.startswith("RUN")]


def test_s3_is_read_by_the_hadoop_that_pyspark_has() -> None:
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    (client,) = jars.glob("hadoop-client-api-*.jar")
    version = client.stem.removeprefix("hadoop-client-api-")
    pom = (STEPS / "s3-pom.xml").read_text()
    assert f"<artifactId>hadoop-aws</artifactId>\n      <version>{version}</version>" in pom


def test_the_version_is_the_programs() -> None:
    assert f"ARG VERSION={__version__}" in instructions()
