"""What libFuzzer runs: bytes become a mapping, a string and a payload; answers are checked.

Run as `python -m tests.fuzz.target CORPUS [libFuzzer's options]`; input that breaks a promise is
printed and ends the process.
"""

import sys

import atheris

with atheris.instrument_imports(include=["streamer.bloblang"]):
    from streamer.bloblang import BloblangError, compile_interpolation, compile_mapping

from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Message

PAYLOADS = (b'{"a":[1,2.5,"x",null,{"b":true}],"b":"2020-01-01T00:00:00Z"}', b"[]", b'"', b"")
# Inputs are read as one or the other; longer ones only take longer.
MOST = 2000


def is_inside(error, text):
    lines = text.split("\n")
    return 1 <= error.line <= len(lines) and 1 <= error.column <= len(lines[error.line - 1]) + 1


def check(text):
    """Read a text in both ways and run what came of it on all payloads."""
    execution = Execution(now=lambda: 0)
    for compile_it in (compile_mapping, compile_interpolation):
        try:
            compiled = compile_it(text, impure=False)
        except BloblangError as e:
            assert is_inside(e, text), f"line {e.line}, column {e.column} is not in the text"
            continue
        for payload in PAYLOADS:
            batch = [Message(payload, {"a": "b"})]
            try:
                if compile_it is compile_mapping:
                    result = compiled.apply(batch, 0, execution)
                    assert result is None or type(result.raw) is bytes
                else:
                    assert type(compiled.bytes_of(batch, 0, execution)) is bytes
            except MessageError as e:
                assert str(e)


def run(data):
    text = data[:MOST].decode("utf-8", "surrogateescape" if data[:1] == b"\xff" else "replace")
    # A document nested in itself some times over may be gone through for hours, as in Benthos.
    if text.count("map_each") + text.count("fold") > 2 or "repeat(" in text or "range(" in text:
        return
    try:
        check(text)
    except BaseException:
        print(f"INPUT {text!r}", file=sys.stderr, flush=True)
        raise


if __name__ == "__main__":
    atheris.Setup(sys.argv, run)
    atheris.Fuzz()
