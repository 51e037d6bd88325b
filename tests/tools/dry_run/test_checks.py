"""Dry runs: what is there is said, what is not is named, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.config import parse_config
from streamer.connectors.files.writable import check_writable_file
from streamer.core.errors import StreamerError
from streamer.plan import Plan, make_plan
from streamer.spark.checkpoint.checkpoint import Checkpoint
from streamer.tools.dry_run import environment_checks
from streamer.tools.dry_run.check import CheckResult, run_check
from streamer.tools.dry_run.components import check_components


def plan(text: str) -> Plan:
    return make_plan(parse_config(text, "x.yaml"), "OFF")


def checks(text: str) -> list[CheckResult]:
    return [*check_components(plan(text))]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_check_that_breaks_down_says_so_and_no_other_is_lost() -> None:
    def look() -> str:
        raise ValueError("Port could not be\ncast to integer")

    found = run_check("output: redis", look)
    text = "the check broke down, which is a bug in the program: "
    assert found == CheckResult(
        "output: redis", False, f"{text}ValueError: Port could not be cast to integer"
    )


def test_the_files_of_an_input_are_opened() -> None:
    Path("a.jsonl").write_text("123\n")
    Path("b.jsonl").write_text("4\n")
    [found, _] = checks("input: {label: in, file: {paths: ['*.jsonl']}}")
    assert found == CheckResult("input: file [in]", True, "2 files, 6 bytes")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("no.jsonl", "input file: there is no file 'no.jsonl'; check the path"),
        ("*.jsonl", "no file matches *.jsonl"),
        (".", "input file: '.' is a directory; name its files with a glob"),
    ],
)
def test_files_that_are_not_there_are_named(path: str, said: str) -> None:
    [found, _] = checks(f"input: {{file: {{paths: ['{path}']}}}}")
    assert found.ok is False
    assert found.detail.startswith(said)


@pytest.mark.parametrize(
    ("path", "ok", "said"),
    [
        ("new/deep/out.jsonl", True, "new/deep/out.jsonl will be made"),
        ("there.jsonl", True, "there.jsonl is there"),
        ("folder", False, "folder is a directory; expected a file"),
        ("there.jsonl/out", False, "there.jsonl/out cannot be made: {}/there.jsonl is not a"),
        ("folder/${! json() }", True, "files in folder, by message"),
        ("${! json() }", True, "files in ., by message"),
        ("there.jsonl/${! json() }/a", False, "there.jsonl/x cannot be made: "),
    ],
)
def test_the_place_of_an_output_is_looked_at_and_not_made(
    path: str, ok: bool, said: str, directory: Path
) -> None:
    Path("there.jsonl").write_text("")
    Path("folder").mkdir()
    before = sorted(directory.rglob("*"))
    [_, found] = checks(f"output: {{file: {{path: '{path}'}}}}")
    assert found.ok is ok
    assert found.detail.startswith(said.format(directory))
    assert sorted(directory.rglob("*")) == before


def test_a_place_that_may_not_be_written_is_named(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(StreamerError, match=f"^new cannot be made: {directory} is not writable$"):
        check_writable_file(Path("new"))
    Path("old").write_text("")
    with pytest.raises(StreamerError, match="^old cannot be written: permission denied$"):
        check_writable_file(Path("old"))


def test_the_file_of_the_log_must_be_in_a_folder_that_exists(directory: Path) -> None:
    assert environment_checks.check_log_file("a.log") == "a.log will be made"
    with pytest.raises(StreamerError, match="^no/a.log cannot be made: there is no folder no$"):
        environment_checks.check_log_file("no/a.log")
    with pytest.raises(StreamerError, match="is a directory; expected a file"):
        environment_checks.check_log_file(".")


def test_every_resource_is_looked_at_once_and_processors_only_when_they_fail() -> None:
    text = (
        "buffer: { system_window: { size: 10s, late_output: late } }\n"
        "pipeline: { processors: [ noop: {} ] }\n"
        "output_resources: [ { label: late, file: { path: late.jsonl } } ]\n"
    )
    assert [(one.name, one.ok) for one in checks(text)] == [
        ("input: stdin", True),
        ("output: stdout", True),
        ("output_resources.0: file [late]", True),
    ]


def test_an_error_of_the_system_is_a_failed_check() -> None:
    def look() -> str:
        raise FileNotFoundError(2, "No such file or directory", "x")

    assert run_check("it", look) == CheckResult("it", False, "x: no such file or directory")


def test_a_new_checkpoint_is_not_made(directory: Path) -> None:
    assert (
        environment_checks.check_checkpoint(plan("{}"), f"{directory}/new")
        == f"{directory}/new: new"
    )
    assert not (directory / "new").exists()


def test_a_checkpoint_in_use_is_named(directory: Path) -> None:
    held = Checkpoint(directory / "c")
    with pytest.raises(StreamerError, match="another streamer uses the checkpoint"):
        environment_checks.check_checkpoint(plan("{}"), f"{directory}/c")
    held.close()
    assert environment_checks.check_checkpoint(plan("{}"), f"{directory}/c").endswith("c: new")


def test_a_checkpoint_of_other_windows_is_named_and_left_as_it_is(directory: Path) -> None:
    held = Checkpoint(directory / "c")
    held.bind(plan("buffer: { system_window: { size: 10s } }").fingerprint, {})
    held.close()
    (directory / "c" / "spark" / "offsets").mkdir(parents=True)
    (directory / "c" / "spark" / "offsets" / "0").write_text("")
    same = plan("buffer: { system_window: { size: 10s } }")
    assert environment_checks.check_checkpoint(same, f"{directory}/c").endswith(
        "c: goes on where it was"
    )
    record = (directory / "c" / "streamer.json").read_bytes()
    with pytest.raises(StreamerError, match=r"was made with buffer system_window \(size: 10s"):
        environment_checks.check_checkpoint(
            plan("buffer: { system_window: { size: 9s } }"), f"{directory}/c"
        )
    assert (directory / "c" / "streamer.json").read_bytes() == record


def test_a_checkpoint_of_a_run_that_finished_fits_everything(directory: Path) -> None:
    held = Checkpoint(directory / "c")
    held.bind(plan("buffer: { system_window: { size: 10s } }").fingerprint, {})
    held.finish()
    held.close()
    assert "the next one begins anew" in environment_checks.check_checkpoint(
        plan("{}"), f"{directory}/c"
    )


@pytest.mark.parametrize("place", ["s3://bucket/x", "file/x"])
def test_a_checkpoint_that_cannot_be_made_is_named(place: str, directory: Path) -> None:
    (directory / "file").write_text("")
    with pytest.raises(StreamerError, match="reaches S3 by s3a://|is not a direc"):
        environment_checks.check_checkpoint(
            plan("{}"), place if "://" in place else f"{directory}/{place}"
        )


KAFKA = "input: { redpanda: { seed_brokers: [ 'a:1' ], topics: [ t ] } }\n"
