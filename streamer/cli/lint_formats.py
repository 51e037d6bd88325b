"""The findings of `streamer lint` for programs: JSON, and SARIF 2.1.0 for code scanners."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from streamer import __version__
from streamer.config.lint.rules import RULES, Rule
from streamer.core.errors import Lint

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"

Results = Mapping[str, Sequence[Lint]]
"""The findings by the file that was linted, in order."""


def to_json(results: Results) -> str:
    """Return one object: `files`, how many were looked at, and `findings`, a list.

    Each finding has `file`, `line`, `column`, `code`, `level` (`error` or `warning`), `message`
    and `suggestion` (which may be empty).
    """
    findings = [
        {
            "file": lint.file,
            "line": lint.line,
            "column": lint.column,
            "code": lint.code,
            "level": RULES[lint.code].level,
            "message": lint.message,
            "suggestion": lint.suggestion,
        }
        for lints in results.values()
        for lint in lints
    ]
    return json.dumps({"files": len(results), "findings": findings}, ensure_ascii=False, indent=2)


def to_sarif(results: Results) -> str:
    """Return a log of one run, with all rules; columns count characters."""
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "streamer",
                        "semanticVersion": __version__,
                        "rules": [_rule_to_sarif(rule) for rule in RULES.values()],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "artifacts": [{"location": {"uri": _file_to_uri(file)}} for file in results],
                "results": [_lint_to_sarif(lint) for lints in results.values() for lint in lints],
            }
        ],
    }
    return json.dumps(log, ensure_ascii=False, indent=2)


def _rule_to_sarif(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "shortDescription": {"text": rule.meaning.partition(". ")[0].rstrip(".") + "."},
        "fullDescription": {"text": rule.meaning},
        "help": {
            "text": f"{rule.meaning} {rule.remedy}",
            "markdown": f"{rule.meaning}\n\n{rule.remedy}",
        },
        "defaultConfiguration": {"level": rule.level},
    }


def _lint_to_sarif(lint: Lint) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _file_to_uri(lint.file)}}
    if lint.line:
        place["region"] = {"startLine": lint.line, "startColumn": lint.column}
    text = f"{lint.message}; {lint.suggestion}" if lint.suggestion else lint.message
    return {
        "ruleId": lint.code,
        "ruleIndex": list(RULES).index(lint.code),
        "level": RULES[lint.code].level,
        "message": {"text": text},
        "locations": [{"physicalLocation": place}],
    }


def _file_to_uri(file: str) -> str:
    """Return a file's name as a URI reference: relative to the directory that lint ran in."""
    path = Path(file)
    if path.is_absolute():
        return path.as_uri()
    # A colon in the first part would be taken for the end of a scheme.
    uri = quote(path.as_posix())
    return f"./{uri}" if ":" in uri.partition("/")[0] else uri
