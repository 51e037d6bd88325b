"""Processors within others in a strict run: what has failed skips what follows, as in Benthos."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.processing import run

THROW = "mapping: 'root = throw(\"x\")'"
NEVER = "mapping: 'root = \"never\"'"
CHILDREN = f"processors: [{{{THROW}}}, {{{NEVER}}}]"
ERROR = "failed assignment (line 1): x"
IN_BRANCH = f"processors failed: {ERROR}"


@pytest.mark.parametrize(
    ("processor", "content", "error"),
    [
        (f"branch: {{{CHILDREN}, result_map: root = 1}}", "{}", IN_BRANCH),
        (f"switch: [{{{CHILDREN}}}]", "{}", ERROR),
        (f"while: {{check: 'true', max_loops: 3, {CHILDREN}}}", "{}", ERROR),
        (f"retry: {{max_retries: 1, {CHILDREN}}}", "{}", ERROR),
        (f"parallel: {{{CHILDREN}}}", "{}", ERROR),
        (
            f"workflow: {{meta_path: '', branches: {{a: {{{CHILDREN}}}}}}}",
            "{}",
            "workflow branches failed: [a]",
        ),
        # Here nothing is skipped, in Benthos neither.
        (f"cached: {{cache: c, key: k, {CHILDREN}}}", "never", ERROR),
    ],
)
def test_what_has_failed_skips_the_rest(processor: str, content: str, error: str) -> None:
    text = f"pipeline: {{processors: [{{{processor}}}, {{mapping: root = 5}}]}}\n"
    config = parse_config(f"{text}cache_resources: [{{label: c, noop: {{}}}}]\n", env={})
    processors: list[Any] = build_context(config.resources).build_all(config.processors)
    strict = Execution(lambda: 0, strict=True)
    ((made,),) = run(processors, [[Message(b"{}")]], strict)
    assert (made.raw.decode(), made.error) == (content, error)
