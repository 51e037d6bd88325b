"""The suite itself: every test is in one tier, and every sampled one has its turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Runs in a pytest of its own, which collects the whole suite.
LISTING = """
import json, os
import pytest
from tests.plugin.rotation import is_sampled, rests
from tests.plugin.tiers import TIERS, selects

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    resting = [rests(items, seed) for seed in range(24)]
    with open(os.environ["LISTING"], "w") as out:
        for item in items:
            json.dump({
                "id": item.nodeid,
                "tiers": [tier for tier in TIERS if selects(tier, item)],
                "sampled": is_sampled(item),
                "runs": sum(item not in rest for rest in resting),
            }, out)
            out.write("\\n")
"""


@pytest.mark.slow
def test_tiers_have_every_test_once_and_every_sampled_one_has_its_turn(tmp_path: Path) -> None:
    (tmp_path / "listing.py").write_text(LISTING)
    listing = tmp_path / "tests.jsonl"
    env = {
        **{name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        "LISTING": str(listing),
    }
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-n", "0"]
    command += ["--tier", "all", "--full", "-p", "listing", "-p", "no:cacheprovider"]
    subprocess.run(command, cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)
    found = [json.loads(line) for line in listing.read_text().splitlines()]
    assert len(found) > 10_000
    for one in found:
        kinds = {"fast", "spark", "slow", "proof"}.intersection(one["tiers"])
        assert len(kinds) == 1, one
        assert len({"default", "rest"}.intersection(one["tiers"])) == 1, one
        assert "all" in one["tiers"]
        # What is fast runs by default, and what runs by default is fast or of spark and slow.
        assert "fast" not in kinds or "default" in one["tiers"], one
        assert "proof" not in kinds or "rest" in one["tiers"], one
        assert one["runs"] == 24 or (one["sampled"] and one["runs"] > 0), one
    chosen = [one["id"] for one in found if {"default"} <= {*one["tiers"]} - {"fast"}]
    of_default = [one for one in chosen if "tests/spark/" in one or "tests/faults/" in one]
    assert len(of_default) > 20
