"""Results as JUnit XML, which continuous integration reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from streamer.tools.unit_tests.failure import Failure
from streamer.tools.unit_tests.suite import CaseResult, SuiteResult

# What XML 1.0 cannot hold, even escaped.
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def format_junit(results: Sequence[SuiteResult]) -> bytes:
    """Return the results as a document; a config's findings are a test case named `lint`."""
    root = ET.Element("testsuites", name="streamer test")
    for result in results:
        suite = ET.SubElement(root, "testsuite", name=_replace_unfit(result.config))
        if result.lints:
            case = ET.SubElement(
                suite, "testcase", name="lint", classname=_replace_unfit(result.config)
            )
            text = "\n".join(map(str, result.lints))
            ET.SubElement(
                case, "error", message=_replace_unfit(str(result.lints[0]))
            ).text = _replace_unfit(text)
        for one in result.cases:
            _add_case(suite, one)
        _set_counts(suite)
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", _format_seconds(case.seconds for result in results for case in result.cases))
    for suite, result in zip(root, results, strict=True):
        suite.set("time", _format_seconds(case.seconds for case in result.cases))
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _add_case(suite: ET.Element, result: CaseResult) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        name=_replace_unfit(result.name),
        classname=_replace_unfit(result.file),
        file=_replace_unfit(result.file),
        line=str(result.line),
        time=_format_seconds([result.seconds]),
    )
    if result.failures:
        kind = "error" if result.error else "failure"
        element = ET.SubElement(case, kind, message=_replace_unfit(result.failures[0][0].text))
        element.text = _replace_unfit("\n".join(_format_failure(one) for one in result.failures))


def _set_counts(suite: ET.Element) -> None:
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", str(len(suite.findall("testcase/error"))))


def _format_failure(failure: Failure) -> str:
    return "\n".join(line.text for line in failure)


def _format_seconds(seconds: Iterable[float]) -> str:
    return f"{sum(seconds):.4f}"


def _replace_unfit(text: str) -> str:
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)
