"""Whatever the text, there is a config or findings, and soon: never another error."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.config import parse_config
from streamer.core.errors import ConfigError

EXAMPLE = (Path(__file__).parents[2] / "configs" / "traffic_light.yaml").read_text()
YAML_BITS = st.sampled_from(
    ["&a ", "*a", "<<: ", "- ", ": ", "{", "}", "[", "]", "|", ">", "'", '"', "\n", "\t", "  ", "#"]
    + ["!!int ", "!x ", "${X}", "${X:", "${{", "${! ", "---\n", "...\n", "%", "@", "\r\n", "input"]
    + ["é", "\x00", "\ud7ff", "\u2028", "null", "0x", "root = ", "size", "~"]
)


def read(text: str) -> None:
    try:
        parse_config(text, "f", env={"X": "- x\n"})
    except ConfigError as e:
        assert e.lints
        for lint in e.lints:
            assert lint.line >= 1
            assert lint.column >= 1
            assert lint.line <= text.count("\n") + text.count("\r") + 1


@settings(max_examples=200)
@given(st.lists(YAML_BITS, max_size=20).map("".join))
def test_pieces_of_yaml(text: str) -> None:
    read(text)


@settings(max_examples=100)
@given(st.integers(0, len(EXAMPLE)), st.integers(0, 12), st.lists(YAML_BITS, max_size=3))
def test_a_config_with_a_piece_replaced(at: int, length: int, bits: list[str]) -> None:
    read(EXAMPLE[:at] + "".join(bits) + EXAMPLE[at + length :])
