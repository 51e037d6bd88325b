"""Files made to exhaust the loader: each ends with findings, in a second and within 200 MB.

They are linted in a process of its own, whose memory is limited.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from streamer.config.file import MAX_BYTES

ROOT = Path(__file__).parents[2]
FULL: Final = MAX_BYTES - 200
SECONDS: Final = 1.0
MEGABYTES: Final = 200

_CHILD: Final = """
import json, resource, sys, time
from streamer import catalog
from streamer.config import LintOptions, lint_config
from streamer.bloblang import compile_mapping

list(catalog.specs())
compile_mapping("root = this")
limit = int(sys.argv[1]) << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
options = LintOptions(deprecated=True, labels=True, thorough=True)
for path in sys.argv[2:]:
    began = time.process_time()
    try:
        lints = lint_config(path, env={"X": "x" * 100}, options=options)
        found = [lint.code for lint in lints]
        said = max(len(str(lint)) for lint in lints) if lints else 0
    except BaseException as error:
        found, said = f"{type(error).__name__}: {error}"[:200], 0
    print(json.dumps([path, time.process_time() - began, found, said]), flush=True)
"""


def _filled(piece: str, before: str = "", after: str = "") -> str:
    return before + piece * ((FULL - len(before) - len(after)) // len(piece)) + after


def _numbered(piece: str, count: int, before: str = "") -> str:
    return (before + "".join(piece.replace("#N", str(n)) for n in range(count)))[:FULL]


def _aliases() -> str:
    lines = [f"b{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(["a: &a0 [x]", *lines])


def _merges() -> str:
    wide = "a: &a {" + ",".join(f"k{n}: 1" for n in range(2_000)) + "}\n"
    return wide + "".join(f"b{n}: {{<<: *a}}\n" for n in range(2_000))


def _chain() -> str:
    """Return resources of which each uses the next."""
    items = (f"  - {{label: r{n}, try: [{{resource: r{n + 1}}}]}}\n" for n in range(8_000))
    return "pipeline: {processors: [{resource: r0}]}\nprocessor_resources:\n" + "".join(items)


def _missing() -> str:
    """Return thousands of resources, and thousands of labels that none of them has."""
    items = (f"  - {{label: r{n}, try: [{{resource: x{n}}}]}}\n" for n in range(8_000))
    return "pipeline: {processors: [{resource: x}]}\nprocessor_resources:\n" + "".join(items)


def _secrets() -> str:
    """Return thousands of secrets, and thousands of findings beside them."""
    values = (f"    password{n}: secret-value-{n}\n    other{n}: []\n" for n in range(10_000))
    return "spark:\n  conf:\n" + "".join(values)


BOMBS: Final[dict[str, Callable[[], str | bytes]]] = {
    "aliases of aliases": _aliases,
    "merges of a wide map": _merges,
    "an anchor in itself": lambda: "a: &a [*a]",
    "merges in a circle": lambda: "a: &a {<<: *a}",
    "many anchors": lambda: _numbered("&a#N x,", 90_000, "a: ["),
    "brackets": lambda: _filled("["),
    "braces": lambda: _filled("{a: "),
    "dashes in a line": lambda: _filled("- "),
    "questions": lambda: _filled("? "),
    "indents": lambda: "".join(" " * n + "a:\n" for n in range(1_300)),
    "a huge key": lambda: _filled("k", after=": 1"),
    "a huge quoted key": lambda: _filled("k", '? "', '"\n: 1\n'),
    "a huge text": lambda: _filled("x", "input: "),
    "a huge label": lambda: _filled("a", "input: {label: ", "!}"),
    "a huge number": lambda: _filled("9", "pipeline: {threads: ", "}"),
    "a huge duration": lambda: _filled("1h", "shutdown_timeout: ", "x"),
    "a huge tag": lambda: _filled("x", "a: !", " b"),
    "a huge anchor": lambda: _filled("x", "a: &", " b"),
    "many keys": lambda: _numbered("k#N: 1\n", 150_000),
    "one key again and again": lambda: _filled("k: 1\n"),
    "many keys that are nearly right": lambda: _numbered("inpu#N: 1\n", 90_000),
    "many documents": lambda: _filled("---\n"),
    "many directives": lambda: _filled("%YAML 9.9\n"),
    "many tags": lambda: _filled("!x ", "a: "),
    "many lines": lambda: _filled("\n", after="a: 1"),
    "many carriage returns": lambda: _filled("\r", after="a: 1"),
    "an open quote": lambda: _filled("x\n", "a: '"),
    "an open double quote": lambda: _filled("\\x41", 'a: "'),
    "quotes": lambda: _filled("'"),
    "tabs": lambda: _filled("\t"),
    "colons": lambda: _filled(":"),
    "folded lines": lambda: _filled("  x\n\n", "a: >\n"),
    "variables": lambda: _filled("${X}", "a: "),
    "variables that expand": lambda: _filled("${X}\n", "a: |\n"),
    "open variables": lambda: _filled("${X:", "a: "),
    "escaped variables": lambda: _filled("${{X:", "a: "),
    "a long mapping": lambda: _filled("        root.a = this.b\n", _MAPPING),
    "many mappings": lambda: _numbered("    - mapping: root.a#N = this.b\n", 30_000, _PROCESSORS),
    "brackets in a mapping": lambda: _filled("(", _PROCESSORS + "    - mapping: root = "),
    "open interpolations": lambda: _filled("${! ", _PROCESSORS + "    - log:\n        message: "),
    "many processors": lambda: _filled("    - noop: {}\n", _PROCESSORS),
    "processors in processors": lambda: _filled("{try: [", "pipeline: {processors: ["),
    "many wrong tests": lambda: _filled("{},", "tests: [", "{}]"),
    "resources in a chain": _chain,
    "resources that are missing": _missing,
    "many secrets beside findings": _secrets,
    "many ignores": lambda: _filled("# streamer:ignore deprecated\n", after="a: 1\n"),
    "many ignores in quotes": lambda: _filled("- 'x' # streamer:ignore bad_tag\n", "a:\n"),
    "NUL": lambda: _filled("\0"),
    "a NUL at the end": lambda: "input: {stdin: {}}\n\0",
    "a lone byte order mark": lambda: b"\xef\xbb\xbf",
    "Latin-1": lambda: ("é" * FULL).encode("latin-1"),
    "UTF-16": lambda: ("input: {stdin: {}}\n" * 1_000).encode("utf-16"),
    "UTF-32": lambda: ("input: {stdin: {}}\n" * 1_000).encode("utf-32"),
    "two encodings": lambda: "input: é\n".encode() + "output: é\n".encode("latin-1"),
    "a surrogate": lambda: b"a: \xed\xa0\x80",
    "combining marks": lambda: _filled("e\u0301", "a: ")[: FULL // 3],
    "separators of lines": lambda: _filled("\u2028\u2029\x85", "a: ")[: FULL // 3],
    "beyond the first plane": lambda: _filled("\U0001f600")[: FULL // 4],
    "too large by a byte": lambda: "#" * (MAX_BYTES + 1),
}
_PROCESSORS: Final = "pipeline:\n  processors:\n"
_MAPPING: Final = _PROCESSORS + "    - mapping: |\n"


def linted(paths: list[Path]) -> list[list[Any]]:
    """Lint files one after another; returns path, CPU seconds, codes, and the longest text."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(MEGABYTES), *map(str, paths)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(results: list[list[Any]]) -> None:
    wrong = [
        (Path(path).name, round(seconds, 2), codes)
        for path, seconds, codes, longest in results
        if not isinstance(codes, list) or not codes or seconds > SECONDS or longest > 2_000
    ]
    assert wrong == []


@pytest.mark.slow
def test_a_bomb_ends_with_findings_in_a_second_and_200_mb(tmp_path: Path) -> None:
    paths = []
    for name, make in BOMBS.items():
        made = make()
        paths.append(tmp_path / name)
        paths[-1].write_bytes(made if isinstance(made, bytes) else made.encode())
    results = linted(paths)
    assert len(results) == len(BOMBS)
    check(results)


def test_a_file_of_100_mb_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    (result,) = linted([path])
    assert result[2] == ["unreadable"]
    check([result])


@pytest.mark.slow
def test_what_is_no_config_ends_with_findings(tmp_path: Path) -> None:
    """Bytes at random, and the examples with bytes of them changed at random."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    examples = [path.read_bytes() for path in sorted((ROOT / "configs").glob("*.yaml"))]
    paths = []
    for number in range(120):
        text = bytearray(chance.choice(examples))
        for _ in range(chance.randrange(1, 30)):
            at = chance.randrange(len(text))
            text[at : at + chance.randrange(4)] = chance.randbytes(chance.randrange(4))
        paths.append(tmp_path / f"{seed}-{number}.yaml")
        whole = number % 4 == 0
        paths[-1].write_bytes(chance.randbytes(chance.randrange(1, FULL)) if whole else text)
    for path, seconds, codes, _ in linted(paths):
        # A change may have hit a comment, so that there is nothing to find.
        assert isinstance(codes, list), (path, codes)
        assert seconds < SECONDS, path
