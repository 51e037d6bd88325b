"""Results as JUnit XML, which continuous integration reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from streamer.unit_tests.failure import Failure
from streamer.unit_tests.suite import CaseResult, SuiteResult

# What XML 1.0 cannot hold, even escaped.
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(results: Sequence[SuiteResult]) -> bytes:
    """Return the results as a document; a config's findings are a test case named `lint`."""
    root = ET.Element("testsuites", name="streamer test")
    for result in results:
        suite = ET.SubElement(root, "testsuite", name=_fit(result.config))
        if result.lints:
            case = ET.SubElement(suite, "testcase", name="lint", classname=_fit(result.config))
            text = "\n".join(map(str, result.lints))
            ET.SubElement(case, "error", message=_fit(str(result.lints[0]))).text = _fit(text)
        for one in result.cases:
            _case(suite, one)
        _count(suite)
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", _seconds(case.seconds for result in results for case in result.cases))
    for suite, result in zip(root, results, strict=True):
        suite.set("time", _seconds(case.seconds for case in result.cases))
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _case(suite: ET.Element, result: CaseResult) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        name=_fit(result.name),
        classname=_fit(result.file),
        file=_fit(result.file),
        line=str(result.line),
        time=_seconds([result.seconds]),
    )
    if result.failures:
        kind = "error" if result.error else "failure"
        found = ET.SubElement(case, kind, message=_fit(result.failures[0][0].text))
        found.text = _fit("\n".join(_text(one) for one in result.failures))


def _count(suite: ET.Element) -> None:
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", str(len(suite.findall("testcase/error"))))


def _text(failure: Failure) -> str:
    return "\n".join(line.text for line in failure)


def _seconds(seconds: Iterable[float]) -> str:
    return f"{sum(seconds):.4f}"


def _fit(text: str) -> str:
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)
