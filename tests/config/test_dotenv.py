"""Files of environment variables, read as Benthos reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.config.dotenv import read_env_file
from streamer.core.errors import ConfigError


def written(directory: Path, text: str) -> str:
    path = directory / "x.env"
    path.write_bytes(text.encode())
    return str(path)


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("", {}),
        ("\n  \n  \t\n\n #foo bar   \n\n", {}),
        ("FOO=bar", {"FOO": "bar"}),
        ("\n \nFOO=bar\n  \n ", {"FOO": "bar"}),
        ("FOO=bar\nBAZ=buz # Cool\n\nBEV=qux", {"FOO": "bar", "BAZ": "buz", "BEV": "qux"}),
        ('# Meow\nBAZ="b u#z" # Cool\nBEV=qux', {"BAZ": "b u#z", "BEV": "qux"}),
        (
            'FIRST = foo\n\nSECOND= "bar"\nTHIRD =b"az\nFOURTH   =    buz\nFIFTH =\n',
            {"FIRST": "foo", "SECOND": "bar", "THIRD": 'b"az', "FOURTH": "buz", "FIFTH": ""},
        ),
        ('FOO="a b"\r\n\r\nBAR=def # x\r\n', {"FOO": "a b", "BAR": "def"}),
        ("A=1\nA=2", {"A": "2"}),
        (r'A="one\ntwo \"x\" \u00e9"', {"A": 'one\ntwo "x" é'}),
        ('A="""one\n "two" \\n"""  # raw\nB=3', {"A": 'one\n "two" \\n', "B": "3"}),
        ("A='x'", {"A": "'x'"}),
        ("A=b#c", {"A": "b"}),
        ("A==b=c", {"A": "=b=c"}),
        ("  A=b", {"A": "b"}),
        ("\ufeffA=b", {"A": "b"}),
    ],
)
def test_each_line_sets_a_variable(text: str, variables: dict[str, str], tmp_path: Path) -> None:
    assert read_env_file(written(tmp_path, text)) == variables


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A=1\nnot a thing", "(2,1) expected NAME=value; begin comments with #"),
        ("export A=hunter2", "(1,1) expected NAME=value; remove `export`"),
        ("=hunter2", "(1,1) expected NAME=value; begin comments with #"),
        (
            "A=b hunter2\nB=c",
            "(1,5) expected the end of the line, or # and a comment; quote a value that has "
            'spaces: "…"',
        ),
        ('A="hunter2\nB=c"', "(1,3) the quote that begins here is not closed on its line"),
        ('A="""hunter2\nB=c"', '(1,3) expected """ at the end of what begins here'),
        (
            r'A="hunter2\q"',
            r"(1,3) there is an escape in this text that Go does not know; write \\ for a "
            "backslash",
        ),
        (
            r'A="\x00hunter2"',
            "(1,1) variable 'A': no environment can hold the character U+0000",
        ),
    ],
)
def test_what_is_no_assignment_is_told_with_its_place_and_without_its_value(
    text: str, said: str, tmp_path: Path
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_env_file(path)
    assert str(caught.value) == f"{path}{said}"
