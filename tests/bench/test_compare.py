"""How peers are run, measured and judged, with jobs that take no time."""

from __future__ import annotations

import json
import re
import shlex
import sys
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from tests.bench import answers, compare
from tests.bench.__main__ import asked, peers_of
from tests.bench.compared import environments
from tests.bench.compared.peers import BY_NAME, Job, Peer
from tests.bench.compared.runs import Figures, Launch, Run, measure

FORGETFUL = """
import json, sys
from pathlib import Path
sys.path.insert(0, ".")
from tests.bench import answers
paths = sorted(Path(sys.argv[1]).glob("traffic-*.jsonl"))
found = answers.expected(answers.read(paths), 10, 10, closed="left")
lines = [
    {"created_at": at, "traffic_light": light, "total_cars": cars, "passengers": passengers}
    for (at, light), (cars, passengers) in found.items()
]
left_out = int(sys.argv[3])
Path(sys.argv[2]).write_text("".join(json.dumps(line) + "\\n" for line in lines[left_out:]))
"""


PAGE = Path(__file__).parents[2] / "streamer" / "docs" / "compared.md"


def peer(script: Path, left_out: int) -> Peer:
    def launch(job: Job) -> Launch:
        given = (str(job.files), str(job.out), str(left_out))
        return Launch([sys.executable, str(script), *given], job.out)

    return Peer("fake", "pytest", (), launch)


@pytest.mark.parametrize(("left_out", "says"), [(0, "all right"), (1, "1 missing, 0 too many")])
def test_a_peers_answers_are_checked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    left_out: int,
    says: str,
) -> None:
    script = tmp_path / "job.py"
    script.write_text(FORGETFUL)
    monkeypatch.setitem(BY_NAME, "fake", peer(script, left_out))
    monkeypatch.setattr(compare, "FEW", 200)
    # How long so few take is chance.
    monkeypatch.setattr(Figures, "of", lambda short, long: Figures(1.0, 1.0, 1, 1.0))
    compare.compare(tmp_path / "work", 1_000, ("fake",), "local[2]")
    assert says in capsys.readouterr().out.splitlines()[-1]


def test_a_peer_that_cannot_be_installed_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(name: str, wanted: object) -> Path:
        raise RuntimeError("pip does not install it: no wheel")

    monkeypatch.setattr(compare, "python_of", refuse)
    compare.compare(tmp_path / "work", 1_000, ("pathway",), "local[2]")
    told = "pathway no figures: pip does not install it: no wheel"
    assert " ".join(capsys.readouterr().out.split()).endswith(told)


def test_a_job_that_never_ends_is_ended_when_its_lines_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.bench.compared.runs.STILL", 0.2)
    out = tmp_path / "out.jsonl"
    code = f"import time; open({str(out)!r}, 'w').write('a\\nb\\n'); time.sleep(60)"
    launch = Launch([sys.executable, "-c", code], out, ends=False)
    run = measure(launch, 10, 2, tmp_path / "log.txt")
    assert 0 < run.seconds < 30 and run.memory > 1 << 20


def test_a_job_that_fails_says_why(tmp_path: Path) -> None:
    launch = Launch([sys.executable, "-c", "raise SystemExit('no such topic')"], tmp_path / "out")
    with pytest.raises(RuntimeError, match="exit code 1:\nno such topic"):
        measure(launch, 10, 2, tmp_path / "log.txt")


def test_the_start_is_left_out() -> None:
    found = Figures.of(Run(20_000, 5.0, 8.0, 1), Run(1_020_000, 7.0, 11.0, 2))
    assert found == Figures(rate=500_000, cpu=3.0, memory=2, start=5.0)
    with pytest.raises(RuntimeError, match="use more --events"):
        Figures.of(Run(20_000, 5.0, 8.0, 1), Run(40_000, 5.0, 8.0, 1))


def test_what_is_installed_beside_the_product_is_taken() -> None:
    assert environments.is_here(["pytest>=8", "packaging"])
    assert not environments.is_here(["pytest<1"])
    assert not environments.is_here(["there-is-no-such-package"])
    assert environments.python_of("any", ["pytest"]) == Path(sys.executable)


def test_a_name_that_is_no_peers_is_refused() -> None:
    assert peers_of("bytewax,tenzir") == ("bytewax", "tenzir")
    with pytest.raises(ArgumentTypeError, match="no peer flink; there are streamer, pyspark"):
        peers_of("flink")


def test_answers_that_come_twice_are_wrong(tmp_path: Path) -> None:
    line = {"created_at": "x", "traffic_light": "a", "total_cars": 1, "passengers": 2}
    out = tmp_path / "out.jsonl"
    out.write_text((json.dumps(line) + "\n") * 2)
    want: answers.Answers = {("x", "a"): (1, 2)}
    assert "came twice" in compare.wrong_with(want, Launch([], out))


def test_the_page_has_every_peer_and_its_commands_make_sense() -> None:
    page = PAGE.read_text()
    for name in BY_NAME:
        assert re.search(rf"^\| `{name}` ", page, re.M), name
    found = re.findall(r"^python -m tests\.bench (.*)$", page, re.M)
    assert len(found) > 2
    for arguments in found:
        assert asked(shlex.split(arguments, comments=True)).parts == ["compare"]
