from __future__ import annotations

from pathlib import Path

import pytest

from streamer.tools.migration.copy import make_copy
from streamer.tools.migration.review import Verdict, review_config

ADDED = "address: 0.0.0.0:4195  # as in Benthos; set credentials, or 127.0.0.1:4195"


def copy_of(directory: Path, text: str) -> str:
    file = directory / "config.yaml"
    file.write_text(text)
    return make_copy(review_config(str(file), {}))


class TestMakeCopy:
    @pytest.mark.parametrize(
        ("text", "copy"),
        [
            ("output: {drop: {}}", f"output: {{drop: {{}}}}\n\nhttp:\n  {ADDED}\n"),
            (
                "http: # mine\n\n    root_path: /a\n",
                f"http: # mine\n    {ADDED}\n\n    root_path: /a\n",
            ),
            ("http:\n  address: a:1\n", "http:\n  address: a:1\n"),
            ("http: {root_path: /a}\n", "http: {root_path: /a}\n"),
            ("http:\n  enabled: false\n", "http:\n  enabled: false\n"),
        ],
    )
    def test_benthos_address(self, tmp_path: Path, text: str, copy: str) -> None:
        assert copy_of(tmp_path, text) == copy
        (tmp_path / "copy.yaml").write_text(copy)
        assert review_config(str(tmp_path / "copy.yaml"), {}).verdict == Verdict.RUNS

    def test_to_do_with_the_lines_of_the_copy(self, tmp_path: Path) -> None:
        text = "input:\n  zmq4: {}\nhttp:\n  root_path: /a\noutput:\n  file: {paht: x, path: y}\n"
        lines = copy_of(tmp_path, text).splitlines()
        assert lines[0] == "# To do before this config runs:"
        assert lines[1].startswith("# - input zmq4 (line 6) is missing")
        assert lines[5].strip() == "zmq4: {}"
        assert lines[2].startswith("# - line 11: ")
        assert "paht" in lines[10]
        assert lines[7].strip() == ADDED
