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
        Example("root = this.a.parse_yaml()", '{"a":"b: [1, x]"}', '{"b":[1,"x"]}'),
        Example(
            "root = this.a.parse_yaml()",
            '{"a":"[b"}',
            'Error("failed assignment (line 1): field `this.a`: failed to parse value as YAML: '
            "yaml: line 1: did not find expected ',' or ']'\")",
        ),
    ),
)
def parse_yaml(value: Any) -> Any:
    """The value that a text holds as YAML; of several documents the first."""
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
