"""The pictures of the documentation are those that the program draws of the page's config."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamer.cli.main import invoke

DOCS = Path(__file__).parents[2] / "streamer" / "docs"
_NAMED = re.compile(r"^```\w+ \w+=(\S+)\n(.*?)^```$", re.M | re.S)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("graph.svg", ["graph", "cars.yaml"]),
        ("timeline.svg", ["timeline", "cars.yaml", "--input", "cars.ndjson"]),
    ],
)
def test_a_picture_is_what_the_program_draws(
    name: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (DOCS / "tools.md").read_text()
    assert f"](pictures/{name})" in page
    monkeypatch.chdir(tmp_path)
    for file, text in _NAMED.findall(page):
        Path(file).write_text(text)
    assert invoke([*arguments, "--format", "svg", "-o", "drawn.svg"]) == 0
    drawn = Path("drawn.svg").read_text()
    picture = DOCS / "pictures" / name
    shown = " ".join(arguments)
    assert picture.read_text() == drawn, f"run streamer {shown} --format svg -o {picture}"
