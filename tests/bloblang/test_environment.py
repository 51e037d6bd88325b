"""What mappings take from outside: switched off for shared services, carried along to workers."""

import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import streamer
import streamer.bloblang.mapping as mapping_module
from streamer.bloblang import (
    BloblangError,
    CapturedInputs,
    compile_interpolation,
    compile_mapping,
    forbid_impure,
    nest_inputs,
    restore_inputs,
)
from streamer.core.message import Message
from streamer.core.permissions import NONE, limit_permissions
from tests.bloblang.running import execution, run

IMPURE = [
    ('root = env("HOME")', "function 'env' is switched off here"),
    ("root = env(this.a, true)", "function 'env' is switched off here"),
    ('root = file("/etc/hosts")', "function 'file' is switched off here"),
    ('root = [1].map_each(x -> file_rel("x"))', "function 'file_rel' is switched off here"),
    ("root = hostname()", "function 'hostname' is switched off here"),
    ('root = count("x")', "function 'count' is switched off here"),
    ('map f {\n  root = env("HOME")\n}\nroot = 1', "function 'env' is switched off here"),
    ('import "x.blobl"', "failed to read import: imports are switched off here"),
    ('from "x.blobl"', "failed to read import: imports are switched off here"),
]


@pytest.mark.parametrize(("mapping", "message"), IMPURE)
def test_impure_functions_and_imports_can_be_refused(mapping, message):
    with pytest.raises(BloblangError) as caught:
        compile_mapping(mapping, impure=False)
    assert caught.value.message == message
    assert "--no-impure" in caught.value.suggestion
    with forbid_impure(), pytest.raises(BloblangError, match="switched off here"):
        compile_mapping(mapping)


def test_a_whole_process_can_refuse_them_and_nothing_inside_allows_them_again():
    with forbid_impure(), forbid_impure(False):
        with pytest.raises(BloblangError):
            compile_mapping('root = env("HOME")', impure=True)
        with pytest.raises(BloblangError):
            compile_interpolation('${! env("HOME") }')
    compile_mapping('root = env("HOME")')


NEVER_IN_TEXT = [
    'root = env("STREAMER_TEST")',
    'root = env("STREAMER_TEST", true)',
    "root = env(name: this.n)",
    'root = file("/etc/hostname").string()',
    "root = file(this.p, true).string()",
    'root = file_rel("/etc/hostname").string()',
    "root = hostname()",
    'root = count("streamer")',
    'let a = env("STREAMER_TEST")\nroot = $a',
    'map f {\n  root = env("STREAMER_TEST")\n}\nroot = this.apply("f")',
    'root = "x".bloblang("root = env(\\"STREAMER_TEST\\")")',
    "root = this.bloblang(this.n)",
    'import "/etc/hostname"\nroot = 1',
    'from "/etc/hostname"',
]


@pytest.mark.parametrize("text", NEVER_IN_TEXT)
def test_a_mapping_that_comes_as_text_sees_nothing_outside_whatever_the_process_allows(
    text, monkeypatch
):
    monkeypatch.setenv("STREAMER_TEST", "secret")
    given = json.dumps({"m": text, "n": 'root = env("STREAMER_TEST")', "p": "/etc/hostname"})
    found = run("root = {}.merge(this).bloblang(this.m)", given)
    assert "switched off here" in found and "given to bloblang() sees neither files" in found
    assert "secret" not in found
    # What is written in the config is no other text: it is found when the mapping is read.
    if "this." not in text.removesuffix('this.apply("f")'):
        with pytest.raises(BloblangError, match="switched off here"):
            compile_mapping(f"root = this.bloblang({json.dumps(text)})")


def test_a_mapping_that_comes_as_text_sees_only_the_value_that_it_is_applied_to():
    texts = {
        "content().string()": '{"a":1}',
        "json()": '{"a":1}',
        "batch_size()": "1",
        "@": "{}",
        "metadata()": "{}",
        'metadata("k")': "null",
        'meta("k")': "null",
        'root_meta("k")': "null",
        "error()": "null",
        "errored()": "false",
    }
    for text, expected in texts.items():
        given = json.dumps({"secret": "s", "m": f"root = {text}"})
        mapping = 'meta k = "secret"\nroot = {"a": 1}.bloblang(this.m)'
        assert run(mapping, given, given, meta={"k": "secret"}) == expected, text
    found = run("let x = 1\nroot = 1.bloblang(this.m)", '{"m":"root = $x"}')
    assert "variable 'x' undefined" in found


def test_pure_mappings_are_not_concerned():
    with forbid_impure():
        assert run("root = this.a", '{"a":1}') == "1"


def test_files_and_variables_keep_the_value_they_had_when_the_mapping_was_compiled(
    tmp_path, monkeypatch
):
    path = tmp_path / "a.txt"
    path.write_text("one")
    monkeypatch.setenv("STREAMER_TEST", "first")
    compiled = compile_mapping(f'root = file("{path}").string() + env("STREAMER_TEST")')
    live = compile_mapping(f'root = file("{path}", true).string() + env("STREAMER_TEST", true)')
    path.write_text("two")
    monkeypatch.setenv("STREAMER_TEST", "second")
    assert result(compiled) == "onefirst"
    assert result(live) == "twosecond"
    assert result(compile_mapping(compiled.text)) == "twosecond"


def result(mapping):
    return mapping.apply([Message(b"{}")], 0, execution()).raw.decode()


def test_the_path_of_a_file_may_come_from_the_message(tmp_path):
    (tmp_path / "a.txt").write_text("yes")
    compiled = compile_mapping("root = file(this.p).string()")
    assert not compiled.environment.read
    given = '{"p":"%s"}'
    assert run(compiled.text, given % (tmp_path / "a.txt")) == "yes"
    assert run(compiled.text, given % "no/where") == (
        'Error("failed assignment (line 1): open no/where: no such file or directory")'
    )
    assert not compiled.environment.read


ELSEWHERE = """
import pickle, sys
from streamer.core.execution import Execution
from streamer.core.message import Message
made = pickle.loads(sys.stdin.buffer.read())
if isinstance(made, tuple):
    from streamer.bloblang import compile_mapping, restore_inputs
    restore_inputs(made[0])
    made = compile_mapping(made[1])
message = made.apply([Message(b"{}")], 0, Execution(lambda: 0))
sys.stdout.write(message.raw.decode())
"""


@pytest.mark.parametrize("with_inputs", [False, True])
def test_what_was_read_travels_to_a_process_that_cannot_read_it(with_inputs, tmp_path, monkeypatch):
    (tmp_path / "m.blobl").write_text(
        'map m {\n  root = file_rel("d.txt").string() + env("STREAMER_T")\n}\n'
    )
    (tmp_path / "d.txt").write_text("data ")
    monkeypatch.setenv("STREAMER_T", "variable")
    monkeypatch.chdir(tmp_path)
    mapping = f'import "{tmp_path}/m.blobl"\nroot = this.apply("m")'
    with nest_inputs().active() as inputs:
        compiled = compile_mapping(mapping)
    packed = pickle.dumps((inputs.capture(), compiled.text) if with_inputs else compiled)
    monkeypatch.delenv("STREAMER_T")
    (tmp_path / "m.blobl").unlink()
    (tmp_path / "d.txt").unlink()
    root = str(Path(streamer.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], input=packed, capture_output=True, cwd=root
    )
    assert (done.stdout, done.stderr) == (b"data variable", b"")


def test_a_mapping_that_arrives_again_is_not_compiled_again(tmp_path):
    mapping = 'root = env("HOME", true) + "once"'
    packed = pickle.dumps(compile_mapping(mapping))
    assert pickle.loads(packed) is pickle.loads(packed) is compile_mapping(mapping)


@pytest.mark.parametrize(("mapping", "message"), IMPURE)
def test_texts_of_strangers_see_nothing_while_other_threads_compile_what_they_want(
    mapping: str, message: str
) -> None:
    with ThreadPoolExecutor(1) as others:
        # Compiled before, and so in the cache.
        compile_interpolation('${! env("HOME") }')
        with limit_permissions(NONE):
            with pytest.raises(BloblangError) as caught:
                compile_mapping(mapping)
            with pytest.raises(BloblangError):
                compile_interpolation('${! env("HOME") }')
            assert others.submit(compile_mapping, 'root = env("HOME")').result()
    assert caught.value.message == message
    assert compile_interpolation('${! env("HOME") }')


def test_a_file_that_changes_again_and_again_takes_one_place_in_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "changing.txt"
    text = f'root = file("{path}").string()'
    path.write_text("first")
    before = compile_mapping(text)
    places = mapping_module._compile_cached.cache_info().currsize
    for i in range(20):
        path.write_text(f"text {i}")
        compiled = compile_mapping(text)
        assert result(compiled) == f"text {i}"
        assert compile_mapping(text) is compiled
    assert mapping_module._compile_cached.cache_info().currsize == places
    assert result(before) == "first"


def test_inputs_of_a_part_are_not_those_of_another(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.txt", "b.txt")]
    with nest_inputs().active() as whole:
        parts = [nest_inputs() for _ in paths]
        for path, part in zip(paths, parts, strict=True):
            path.write_text(path.name)
            with part.active():
                compile_mapping(f'root = file("{path}").string()')
    assert [part.files for part in parts] == [{str(path)} for path in paths]
    assert whole.files == set(map(str, paths))


def test_what_a_process_restores_takes_the_place_of_what_it_had(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("here")
    key, text = ("file", str(path)), f'root = file("{path}").string()'
    try:
        for value in (b"one", b"two", b"one"):
            restore_inputs(CapturedInputs(True, {key: value}))
            assert result(compile_mapping(text)) == value.decode()
        restore_inputs(CapturedInputs(False, {}))
        with pytest.raises(BloblangError, match="switched off here"):
            compile_mapping(text)
    finally:
        restore_inputs(CapturedInputs(True, {}))
    assert result(compile_mapping(text)) == "here"
