"""What one call may make is bounded, whatever the message says."""

import bz2
import gzip
import subprocess
import sys
import zlib

import pytest

from streamer.bloblang import BloblangError
from streamer.bloblang.limits import MOST_BYTES, MOST_ELEMENTS, MOST_GROUPS
from streamer.message import Message
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
        ("root = range(0, this.n)", f"more than the {MOST_ELEMENTS} that are allowed"),
        ("root = range(0, -this.n, -3)", f"more than the {MOST_ELEMENTS} that are allowed"),
        ("root = range(0, 1000000000000)", f"more than the {MOST_ELEMENTS} that are allowed"),
        ("root = bytes(this.n)", f"more than the {MOST_BYTES} that are allowed"),
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
    many = "(a)" * (MOST_GROUPS + 1)
    assert "groups" in refused(f'root = "a".re_match("{many}")')
    assert "groups" in refused("root = this.a.re_match(this.a)", '{"a":"' + many + '"}')
    assert run(f'root = "a".re_match("{"(a)" * MOST_GROUPS}")') == "false"


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
    times = MOST_BYTES // len(zeros) + 1
    if algorithm == "bzip2":
        return bz2.compress(zeros) * times
    if algorithm in ("gzip", "pgzip"):
        return gzip.compress(zeros) * times
    wrapping = {"zlib": 15, "flate": -15}
    if algorithm in wrapping:
        made = zlib.compressobj(9, wbits=wrapping[algorithm])
        return b"".join(made.compress(zeros) for _ in range(times)) + made.flush()
    import cramjam
    import lz4.frame

    if algorithm == "lz4":
        return lz4.frame.compress(zeros) * times
    if algorithm == "zstd":
        return bytes(cramjam.zstd.compress(zeros)) * times
    return b"\xff\xff\xff\xff\x0f" + b"\0"  # snappy says first how much will come


ALGORITHMS = ["bzip2", "gzip", "pgzip", "zlib", "flate", "lz4", "zstd", "snappy"]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_data_that_decompress_without_end_are_refused(algorithm):
    from streamer.bloblang import compile_mapping
    from streamer.errors import MessageError

    mapping = compile_mapping(f'root = content().decompress("{algorithm}").length()')
    with pytest.raises(MessageError, match="more than the"):
        mapping.apply([Message(bomb(algorithm))], 0, execution())


@pytest.mark.parametrize("algorithm", ["gzip", "bzip2", "lz4", "zstd"])
def test_many_small_streams_take_time_in_proportion(algorithm):
    from streamer.bloblang import compile_mapping

    made = (
        bomb(algorithm)[:0]
        + {
            "gzip": gzip.compress(b"x"),
            "bzip2": bz2.compress(b"x"),
            "lz4": __import__("lz4.frame").frame.compress(b"x"),
            "zstd": bytes(__import__("cramjam").zstd.compress(b"x")),
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
