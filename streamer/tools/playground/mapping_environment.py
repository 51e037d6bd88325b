"""Environment of a mapping's text: variables, and the directory that it is from."""

from __future__ import annotations

import os

from streamer.config.env_variables import replace_variables
from streamer.config.findings import Findings
from streamer.config.source_map import Source
from streamer.core.errors import StreamerError


def substitute_variables(text: str, file: str | None) -> str:
    """Return a mapping's text with its `${VARIABLES}` replaced.

    Raises:
        StreamerError: one has neither a value nor a default.
    """
    source, findings = Source(file or "", text), Findings()
    replace_variables(source, os.environ, findings)
    if findings:
        lint = findings.to_sorted()[0]
        hint = f"; {lint.suggestion}" if lint.suggestion else ""
        raise StreamerError(f"failed to replace env vars: {lint.message}{hint}")
    return source.text


def find_import_directory(file: str | None) -> str:
    """Return the directory that a mapping's imports begin in; empty for the working directory."""
    return os.path.dirname(os.path.abspath(file)) if file else ""
