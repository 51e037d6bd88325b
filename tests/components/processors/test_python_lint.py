"""Code in Python that is wrong: what is found before it runs, at which line and column."""

from __future__ import annotations

import pytest

from streamer.config import parse_config
from streamer.core.errors import ConfigError

from .test_python import yaml_of


def lint(code: str, more: str = "") -> list[tuple[int, int, str]]:
    """Return line, column and message of what is wrong; the code begins in line 5."""
    indented = yaml_of(code, more).replace("\n", "\n      ")
    try:
        parse_config(f"pipeline:\n  processors:\n    - {indented}\n", env={})
    except ConfigError as e:
        return [(one.line, one.column, one.message) for one in e.lints]
    return []


def test_a_table_that_is_not_there_is_a_finding() -> None:
    code = "def process(m: dict, tables):\n    return tables['towns'].get(1)"
    [(_, _, text)] = lint(code)
    assert "towns" in text


WRONG = {
    "def process(m: dict)\n    return m": (5, 31, "no Python: expected ':'"),
    "def proces(m: dict):\n    return m": (4, 15, "has no function process; it has proces"),
    "def process(m: dict):\n    return n": (6, 22, "uses the name n, which nothing defines"),
    "def process(m):\n    return m": (5, 23, "parameter m has no annotation; expected dict"),
    "def process(m: int):\n    return m": (5, 26, "has int as what process takes; expected dict"),
    "def process():\n    return 1": (5, 11, "has a function process that takes nothing"),
    "def process(m: dict, a):\n    return a": (5, 11, "whose parameter a has no value"),
    "class process:\n    pass": (5, 11, "has a class process without a method process"),
    "import numpy\ndef process(m: numpy.ndarray): ...": (6, 26, "has numpy.ndarray as what"),
}


@pytest.mark.parametrize("code", WRONG)
def test_what_is_wrong_is_found_at_its_line(code: str) -> None:
    line, column, text = WRONG[code]
    [finding] = lint(code)
    assert finding[:2] == (line, column) and text in finding[2]


def test_more_findings() -> None:
    good = "def process(m: dict, *, a=1): return m"
    assert lint(good) == lint(good, "  args: { a: 2 }\n") == []
    [(line, _, text)] = lint(good, "  function: proces\n")
    assert (line, text) == (
        6,
        "field function: has no function proces; it has process; did you mean process?",
    ) or "has no function proces" in text
    [(_, _, text)] = lint(good, "  args: { b: 2 }\n")
    assert "without the parameter b of args" in text
    [(_, _, text)] = lint(good, "  call: a:b\n")
    assert "expected one of them" in text or "neither installed" in text
    [(_, _, text)] = lint(good, "  requirements: [ no-such-package>=1, numpy ]\n")
    assert "no-such-package>=1 is not installed" in text
    assert "pip install 'no-such-package>=1'" in text and "numpy" not in text
    [(_, _, text)] = lint(good, "  requirements: [ numpy>=999 ]\n")
    assert "numpy>=999 is not fulfilled by numpy" in text
    [(_, _, text)] = lint(good, "  requirements: [ 'a b' ]\n")
    assert "which is no requirement" in text


def test_names_that_code_may_get_otherwise_are_no_findings() -> None:
    for code in (
        "from os.path import *\ndef process(m: dict): return join(m)",
        "def process(m: dict):\n    global g\n    g = 1\n    return use()\ndef use(): return g",
        "def process(m: dict): return [a for a in m if (b := a)] and __file__",
        "try:\n    import x as y\nexcept ImportError: y = None\ndef process(m: dict): return y",
        "import pandas as pd\nclass process:\n    def process(self, b: 'pd.DataFrame'): ...",
        "def outer(f): return f\n@outer\ndef process(m: dict): return (lambda q: q)(m)",
    ):
        assert lint(code) == [], code
