"""The walk of the page on components of other packages, in an environment of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from uv import find_uv_bin

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "streamer" / "docs" / "plugins.md"
BLOCK = re.compile(
    r"^```sh plugin\n(.*?)^```$(?:\n\n[^`\n]+\n)?(?:\n```text\n(.*?)^```$)?", re.M | re.S
)


def make_environment(directory: Path) -> Path:
    """Make an environment with streamer and all that it needs, but no plugin; return its `bin`."""
    subprocess.run([find_uv_bin(), "venv", "--seed", "-q", str(directory)], check=True, timeout=120)
    [packages] = directory.glob("lib/python*/site-packages")
    # Of this environment: nothing is installed twice, and nothing of the new one comes back.
    (packages / "streamer.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    command = directory / "bin" / "streamer"
    command.write_text(f'#!/bin/sh\nexec {directory}/bin/python -m streamer "$@"\n')
    command.chmod(0o755)
    return directory / "bin"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(400)
def test_the_walk_of_the_page_leads_from_a_package_to_its_removal(tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) == 4
    commands = make_environment(tmp_path / "environment")
    marks = [f"== {number} ==\n" for number in range(len(blocks))]
    script = "".join(
        f"printf '{mark[:-1]}\\n'\n{text}" for mark, (text, _) in zip(marks, blocks, strict=True)
    )
    done = subprocess.run(
        ["sh", "-eu", "-c", script],
        cwd=tmp_path,
        env={
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "PATH": f"{commands}:{os.environ['PATH']}",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PYTEST_ADDOPTS": "-p no:cacheprovider -p no:xdist",
            "XDG_STATE_HOME": str(tmp_path / "state"),
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    made, tested, ran, removed = re.split(r"== \d ==\n", done.stdout)[1:]
    assert "streamer-my-name/src/streamer_my_name/my_name.py\n" in made
    assert re.search(r"^\d+ passed", tested, re.M) and "failed" not in tested
    assert ran.startswith(blocks[2][1]), ran[:300]
    assert "It comes from the package streamer-my-name 0.1.0." in ran
    assert ran.endswith("HELLO!\nHELLO!\n")
    assert removed == ""
    assert "processor 'my_name' is not known" in done.stderr
    shutil.rmtree(tmp_path / "environment")
