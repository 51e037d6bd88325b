"""The page on many streams: its commands run in order against a service, and print what it says.

The streams of that service are pretended; all that stands before them is what a service has.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.docs.test_docs import ROOT, blocks
from tests.forked import forked_commands
from tests.service.api.asking import asking

PAGE = ROOT / "streamer" / "docs" / "service.md"


def test_the_session_prints_what_the_page_says(tmp_path: Path) -> None:
    found = blocks(PAGE)
    for block in found:
        if block.info.startswith("yaml config="):
            (tmp_path / block.name).write_text(block.text)
    session = [block for block in found if block.info == "sh service"]
    assert len(session) == 4
    (tmp_path / "bin").mkdir()
    with asking(tmp_path / "c") as server, forked_commands(tmp_path / "bin") as command:
        env = {
            **os.environ,
            "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "STREAMER_URL": server.url,
            "NO_COLOR": "1",
        }
        for block in session:
            text = block.text.replace("http://127.0.0.1:4195", server.url)
            done = subprocess.run(
                ["sh", "-euc", text],
                cwd=tmp_path,
                env=env,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode == 0, done.stderr
            if block.prints:
                assert done.stdout == block.prints
        assert server.stage.on == {}


def test_the_page_has_every_path_and_every_option(tmp_path: Path) -> None:
    from streamer.cli.streams import streams_cli

    page = PAGE.read_text()
    with asking(tmp_path) as server:
        paths = {endpoint.path for endpoint in server.api.list_endpoints()}
    for path in paths - {"/stats", "/openapi.json"}:
        last = path.removeprefix("/streams/{id}") or path
        assert f"{last}`" in page, path
    own = {"--checkpoints", "--no-api", "--restarts"}
    own |= {"--allow-programs", "--allow-local", "--allow-python"}
    assert own <= {name for option in streams_cli.params for name in option.opts}
    assert all(name in page for name in own)
