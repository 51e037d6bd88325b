"""`.ci/run`: it begins with the README's command, has every tier, and bounds what it runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugin.tiers import KINDS

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "run"


def of_script(function: str) -> str:
    """Return the text of a function of the script."""
    found = re.search(rf"^{function}\(\) {{.*?(\n}}$| }}$)", SCRIPT.read_text(), re.M | re.S)
    assert found, function
    return found[0]


def run_part(minutes: str, command: str) -> subprocess.CompletedProcess[str]:
    script = f"set -euo pipefail\n{of_script('say')}\n{of_script('part')}\n"
    script += f"part 'a part' {minutes} bash -c '{command}'\necho afterwards"
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )


def test_shellcheck_finds_nothing() -> None:
    shellcheck = Path(sys.executable).parent / "shellcheck"
    ran = subprocess.run([shellcheck, SCRIPT], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


def test_the_readmes_command_is_run_before_all_other_tests() -> None:
    text = SCRIPT.read_text()
    [command] = re.findall(r"sed -n '(.*)' README.md", text)
    shown = subprocess.run(
        ["sed", "-n", command, ROOT / "README.md"], capture_output=True, text=True, check=True
    ).stdout
    assert shown.endswith(".venv/bin/pytest\n") and shown.count("\n") == 1
    at = text.index('bash -euo pipefail -c "$command"')
    assert all(found.start() > at for found in re.finditer(r"pytest --tier|^rest ", text, re.M))


def test_every_tier_is_run_and_within_a_bound() -> None:
    text = SCRIPT.read_text()
    for kind in set(KINDS) - {"fast"}:
        assert re.search(rf"^rest {kind} \d+ \d+$", text, re.M), kind
    # A command that runs tests is an argument of `tests`, on its line or the one before.
    whole = text.replace("\\\n", " ")
    runs = [line for line in whole.splitlines() if re.search(r"pytest\"? --tier", line)]
    assert len(runs) == 3
    assert [line for line in runs if not re.search(r"\btests \"", line)] == []


@pytest.mark.parametrize(
    ("minutes", "command", "code", "said"),
    [
        ("1", "echo 3 passed", 0, "afterwards"),
        ("1", "exit 3", 3, "a part FAILED (exit code 3;"),
        ("0.01", "sleep 30", 124, "it took longer than 0.01 min"),
    ],
    ids=["passes", "fails", "hangs"],
)
def test_a_part_that_fails_or_takes_too_long_ends_the_script(
    minutes: str, command: str, code: int, said: str
) -> None:
    ran = run_part(minutes, command)
    assert ran.returncode == code
    assert said in ran.stdout + ran.stderr
    assert ("afterwards" in ran.stdout) == (code == 0)


TESTS = """
import os, pytest

@pytest.mark.parametrize("name", ["a b", "c'd"])
def test_unsteady(name):
    done = os.path.join(os.environ["STATE"], name)
    first = not os.path.exists(done)
    open(done, "w").close()
    assert not first

def test_broken():
    assert not os.environ["BROKEN"]

@pytest.mark.parametrize("number", range(int(os.environ["MANY"])))
def test_many(number):
    assert False
"""


@pytest.mark.parametrize(
    ("broken", "many", "passes", "once_more"),
    [("", 0, True, True), ("1", 0, False, True), ("", 2, False, False)],
    ids=["unsteady", "broken", "many"],
)
def test_a_few_failed_tests_run_once_more(
    broken: str, many: int, passes: bool, once_more: bool, tmp_path: Path
) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    bin_directory = Path(sys.executable).parent
    functions = "\n".join(of_script(name) for name in ("say", "part", "tests"))
    script = f"""set -euo pipefail
caches={tmp_path}
unsteady=()
{functions}
tests 'a part' 1 {bin_directory} {bin_directory}/pytest -p no:xdist test_it.py
printf 'unsteady: %s\\n' "${{unsteady[@]}}"
"""
    ran = subprocess.run(
        ["bash", "-c", script.replace('/pytest" -n 0', '/pytest"')],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "STATE": str(tmp_path),
            "BROKEN": broken,
            "MANY": str(many),
            "PYTEST_ADDOPTS": f"-o cache_dir={tmp_path}/pytest",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode == 0) == passes, ran.stdout
    assert ("once more" in ran.stdout) == once_more
    unsteady = [line for line in ran.stdout.splitlines() if line.startswith("unsteady: ")]
    assert len(unsteady) == (2 if passes else 0)
