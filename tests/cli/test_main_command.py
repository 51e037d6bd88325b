from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from streamer import __version__
from streamer.cli.main import invoke
from streamer.cli.options import Options

HEAVY = ("pyspark", "pyarrow", "numpy", "pandas", "jsonschema", "kafka", "prometheus_client")


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["--help"]) == 0
    text = capsys.readouterr().out
    for name in ("run", "lint", "explain", "blobl", "--config", "--set", "--checkpoint"):
        assert name in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["--version"]) == 0
    assert capsys.readouterr().out == f"Version: {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lnt"], "there is no command 'lnt'; did you mean: streamer lint"),
        (["my.yaml"], "there is no command 'my.yaml'; did you mean: streamer -c my.yaml"),
        (["studio", "pull"], "the command studio is not available"),
        (["--nope"], "No such option"),
        (["--log.level", "loud"], "'loud'"),
        (["-c", "a.yaml", "run", "b.yaml"], "run takes one config, found two"),
    ],
)
def test_a_wrong_call_exits_with_1(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(arguments) == 1
    assert said in capsys.readouterr().err


def test_a_bad_config_exits_with_1_and_all_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("input: {stdni: {}}\nloger: {}\n")
    for arguments in (["-c", str(path)], ["run", str(path)], ["explain", str(path)]):
        assert invoke(arguments) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err == (
            f"{path}(1,9) input 'stdni' is not known; did you mean stdin?\n"
            f"{path}(2,1) field loger not recognised; did you mean logger?\n"
        )


def test_a_set_is_read_with_the_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("output: {drop: {}}\n")
    assert invoke(["-c", str(path), "-s", "output.drp={}", "-s", "spark.shards=0"]) == 1
    assert capsys.readouterr().err == (
        "--set output.drp(1,1) field drp is invalid when the component type is drop (output)\n"
        "--set spark.shards(1,1) field shards is 0; expected 1 or more\n"
    )


def test_options_of_a_command_win_over_those_before_it() -> None:
    root = Options("a.yaml", ("x=1",), None, "INFO")
    assert Options("b.yaml").with_defaults(root) == Options("b.yaml", ("x=1",), None, "INFO")
    assert Options(sets=("y=2",), log_level="WARN").with_defaults(root) == Options(
        "a.yaml", ("y=2",), None, "WARN"
    )


def test_light_commands_import_nothing_heavy() -> None:
    calls = (
        ("lint", "configs"),
        ("blobl", "root = this", "-i", "pyproject.toml", "--raw"),
        ("--help",),
    )
    code = (
        "import sys; from streamer.cli.main import invoke; "
        f"assert [invoke(list(call)) for call in {calls!r}] == [0, 0, 0]; "
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert (done.returncode, done.stderr) == (0, "[]\n")
