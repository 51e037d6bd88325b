"""Files made to exhaust who reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from streamer.config.file import MAX_CONFIG_BYTES

_FULL: Final = MAX_CONFIG_BYTES - 200


def _filled(piece: str, before: str = "", after: str = "") -> str:
    return before + piece * ((_FULL - len(before) - len(after)) // len(piece)) + after


def _numbered(piece: str, count: int, before: str = "") -> str:
    return (before + "".join(piece.replace("#N", str(n)) for n in range(count)))[:_FULL]


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


_BOMBS: Final[dict[str, Callable[[], str | bytes]]] = {
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
    "Latin-1": lambda: ("é" * _FULL).encode("latin-1"),
    "UTF-16": lambda: ("input: {stdin: {}}\n" * 1_000).encode("utf-16"),
    "UTF-32": lambda: ("input: {stdin: {}}\n" * 1_000).encode("utf-32"),
    "two encodings": lambda: "input: é\n".encode() + "output: é\n".encode("latin-1"),
    "a surrogate": lambda: b"a: \xed\xa0\x80",
    "combining marks": lambda: _filled("e\u0301", "a: ")[: _FULL // 3],
    "separators of lines": lambda: _filled("\u2028\u2029\x85", "a: ")[: _FULL // 3],
    "beyond the first plane": lambda: _filled("\U0001f600")[: _FULL // 4],
    "too large by a byte": lambda: "#" * (MAX_CONFIG_BYTES + 1),
}
_PROCESSORS: Final = "pipeline:\n  processors:\n"
_MAPPING: Final = _PROCESSORS + "    - mapping: |\n"


def bombs() -> dict[str, bytes]:
    """Return all of them, by what they are."""
    made = {name: make() for name, make in _BOMBS.items()}
    return {name: one if isinstance(one, bytes) else one.encode() for name, one in made.items()}


def mutilated(examples: Sequence[bytes], chance: Random) -> bytes:
    """Return one of some configs, with bytes of it changed at random."""
    text = bytearray(chance.choice(examples))
    for _ in range(chance.randrange(1, 30)):
        at = chance.randrange(len(text))
        text[at : at + chance.randrange(4)] = chance.randbytes(chance.randrange(4))
    return bytes(text)
