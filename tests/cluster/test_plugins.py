"""A package with components on a cluster: it goes to the workers with the driver's environment.

The driver's environment has nothing but the program and the package, whose wheel is built here. No
worker has the package. What it writes comes from the archive that workers have unpacked.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from uv import find_uv_bin

from streamer.spark.jvm.java import find_java
from tests.servers.spark_cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(700)]

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "deploy" / "constraints.txt"
METHOD = '''
from streamer.sdk import bloblang_method


@bloblang_method()
def double(text: str) -> str:
    """Return a text twice."""
    return text + text
'''
CONFIG = """\
input:
  generate:
    count: 200
    interval: ""
    mapping: root = "car-%d".format((counter() - 1) % 4)
buffer:
  count_window: { count: 50, key_mapping: 'root = content().string()' }
pipeline:
  processors:
    - my_name: { suffix: "!" }
    - mapping: root = content().string().double()
output:
  file: { path: OUT, codec: lines }
spark: { shards: 4 }
"""


def uv(*arguments: str | Path) -> None:
    done = subprocess.run(
        [find_uv_bin(), *arguments], cwd=ROOT, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stderr


def write_package(python: Path, at: Path) -> Path:
    """Write a package as its author does, with a method for mappings; return its directory."""
    subprocess.run(
        [python, "-m", "streamer", "create", "--component", "processor", "my_name"],
        check=True,
        cwd=at,
        capture_output=True,
        timeout=60,
    )
    package = at / "streamer-my-name"
    about, module = package / "pyproject.toml", package / "src/streamer_my_name/my_name.py"
    point = '"processor.my_name" = "streamer_my_name.my_name"\n'
    assert point in about.read_text()
    more = '"bloblang_method.double" = "streamer_my_name.mappings:double"\n'
    about.write_text(about.read_text().replace(point, point + more))
    (module.parent / "mappings.py").write_text(METHOD)
    # Each message says where the component was imported from, and in which process.
    suffix = "text.upper() + self.suffix"
    assert suffix in module.read_text()
    place = "f'{text.upper()}{self.suffix} {os.getpid()} {__file__} '"
    text = module.read_text().replace(f"({suffix})", f"({place})")
    module.write_text(text.replace("from streamer.sdk", "import os\n\nfrom streamer.sdk", 1))
    return package


def test_a_plugin_reaches_the_workers_with_the_environment(
    tmp_path: Path, cluster: Cluster
) -> None:
    python, out = tmp_path / "env" / "bin" / "python", tmp_path / "out"
    pins = tmp_path / "pins.txt"
    pins.write_text(
        "\n".join(re.findall(r"^[\w.-]+==[^\s\\]+(?: ; [^\\\n]+)?", CONSTRAINTS.read_text(), re.M))
    )
    uv("venv", "--python", sys.executable, tmp_path / "env")
    uv("pip", "install", "--python", python, "-c", pins, ROOT)
    package = write_package(python, tmp_path)
    uv("build", "--wheel", "--out-dir", tmp_path / "dist", package)
    [wheel] = (tmp_path / "dist").glob("*.whl")
    uv("pip", "install", "--python", python, "--no-deps", wheel)
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.replace("OUT", str(out)))
    done = subprocess.run(
        [python, "-m", "streamer", "-c", config, "--master", cluster.url],
        cwd=tmp_path,
        env={
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "JAVA_HOME": str(find_java(os.environ).home),
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        },
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = out.read_text().splitlines()
    assert len(lines) == 200
    [unpacked] = cluster.environments
    for line in lines:
        upper, _, place, *again = line.split()
        assert re.fullmatch(r"CAR-[0-3]!", upper) and again[0] == upper
        assert Path(place).is_relative_to(unpacked), place
    manifest = json.loads((unpacked / "pack.json").read_text())
    assert manifest["packages"]["streamer-my-name"] == "0.1.0"
