"""Methods that read and write YAML."""

from __future__ import annotations

from typing import Any, Final

from streamer.bloblang.declare import Example, declare
from streamer.bloblang.golib.convert import bytes_of

_CATEGORY: Final = "Parsing"


@declare(
    "parse_yaml",
    _CATEGORY,
    examples=(
        Example(
            "root = this.text.parse_yaml()",
            '{"text":"name: Ada\\ntags: [a, b]"}',
            '{"name":"Ada","tags":["a","b"]}',
        ),
    ),
)
def parse_yaml(value: Any) -> Any:
    """The value of a YAML text; of several documents the first."""
    from streamer.bloblang.golib.yaml_reader import read_yaml

    return read_yaml(bytes_of(value))


@declare(
    "format_yaml",
    _CATEGORY,
    examples=(
        Example("root = this.format_yaml()", '{"b":"x","a":["y"]}', 'a:\n    - "y"\nb: x\n'),
        Example("root.a = this.a.format_yaml().string()", '{"a":null}', '{"a":"null\\n"}'),
    ),
)
def format_yaml(value: Any) -> bytes:
    """The value as YAML bytes."""
    from streamer.bloblang.golib.yaml_writer import write_yaml

    return write_yaml(value)
