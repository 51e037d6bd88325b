"""`grok`: what expressions capture is what a real Benthos answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.connectors.formats.grok import PatternSet, compile_expression, default_patterns
from streamer.core.errors import ConfigError, StreamerError

from .changes import outcomes
from .conftest import Make, Run

ACCESS = (
    '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 '
    '"http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)"'
)
NONE = "! no pattern matches found"


@pytest.mark.parametrize(
    ("yaml", "given", "expected"),
    [
        (
            "grok: {expressions: ['%{COMMONAPACHELOG}']}",
            [ACCESS, "x"],
            [
                '{"auth":"frank","bytes":"2326","clientip":"127.0.0.1","httpversion":"1.0",'
                '"ident":"-","request":"/apache_pb.gif","response":"200",'
                '"timestamp":"10/Oct/2000:13:55:36 -0700","verb":"GET"}',
                NONE,
            ],
        ),
        (
            "grok: {expressions: ['%{WORD:first},%{INT:second:int}']}",
            ["foo,1", "foo,99999999999999999999", ""],
            ['{"first":"foo","second":1}', NONE, NONE],
        ),
        (
            "grok: {expressions: ['%{WORD:a.b.c},%{NUMBER:a.d:float}', '%{GREEDYDATA:all}']}",
            ["foo,1.50", "foo"],
            ['{"a":{"b":{"c":"foo"},"d":1.5}}', '{"all":"foo"}'],
        ),
        ("grok: {expressions: ['%{WORD:a},%{WORD:a}']}", ["foo,b"], ['{"a":"b"}']),
        ("grok: {expressions: ['(?P<x>[a(?P<y>]+)-(?<z>.)']}", ["aaa-b"], ['{"x":"aaa","z":"b"}']),
        ("grok: {expressions: ['%{WORD:a:nope}']}", ["foo"], [NONE]),
        (
            "grok: {expressions: ['^%{SYSLOGPROG:x}'], remove_empty_values: false}",
            ["su"],
            ['{"pid":"","program":"su","x":"su"}'],
        ),
        (
            "grok: {expressions: ['%{IPORHOST:i} %{INT}'], named_captures_only: false}",
            ["::1 5"],
            ['{"INT":"5","IP":"::1","IPV6":"::1","i":"::1"}'],
        ),
        (
            "grok:\n  expressions: ['%{B:x}']\n  use_default_patterns: false\n"
            "  pattern_definitions: {B: '%{C:c:INT}', C: '%{D}', D: '1'}",
            ["1"],
            ['{"c":1,"x":"1"}'],
        ),
        (
            "grok: {expressions: ['%{WORD:x}'], pattern_definitions: {WORD: 'q+'}}",
            ["foo"],
            ['{"x":"foo"}'],
        ),
        ("grok: {expressions: ['%{DATA:x}y%{GREEDYDATA:z}']}", ["é€yü\nv"], ['{"x":"é€","z":"ü"}']),
    ],
)
def test_the_first_expression_that_captures_makes_the_message(
    yaml: str, given: list[str], expected: list[str], make: Make, a_run: Run
) -> None:
    assert outcomes(make, a_run, yaml, *given) == expected


def test_every_default_pattern_is_an_expression() -> None:
    patterns = PatternSet(named_only=False)
    patterns.add(default_patterns())
    # An empty group is all that a line without anything in it has; what matters is that RE2 takes
    # every one of them, also those that hold one name several times.
    for name in default_patterns():
        compile_expression(patterns.expand(f"%{{{name}}}"), keep_empty=True).capture(b"")
    assert len(default_patterns()) == 76


def test_patterns_are_read_from_files_and_folders(make: Make, a_run: Run, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("# a comment\n\nCAT miau+\n")
    (tmp_path / "two").write_text("CATS (?:%{CAT} ?)+\n")
    for paths in (tmp_path, tmp_path / "*"):
        yaml = f"grok: {{expressions: ['%{{CATS:c}}'], pattern_paths: ['{paths}']}}"
        assert outcomes(make, a_run, yaml, "miau miauu") == ['{"c":"miau miauu"}']
    (tmp_path / "one").write_text("CAT\n")
    with pytest.raises(StreamerError, match="line 1 is 'CAT'; expected a name, a blank"):
        make(f"grok: {{expressions: [x], pattern_paths: ['{tmp_path}/one']}}")
    with pytest.raises(StreamerError, match="there is no such file"):
        make(f"grok: {{expressions: [x], pattern_paths: ['{tmp_path}/none']}}")


@pytest.mark.parametrize(
    ("yaml", "text"),
    [
        ("expressions: ['%{NOPE:a}']", "failed to compile Grok pattern .*no pattern found for"),
        ("expressions: ['(?=x)']", r"failed to compile Grok pattern '\(\?=x\)'"),
        ("expressions: [x], pattern_definitions: {A: '%{B}'}", "no pattern found for %{B}"),
        ("expressions: [x], pattern_definitions: {A: '%{A}'}", "refers to itself"),
    ],
)
def test_what_cannot_be_compiled_is_refused_before_it_runs(
    yaml: str, text: str, make: Make
) -> None:
    with pytest.raises(ConfigError, match=text):
        make(f"grok: {{{yaml}}}")
