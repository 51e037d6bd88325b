"""`streamer compare`: its exit codes, refusals, recordings, and an installed other version."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from uv import find_uv_bin

from streamer import __version__
from streamer.cli.main import invoke
from streamer.tools.comparison.environments import find_environment
from tests.servers.benthos import benthos

ROOT = Path(__file__).parents[2]
SAMPLE = "".join(json.dumps({"id": n, "name": f"n{n}"}) + "\n" for n in range(20))
PLAIN = "pipeline: {processors: [{mapping: root.name = this.name.uppercase()}]}\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a sample, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text(SAMPLE)
    (tmp_path / "plain.yaml").write_text(PLAIN)
    (tmp_path / "program").write_text("#!/bin/sh\necho Version: v9.0\n")
    (tmp_path / "program").chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("plain.yaml --input in.jsonl", "name the other program"),
        ("plain.yaml --benthos ./program", "name the messages"),
        ("plain.yaml --benthos a --streamer b --input in.jsonl", "name the other program"),
        ("plain.yaml --benthos ./program --input in.jsonl --ordered --key a", "exclude each other"),
        ("plain.yaml --nope", "No such option"),
        ("none.yaml --benthos ./program --input in.jsonl", "there is no such file"),
        ("plain.yaml --benthos nope --input in.jsonl", "there is no such program"),
        ("plain.yaml --streamer nope --input in.jsonl", "expected a version such as"),
        ("plain.yaml --streamer . --input in.jsonl", "bin/streamer is not there"),
        ("plain.yaml --benthos ./program --input none", "no such file"),
        ("plain.yaml --benthos ./program --input in.jsonl --within soon", "--within soon"),
        ("plain.yaml --benthos ./program --record 0s", "--record 0s: expected more"),
        ("calls.yaml --benthos ./program --input in.jsonl", "pipeline.processors.0: http may"),
        ("web.yaml --benthos ./program --record 5", "would take messages from the input http_"),
        ("now.yaml --benthos ./program --input in.jsonl", "no message has an event time"),
    ],
)
def test_what_cannot_be_compared_ends_with_2(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: str, error: str
) -> None:
    (place / "calls.yaml").write_text(
        "pipeline: {processors: [{http: {url: 'http://127.0.0.1:9', verb: POST}}]}\n"
    )
    (place / "web.yaml").write_text("input: {http_server: {}}\n")
    (place / "now.yaml").write_text("buffer: {system_window: {size: 1s}}\n")
    assert invoke(["compare", *arguments.split()]) == 2
    out, err = capsys.readouterr()
    assert (out, error in err) == ("", True), err


def test_the_places_of_what_benthos_lacks_are_named(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "new.yaml").write_text(
        "pipeline:\n  processors:\n    - mapping: |\n"
        '        root.a = this.b.parse_windowed_key("session")\n'
    )
    program = str(benthos())
    code = invoke(["compare", "new.yaml", "--benthos", program, "--input", "in.jsonl"])
    assert code == 2
    err = capsys.readouterr().err
    assert "new.yaml(3,16) pipeline.processors.0.mapping: " in err
    assert "parse_windowed_key" in err


def test_secrets_are_in_no_output(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSWORD", "hidden-pass")
    (place / "secret.yaml").write_text(
        "pipeline: {processors: [{mapping: 'root = \"${PASSWORD}\".nope()'}]}\n"
    )
    code = invoke(["compare", "secret.yaml", "--benthos", "./program", "--input", "in.jsonl"])
    assert code == 2
    assert "hidden-pass" not in "".join(capsys.readouterr())


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_signal_ends_both_programs_and_leaves_no_file(place: Path) -> None:
    (place / "program").write_text(
        '#!/bin/sh\nif [ "$1" = --version ]; then echo 9.0; exit; fi\n'
        'if [ "$1" = lint ]; then exit; fi\necho $$ >>pids\nexec sleep 600\n'
    )
    (place / "tmp").mkdir()
    running = subprocess.Popen(
        [sys.executable, "-m", "streamer", "compare", "plain.yaml"]
        + ["--benthos", "./program", "--input", "in.jsonl"],
        env={**os.environ, "TMPDIR": str(place / "tmp"), "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        limit = time.monotonic() + 120
        while not (place / "pids").exists() or not (place / "pids").read_text():
            assert time.monotonic() < limit
            assert running.poll() is None
            time.sleep(0.1)
        pid = int((place / "pids").read_text())
        running.send_signal(signal.SIGTERM)
        assert running.wait(120) == 2
    finally:
        running.kill()
        running.wait()
    assert not Path(f"/proc/{pid}").exists()
    assert not list((place / "tmp").glob("streamer-compare-*"))


@pytest.fixture(scope="module")
def altered_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this version in which one line is another one."""
    tree = tmp_path_factory.mktemp("altered")
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(ROOT / "streamer", tree / "streamer", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE", "configs", "schemas"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=ignored)
        elif source.exists():
            shutil.copy(source, tree / name)
    file = tree / "streamer" / "bloblang" / "compiler" / "fast_paths.py"
    text = file.read_text()
    assert text.count('"{v}.upper()"') == 1
    file.write_text(text.replace('"{v}.upper()"', "\"{v}.upper().replace('N7', 'N7!')\""))
    wheels = tree / "dist"
    done = subprocess.run(
        [find_uv_bin(), "build", "--quiet", "--wheel", "--out-dir", str(wheels), str(tree)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = wheels.glob("*.whl")
    return wheel


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_another_version_is_installed_and_its_one_line_is_noticed(
    place: Path, altered_wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    env = {
        **os.environ,
        "UV_CACHE_DIR": str(caches / "uv"),
        "UV_FIND_LINKS": str(altered_wheel.parent),
        "XDG_CACHE_HOME": str(place / "cache"),
        "STREAMER_CLASS_ARCHIVE": "off",
        "PYTHONPATH": str(ROOT),
    }
    (place / "made.yaml").write_text(
        "input: {generate: {count: 20, interval: '', mapping: 'root.name = "
        '"n" + counter().string()\'}}\n' + PLAIN
    )
    command = [sys.executable, "-m", "streamer", "compare", "made.yaml", "--streamer", __version__]
    done = subprocess.run(
        [*command, "--record", "20", "--format", "json"],
        env=env,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert document["rows"]["equal"] == 19
    (difference,) = document["differences"]
    assert difference["fields"] == [{"path": "name", "other": '"N7!"', "this": '"N7"'}]
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    installed: list[str] = []
    assert find_environment(__version__, [], installed.append).is_dir()
    assert installed == []
