from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.javascript.modules import read_module
from streamer.core.permissions import ALL, Permissions


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for name, text in {
        "main/a.js": "a",
        "main/data.json": "{}",
        "main/dir/index.js": "index",
        "main/node_modules/pack/package.json": '{"main": "lib/start"}',
        "main/node_modules/pack/lib/start.js": "pack",
        "node_modules/above/index.js": "above",
        "shared/global.js": "global",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def read(base: Path, name: str, permissions: Permissions = ALL) -> dict[str, Any]:
    return read_module(str(base / "main"), name, [str(base / "shared")], permissions)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("./a", "main/a.js"),
        ("./a.js", "main/a.js"),
        ("./data", "main/data.json"),
        ("./dir", "main/dir/index.js"),
        ("../shared/global", "shared/global.js"),
        ("pack", "main/node_modules/pack/lib/start.js"),
        ("pack/lib/start", "main/node_modules/pack/lib/start.js"),
        ("above", "node_modules/above/index.js"),
        ("global", "shared/global.js"),
    ],
)
def test_places(base: Path, name: str, path: str) -> None:
    found = read(base, name)
    assert found["path"] == str(base / path)
    assert found["directory"] == str((base / path).parent)
    assert found["text"] == (base / path).read_text()


@pytest.mark.parametrize("name", ["./none", "none", "fs", "a"])
def test_what_is_not_there(base: Path, name: str) -> None:
    assert read(base, name) == {"error": f"Cannot find module '{name}'"}


def test_files_out_of_reach(base: Path) -> None:
    for name in ("./a", "/etc/hostname", "none"):
        assert "--allow-local" in read(base, name, Permissions(local=False))["error"]
