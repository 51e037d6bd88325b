"""What anybody has sent is shown in a terminal without moving its cursor or forging a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.cli.main import invoke
from streamer.core.log_format import escape_controls
from tests.service.api.asking import asking
from tests.service.fleet.pretending import config_text

SLY = "x\nlevel=error msg=forged\x1b]0;title\x07\x1b[31m\u202e\x9b31m\u2066"


def _is_tame(out: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in out)


def test_samples_show_control_characters_as_marks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.yaml").write_text(
        "input: { generate: { count: 1, mapping: 'root = 1' } }\n"
        "pipeline:\n"
        "  processors:\n"
        "    - mapping: |\n"
        '        meta sly = "x\\nforged\\u001b[31m\\u202e"\n'
        '        root = "x\\nforged\\u001b]0;title\\u0007\\u202e"\n'
        "    - log: { message: 'got ${! content() }' }\n"
        "    - mapping: 'root = throw(\"no \\u001b[31m\")'\n"
        "output: { drop: {} }\n"
    )
    assert invoke(["tap", "-c", str(tmp_path / "c.yaml")]) == 0
    out = capsys.readouterr().out
    assert _is_tame(out)
    assert "\\x1b]0;title" in out and "@sly=x\\nforged\\x1b[31m\\u202e" in out


def test_logs_and_reasons_show_control_characters_as_marks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with asking(tmp_path) as served:
        monkeypatch.setenv("STREAMER_URL", served.url)
        served.ask("POST", "/streams/a", config_text("one"))
        served.service.manager.registry.get("a").log("ERROR", SLY, {f"key{SLY}": SLY})
        served.service.manager.registry.get("a").lifecycle.reason = SLY
        for command in ("logs", "list-streams"):
            given = [command, "a"] if command == "logs" else [command]
            assert invoke(given) == 0
            out = capsys.readouterr().out
            assert _is_tame(out) and "\\x1b]0;title\\a" in out
            assert not any(line.startswith("level=error") for line in out.splitlines())


def test_what_is_printable_stays_as_it_is() -> None:
    for text in ("", "plain", "Zürich 東京 🙂", 'a"b\\c'):
        assert escape_controls(text) == text
    assert escape_controls("a\tb\r\n\x00\x7f\u200f") == "a\\tb\\r\\n\\x00\\x7f\\u200f"
