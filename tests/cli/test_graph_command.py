"""`streamer graph`: three forms, to the standard output or a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.cli.main import invoke

CONFIG = str(Path(__file__).parents[2] / "configs" / "traffic_light.yaml")


@pytest.mark.parametrize(
    ("form", "first"),
    [("text", "traffic_light\n├─ stage 1"), ("mermaid", "flowchart TD\n"), ("svg", "<svg ")],
)
def test_a_graph_goes_to_the_standard_output_or_a_file(
    form: str, first: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["graph", CONFIG, "--format", form]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(first)
    assert "\x1b" not in out
    path = tmp_path / "graph"
    assert invoke(["graph", "-c", CONFIG, "--format", form, "-o", str(path)]) == 0
    assert capsys.readouterr() == ("", "")
    assert path.read_text() == out


def test_a_file_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "no" / "graph.svg"
    assert invoke(["graph", CONFIG, "-o", str(path)]) == 1
    assert capsys.readouterr().err == f"error: --out {path}: no such file or directory\n"


def test_a_config_that_is_named_twice_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["graph", CONFIG, "-c", CONFIG]) == 1
    assert "graph takes one config, found two" in capsys.readouterr().err


def test_a_config_with_findings_is_not_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("inptu: {}\n")
    assert invoke(["graph", str(path)]) == 1
    out, err = capsys.readouterr()
    assert (out, err.startswith(f"{path}(1,1) ")) == ("", True)
