"""Schemathesis asks the API whatever its OpenAPI document allows, and much that it does not.

Streams are pretended, so that thousands of requests take seconds; what stands before them is whole.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.service.api.asking import asking
from tests.service.fleet.pretending import config_text

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# By hand: STREAMER_EXAMPLES=60.
EXAMPLES = int(os.environ.get("STREAMER_EXAMPLES", "12"))
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]


def fuzz(operation: Any, mode: GenerationMode, number: int, url: str) -> int:
    """Ask one operation; returns how often."""
    asked = 0

    @seed(number)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case) -> None:
        nonlocal asked
        asked += 1
        answer = case.call(base_url=url)
        assert answer.status_code != 500, answer.text
        assert "see the service's log" not in answer.text, answer.text
        if mode == GenerationMode.POSITIVE:
            case.validate_response(answer, checks=CHECKS)

    ask()
    return asked


def test_nothing_that_can_be_asked_makes_the_server_fail(tmp_path: Path) -> None:
    number = random.randrange(10**6)
    print("seed", number)
    asked = 0
    with asking(tmp_path) as server:
        for name in ("a", "0"):
            assert server.ask("POST", f"/streams/{name}", config_text("one")).status_code == 200
        document = server.ask("GET", "/openapi.json").json()
        schema = schemathesis.openapi.from_dict(document)
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            for found in schema.get_all_operations():
                operation = found.ok()
                if mode == GenerationMode.NEGATIVE and not operation.definition.raw["parameters"]:
                    continue

                asked += fuzz(operation, mode, number, server.url)
        assert server.ask("GET", "/ping").text == "pong"
        wrong = [line for line in server.service.log if "went wrong" in line[1]]
        assert wrong == []
    assert asked > 200
