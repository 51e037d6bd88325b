"""What the editor is made of, asked by itself in a browser: places in texts, and differences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.service.api.asking import asking
from tests.service.console.chromium import chromium, opened

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROCESSOR = ["pipeline", "processors", "[]"]
# A text with the cursor at ^; what leads to it, what is typed, and what is proposed, beside others.
PLACES: list[tuple[str, list[str], str, set[str], set[str]]] = [
    ("^", [], "key", {"input", "output", "buffer"}, {"kafka"}),
    ("in^\nbuffer: {}\noutput: {}", [], "key", {"input"}, {"buffer", "output"}),
    ("input:\n  ka^", ["input"], "key", {"kafka", "label"}, {"input"}),
    (
        "input:\n  kafka:\n    topics: [a]\n    ^\n    consumer_group: x\n",
        ["input", "kafka"],
        "key",
        {"addresses"},
        {"topics", "consumer_group"},
    ),
    ("output:\n  drop: {}\n  ^", ["output"], "key", {"label"}, {"drop", "kafka"}),
    (
        "pipeline:\n  processors:\n    - ^",
        ["pipeline", "processors", "[]"],
        "key",
        {"mapping"},
        set(),
    ),
    (
        "pipeline:\n  processors:\n  - ^",
        ["pipeline", "processors", "[]"],
        "key",
        {"mapping"},
        set(),
    ),
    (
        "pipeline:\n  processors:\n    - mapping: |\n        root = 1\n    - label: a\n      ^",
        ["pipeline", "processors", "[]"],
        "key",
        {"mapping"},
        {"label"},
    ),
    (
        "pipeline:\n  processors:\n    - switch:\n        - check: x\n          processors:\n"
        "            - l^",
        ["pipeline", "processors", "[]", "switch", "[]", "processors", "[]"],
        "key",
        {"log"},
        set(),
    ),
    ("buffer: { system_window: { ^", ["buffer", "system_window"], "key", {"size", "slide"}, set()),
    (
        "buffer: { system_window: { size: 1s, ^",
        ["buffer", "system_window"],
        "key",
        {"slide"},
        {"size"},
    ),
    ("logger:\n  level: ^", ["logger", "level"], "value", {"DEBUG", "INFO"}, {"level"}),
    ("logger: { level: D^", ["logger", "level"], "value", {"DEBUG"}, set()),
    (
        "input:\n  kafka:\n    tls:\n      enabled: t^",
        ["input", "kafka", "tls", "enabled"],
        "value",
        {"true", "false"},
        set(),
    ),
]
NOWHERE = (
    "pipeline:\n  processors:\n    - mapping: |\n        root = ^",
    "pipeline:\n  processors:\n    - mapping: >-\n\n        root = 1\n        ^",
    "# in^",
    "input: # in^",
    'input:\n  generate:\n    mapping: "ro^',
    "input: { generate: { mapping: 'ro^",
)
DIFFS: list[tuple[str, str, str]] = [
    ("a\nb\nc", "a\nb\nc", "   "),
    ("a\nb\nc", "a\nx\nc", " -+ "),
    ("a\nb\nc", "a\nc", " - "),
    ("a\nc", "a\nb\nc\nd", " + +"),
    ("", "a", "-+"),
    ("a\nb\na\nb", "b\na\nb\na", "-   +"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    directory: Path = tmp_path_factory.mktemp("parts")
    with (
        asking(directory) as server,
        chromium() as browser,
        opened(browser, f"{server.url}/") as (found, complaints),
    ):
        assets = re.search(r"console/(\w+)/app\.js", server.ask("GET", "/").text)
        assert assets is not None
        found.evaluate(
            """async (assets) => {
              const at = `${location.origin}/console/${assets}/parts`;
              const part = (name) => import(`${at}/${name}.js`);
              const names = ["yaml_text", "schema", "diff", "languages"];
              window.parts = Object.assign({}, ...(await Promise.all(names.map(part))));
              window.configs = await (await fetch("schema")).json();
            }""",
            assets[1],
        )
        yield found
        assert complaints == []


def at(page: Page, text: str) -> Any:
    return page.evaluate(
        """([text, at]) => {
          const cursor = parts.cursorAt(text, at);
          return cursor && { ...cursor, found: parts.proposals(configs, cursor) };
        }""",
        [text.replace("^", ""), text.index("^")],
    )


@pytest.mark.parametrize(("text", "path", "what", "some", "none"), PLACES)
def test_what_is_typed_is_known_of_half_a_text(
    page: Page, text: str, path: list[str], what: str, some: set[str], none: set[str]
) -> None:
    cursor = at(page, text)
    assert (cursor["path"], cursor["what"]) == (path, what)
    names = {one["name"] for one in cursor["found"]}
    assert some <= names and not none & names
    assert all(len(one["about"]) <= 200 and "\n" not in one["about"] for one in cursor["found"])


@pytest.mark.parametrize("text", NOWHERE)
def test_nothing_is_proposed_in_mappings_texts_and_comments(page: Page, text: str) -> None:
    assert at(page, text) is None


@pytest.mark.parametrize(("before", "after", "kinds"), DIFFS)
def test_lines_that_differ(page: Page, before: str, after: str, kinds: str) -> None:
    rows = page.evaluate("([a, b]) => parts.compared(a, b)", [before, after])
    signs = {"same": " ", "old": "-", "new": "+"}
    assert "".join(signs[row["kind"]] for row in rows) == kinds
    assert [row["text"] for row in rows if row["kind"] != "new"] == before.split("\n")
    assert [row["text"] for row in rows if row["kind"] != "old"] == after.split("\n")
    numbers = [row["new"] for row in rows if row["kind"] != "old"]
    assert numbers == list(range(1, len(numbers) + 1))


def test_long_texts_are_compared_within_a_second_or_so(page: Page) -> None:
    took = page.evaluate(
        """() => {
          const lines = (n, f) => Array.from({ length: n }, (_, i) => f(i)).join("\\n");
          const began = performance.now();
          parts.compared(lines(1900, (i) => `a${i}`), lines(1900, (i) => `a${i * 7 % 1900}`));
          parts.compared(lines(20000, (i) => `a${i}`), lines(20000, (i) => `b${i}`));
          return performance.now() - began;
        }"""
    )
    assert took < 5_000


COLOURED = """\
input:
  generate:
    count: 3
    mapping: |
      # a mapping
      root = random_int(min: 1, max: 20)

      root.a = "x"   # no end
    label: made
pipeline:
  processors:
    - mutation: |-
        root.max: this
    - log:
        message: >
          said: ${WHO} "x"
    - label: last
"""


def test_what_stands_in_a_block_is_coloured_as_what_it_is(page: Page) -> None:
    found = page.evaluate("(text) => [...parts.pieces(text, parts.YAML)]", COLOURED)
    assert "".join(part for part, _ in found) == COLOURED
    by_colour: dict[str, list[str]] = {}
    for part, colour in found:
        by_colour.setdefault(colour, []).append(part)
    assert by_colour["key"] == [
        *("input", "generate", "count", "mapping", "random_int", "label", "pipeline"),
        *("processors", "mutation", "log", "message", "label"),
    ]
    assert by_colour["number"] == ["3", "1", "20"]
    assert by_colour["string"] == ['"x"'] and by_colour["variable"] == ["${WHO}"]
    assert by_colour["comment"] == ["# a mapping", "# no end"]
    # However long it is, and without an end.
    long = "a: |\n" + "  x: |\n" * 5000
    took = page.evaluate(
        """(text) => {
          const began = performance.now();
          const whole = [...parts.pieces(text, parts.YAML)].map(([part]) => part).join("");
          return whole === text ? performance.now() - began : Infinity;
        }""",
        long,
    )
    assert took < 5_000
