"""Results as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from streamer.core.errors import Lint
from streamer.tools.unit_tests.failure import Line
from streamer.tools.unit_tests.junit import format_junit
from streamer.tools.unit_tests.suite import CaseResult, SuiteResult

WRONG = ((Line("batch 0: <wrong>"), Line("  expected: a", "expected")), (Line("and \x00more"),))
RESULTS = [
    SuiteResult(
        "a.yaml",
        (
            CaseResult("well", "a.yaml", 3, seconds=0.25),
            CaseResult("wrong & <odd>", "a_streamer_test.yaml", 9, WRONG, seconds=0.5),
            CaseResult("cannot", "a.yaml", 12, ((Line("no file"),),), error=True),
        ),
        (),
    ),
    SuiteResult("b.yaml", (), (Lint("b.yaml", 1, 2, "x", "bad"), Lint("b.yaml", 3, 4, "x", "too"))),
]


def test_counts_places_and_texts_are_in_the_document() -> None:
    root = ET.fromstring(format_junit(RESULTS))
    assert root.tag == "testsuites"
    counts = ("tests", "failures", "errors")
    assert [root.get(name) for name in counts] == ["4", "1", "2"]
    a, b = root
    assert [a.get(name) for name in ("name", *counts, "time")] == [
        "a.yaml",
        "3",
        "1",
        "1",
        "0.7500",
    ]
    assert [b.get(name) for name in ("name", *counts)] == ["b.yaml", "1", "0", "1"]
    well, wrong, cannot = a
    assert dict(well.attrib) == {
        "name": "well",
        "classname": "a.yaml",
        "file": "a.yaml",
        "line": "3",
        "time": "0.2500",
    }
    assert len(well) == 0
    assert wrong.get("name") == "wrong & <odd>"
    [failure] = wrong
    assert failure.tag == "failure" and failure.get("message") == "batch 0: <wrong>"
    assert failure.text == "batch 0: <wrong>\n  expected: a\nand \N{REPLACEMENT CHARACTER}more"
    assert [found.tag for found in cannot] == ["error"]
    [lint] = b
    assert lint.get("name") == "lint" and lint[0].text == "b.yaml(1,2) bad\nb.yaml(3,4) too"


def test_no_results_are_a_document_too() -> None:
    root = ET.fromstring(format_junit([]))
    assert (root.get("tests"), len(root)) == ("0", 0)
