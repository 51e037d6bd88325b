"""What one call may make is bounded, whatever the message says."""

import bz2
import gzip
import subprocess
import sys
import tracemalloc
import zlib

import pytest

from streamer.bloblang import BloblangError, compile_mapping
from streamer.bloblang.limits import MAX_REGEX_GROUPS
from streamer.core import zstd
from streamer.core.limits import MAX_BYTES, MAX_ELEMENTS, Limits
from streamer.core.message import Message
from tests.bloblang.running import execution, run

HUGE = '{"n":1000000000000}'


def refused(text, given="{}"):
    try:
        found = run(text, given)
    except BloblangError as e:
        return e.message
    assert found.startswith('Error("'), found[:100]
    return found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("root = range(0, this.n)", f"more than the {MAX_ELEMENTS} that limits.elements allows"),
        (
            "root = range(0, -this.n, -3)",
            f"more than the {MAX_ELEMENTS} that limits.elements allows",
        ),
        (
            "root = range(0, 1000000000000)",
            f"more than the {MAX_ELEMENTS} that limits.elements allows",
        ),
        ("root = bytes(this.n)", f"more than the {MAX_BYTES} that limits.bytes allows"),
        ('root = "ab".repeat(this.n)', "would overflow"),
        ("root = content().repeat(this.n)", "would overflow"),
        ("root = nanoid(this.n)", "more than the 1000000 allowed"),
    ],
)
def test_counts_from_a_message_are_bounded(text, reason):
    assert reason in refused(text, HUGE)


def test_a_format_fills_no_more_than_what_is_allowed():
    assert len(run('root = "%1000000d".format(1)')) == 1_000_000
    assert "more than" in refused('root = "%1000000[1]d".repeat(1000).format(1)')
    assert len(run('root = "%1000000000d".format(1)')) < 100


def test_indented_json_is_bounded():
    deep = "[" * 200 + "1" + "]" * 200
    assert "more than" in refused('root = this.format_json(indent: " ".repeat(1000000))', deep)


def test_groups_of_a_regular_expression_are_bounded():
    many = "(a)" * (MAX_REGEX_GROUPS + 1)
    assert "groups" in refused(f'root = "a".re_match("{many}")')
    assert "groups" in refused("root = this.a.re_match(this.a)", '{"a":"' + many + '"}')
    assert run(f'root = "a".re_match("{"(a)" * MAX_REGEX_GROUPS}")') == "false"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+$", "a" * 50_000 + "b"),
        ("(a|aa)+$", "a" * 50_000 + "b"),
        ("(.*)(.*)(.*)[0-9]", "a" * 20_000),
        ("a?" * 30 + "a" * 30, "a" * 30),
        ("^([a-z]+)*[0-9]$", "a" * 900),
    ],
)
@pytest.mark.timeout(20)
def test_no_regular_expression_takes_exponential_time(pattern, text):
    assert run(f'root = this.a.re_match("{pattern}")', '{"a":"' + text + '"}') in ("true", "false")


def bomb(algorithm):
    zeros = b"\0" * (1 << 20)
    times = MAX_BYTES // len(zeros) + 1
    if algorithm == "bzip2":
        return bz2.compress(zeros) * times
    if algorithm in ("gzip", "pgzip"):
        return gzip.compress(zeros) * times
    wrapping = {"zlib": 15, "flate": -15}
    if algorithm in wrapping:
        made = zlib.compressobj(9, wbits=wrapping[algorithm])
        return b"".join(made.compress(zeros) for _ in range(times)) + made.flush()
    import lz4.frame

    if algorithm == "lz4":
        return lz4.frame.compress(zeros) * times
    if algorithm == "zstd":
        return zstd.compress(zeros) * times
    return b"\xff\xff\xff\xff\x0f" + b"\0"  # snappy says first how much will come


ALGORITHMS = ["bzip2", "gzip", "pgzip", "zlib", "flate", "lz4", "zstd", "snappy"]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_data_that_decompress_without_end_are_refused(algorithm):
    from streamer.bloblang import compile_mapping
    from streamer.core.errors import MessageError

    mapping = compile_mapping(f'root = content().decompress("{algorithm}").length()')
    with pytest.raises(MessageError, match="more than the"):
        mapping.apply([Message(bomb(algorithm))], 0, execution())


def test_no_more_of_one_zstd_frame_is_unpacked_than_is_allowed(monkeypatch):
    monkeypatch.setattr("streamer.core.limits._current", Limits(bytes=1 << 20))
    packed = zstd.compress(bytes(64 << 20))
    assert len(packed) < 16 << 10
    tracemalloc.start()
    try:
        assert "more than the 1048576 bytes" in refused(
            'root = this.decode("hex").decompress("zstd")', f'"{packed.hex()}"'
        )
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("algorithm", ["gzip", "bzip2", "lz4", "zstd"])
def test_many_small_streams_take_time_in_proportion(algorithm):
    from streamer.bloblang import compile_mapping

    made = (
        bomb(algorithm)[:0]
        + {
            "gzip": gzip.compress(b"x"),
            "bzip2": bz2.compress(b"x"),
            "lz4": __import__("lz4.frame").frame.compress(b"x"),
            "zstd": zstd.compress(b"x"),
        }[algorithm]
    )
    mapping = compile_mapping(f'root = content().decompress("{algorithm}").length()')
    found = mapping.apply([Message(made * 5_000)], 0, execution())
    assert found.raw == b"5000"


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{c}: &{c} [{','.join('*' + chr(ord(c) - 1) for _ in range(9))}]\n" for c in "bcdefghi"
)


def test_yaml_that_multiplies_itself_is_refused():
    assert "alias" in refused("root = content().string().parse_yaml()", LAUGHS)
    assert "Error" in refused("root = content().string().parse_yaml()", "a: &a [*a]")


def test_entities_of_xml_are_not_resolved(tmp_path):
    (tmp_path / "secret").write_text("secret")
    outside = f'<!DOCTYPE a [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]><a>&x;</a>'
    found = run("root = content().string().parse_xml()", outside)
    assert "secret" not in found.replace(f"{tmp_path}/secret", "")


@pytest.mark.parametrize(
    "text",
    [
        "root = this.a + 1",
        "root = this.a.string().length()",
        "root = this.a % 7",
        "root = this.a.int64()",
        "root = this.a.string().int64()",
        "root = this.a.string().number()",
        "root = this.a.string().parse_json()",
        "root = this.a.floor()",
        "root.b = this.a",
        'root = ("0x" + this.a.string()).int64()',
        'root = ("0b" + this.a.string().replace_all("9", "1")).uint64()',
    ],
)
@pytest.mark.timeout(20)
def test_numbers_of_very_many_digits_are_answered(text):
    assert run(text, '{"a":' + "9" * 200_000 + "}")


@pytest.mark.parametrize("number", ["9223372036854775807", "1e300", "-9e18", "253402300800"])
def test_times_beyond_the_calendar_are_answered(number):
    for call in ("ts_format()", 'ts_strftime("%Y")', "ts_unix_nano()", 'ts_tz("Europe/Berlin")'):
        assert run(f"root = this.a.{call}", '{"a":' + number + "}")
    assert run('root = this.a.ts_add_iso8601("P99999999Y")', '{"a":' + number + "}")


@pytest.mark.slow
def test_a_mapping_that_doubles_its_value_ends_with_an_error_when_memory_is_bounded():
    program = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from tests.bloblang.running import run
found = run("root = range(0, 60).fold(content().string(), x -> x.tally + x.tally).length()", "x")
assert found == 'Error("failed assignment (line 1): memory exhausted")', found
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


DOUBLED = {
    "variables": "let a = [1]\n" + "let a = [$a, $a]\n" * 60 + "root = $a",
    "variables by name": "let a = [1]\n" + 'let a = [var("a"), var("a")]\n' * 60 + "root = $a",
    "a variable that becomes a text": "let a = [1]\n"
    + "let a = [$a, $a]\n" * 60
    + "root = $a.string()",
    "root": "root.a = [1]\n" + "root.a = [root.a, root.a]\n" * 60,
    "metadata": "meta a = [1]\n" + "meta a = [@a, @a]\n" * 60 + "root = @a.string()",
    "brackets": "root = [1]" + ".([this, this])" * 60,
    "brackets that become a text": "root = [1]" + ".([this, this])" * 60 + ".string()",
    "lambdas": "root = [1]" + ".map_each(x -> [x, x])" * 60,
    "matches": "root = match [1] { " + "_ => match [this, this] { " * 40 + "_ => this " + "}" * 41,
    "a fold": "root = range(0, 60).fold([1], x -> [x.tally, x.tally])",
    "a fold that becomes a text": "root = range(0, 60).fold([1], x -> [x.tally, x.tally]).string()",
    "a map": "map m { root = [this, this] }\nroot = [1]" + '.apply("m")' * 60,
    "maps": "map m { root = [1] }\n"
    + "".join(
        f'map m{i} {{ let x = this.apply("m{i - 1 if i else ""}")\nroot = [$x, $x] }}\n'
        for i in range(60)
    )
    + 'root = this.apply("m59")',
    "a map that applies itself": "map m { root = if this.n == 0 { [1] } else {\n"
    '{"n": this.n - 1}.apply("m").([this, this]) } }\nroot = {"n": 60}.apply("m")',
}


@pytest.mark.parametrize("what", DOUBLED)
def test_what_doubles_step_by_step_is_refused_before_it_is_written(what):
    assert "the value takes more than the 268435456 bytes as JSON that limits.bytes allows" in run(
        DOUBLED[what]
    )


def test_what_doubles_a_few_times_is_written():
    mapping = "let a = [1]\n" + "let a = [$a, $a]\n" * 18 + "root = $a.string().length()"
    assert run(mapping) == str(2**18 * 3 + 3 * (2**18 - 1))


def test_ordinary_mappings_are_not_weighed():
    lines = "".join(
        f'root.a{i} = {{"x": this.b, "y": $v, "z": root.a}}\nroot.b = root.a{i}\n'
        for i in range(500)
    )
    lines += "root.c = root.c.uppercase() + root.d\n" * 500
    assert "check_json_size" not in compile_mapping(f"let v = this.c\n{lines}").source
