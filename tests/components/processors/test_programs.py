"""`command` and `subprocess`: real programs. What they answer is what a real Benthos answered."""

from __future__ import annotations

import os

import pytest

from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.sdk.processing import Processor

from .changes import outcomes
from .conftest import Make, Run, messages

SHELL = "command: {name: sh, args_mapping: 'root = [ \"-c\", this.c ]'}"


@pytest.mark.parametrize(
    ("yaml", "given", "expected"),
    [
        ("command: {name: cat}", ["a\nb", ""], ["a\nb", ""]),
        (
            "command: {name: echo, args_mapping: 'root = this'}",
            ['["a",1,1.5,true,null,{"b":2},[1]]', '{"a":1}', "5"],
            [
                'a 1 1.5 true null {"b":2} [1]\n',
                "! args mapping result error: expected array value, got object",
                "! args mapping result error: expected array value, got number (5)",
            ],
        ),
        (
            SHELL,
            ['{"c":"echo no >&2; exit 3"}', '{"c":"kill -9 $$"}'],
            ["! execution error: exit status 3: no\n", "! execution error: signal: killed: "],
        ),
        (
            "command: {name: '${! this.a.uppercase() }'}",
            ['{"a":1}', '{"a":"no_such_program"}'],
            [
                "! name interpolation error: expected string value, got number from field "
                "`this.a` (1)",
                '! execution error: exec: "NO_SUCH_PROGRAM": executable file not found in $PATH: ',
            ],
        ),
        (
            "command: {name: /no/such}",
            ["x"],
            ["! execution error: fork/exec /no/such: no such file or directory: "],
        ),
        ("subprocess: {name: cat}", ["a\nb", "", "x\n", "\n\n"], ["a\nb", "", "x\n", "\n\n"]),
        (
            "subprocess: {name: sed, args: [--unbuffered, s/a/b/]}",
            ["aa", "xa\nya"],
            ["ba", "xb\nyb"],
        ),
        (
            "subprocess: {name: cat, codec_send: netstring, codec_recv: netstring}",
            ["a\nb", "", "é,"],
            ["a\nb", "", "é,"],
        ),
        (
            "subprocess: {name: cat, codec_send: length_prefixed_uint32_be, "
            "codec_recv: length_prefixed_uint32_be}",
            ["a\nb", "", "x" * 10_000],
            ["a\nb", "", "x" * 10_000],
        ),
        (
            "subprocess: {name: no_such_program}",
            ["x"],
            ['! exec: "no_such_program": executable file not found in $PATH'],
        ),
        (
            "subprocess: {name: cat, max_buffer: 5}",
            ["too long", "fits"],
            ["! type was closed", "fits"],
        ),
    ],
)
def test_a_program_makes_the_messages(
    yaml: str, given: list[str], expected: list[str], make: Make, a_run: Run
) -> None:
    assert outcomes(make, a_run, yaml, *given) == expected


def test_a_commands_exit_code_and_error_output_are_metadata(make: Make, a_run: Run) -> None:
    commands = ["echo out; echo err >&2", "exit 3", "kill -9 $$"]
    batch = [Message(f'{{"c":"{command}"}}'.encode(), {"k": "v"}) for command in commands]
    [[fine, failed, killed]] = make(SHELL).process(batch, a_run.ex)
    assert (fine.raw, fine.meta) == (
        b"out\n",
        {"k": "v", "exit_code": 0, "command_stderr": "err\n"},
    )
    assert (failed.raw, failed.meta) == (batch[1].raw, {"k": "v", "exit_code": 3})
    assert killed.meta["exit_code"] == -1


def test_one_process_answers_all_messages(make: Make, a_run: Run) -> None:
    script = "while read x; do echo $$; done"
    processor = make(f"subprocess: {{name: sh, args: [-c, '{script}']}}")
    assert len(set(_texts(processor, a_run, "1", "2")) | set(_texts(processor, a_run, "3"))) == 1
    assert a_run.logged == [("INFO", "Subprocess started")]


def test_a_process_that_has_ended_is_started_again(make: Make, a_run: Run) -> None:
    script = "while read x; do if [ $x = end ]; then echo last >&2; exit; fi; echo $$; done"
    processor = make(f"subprocess: {{name: sh, args: [-c, '{script}']}}")
    first, ended, second = _texts(processor, a_run, "1", "end", "2")
    assert ended == "! type was closed" and first != second
    os.kill(int(second), 9)
    # Whoever was killed may not be gone yet when the next message comes: then that one fails.
    third = [one for one in _texts(processor, a_run, "3", "4") if not one.startswith("!")][0]
    assert third not in (first, second)
    assert ("WARN", "Subprocess exited") in a_run.logged
    assert ("ERROR", "last") in a_run.logged


def _texts(processor: Processor, a_run: Run, *given: str) -> list[str]:
    [made] = processor.process(messages(*given), a_run.ex)
    return [one.raw.decode() if one.error is None else f"! {one.error}" for one in made]


@pytest.mark.slow  # an error is collected for a second
def test_what_a_process_writes_to_its_error_output_is_an_error(make: Make, a_run: Run) -> None:
    script = "while read x; do echo bad $x >&2; done"
    yaml = f"subprocess: {{name: sh, args: [-c, '{script}']}}"
    assert outcomes(make, a_run, yaml, "a") == ["! bad a"]
    assert a_run.logged[-1] == ("ERROR", "Failed to send message to subprocess: bad a")


def test_an_answer_must_have_room(make: Make) -> None:
    with pytest.raises(ConfigError, match="field max_buffer is 0; expected 1 or more"):
        make("subprocess: {name: cat, max_buffer: 0}")
