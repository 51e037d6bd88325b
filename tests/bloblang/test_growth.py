"""A mapping that is twice as long takes twice the work, whatever it consists of."""

import contextlib
import gc
import sys
import time

import pytest

from streamer.bloblang import BloblangError
from streamer.bloblang.environment import MappingEnvironment
from streamer.bloblang.mapping import Mapping


def numbered(line, end=""):
    return lambda n: "\n".join(line.format(i=i, j=i + 1) for i in range(n)) + end


def around(begin, middle="", end="", before="root = ", after=""):
    return lambda n: before + begin * n + middle + end * n + after


SHAPES = {
    "brackets": around("(", "this.a", ")"),
    "brackets that stay open": around("("),
    "brackets that were never opened": around(")"),
    "arrays that stay open": around("["),
    "objects that stay open": around('{"a":'),
    "blocks that stay open": around("if this.a {", before=""),
    "matches that stay open": around("match this {"),
    "calls that stay open": around("this.catch("),
    "lambdas": around("x -> ", "this", before="root = this.map_each("),
    "nots": around("!", "true"),
    "minuses": around("-", "1"),
    "sums of literals": around("1 + ", "1"),
    "sums": around("this.a + ", "1"),
    "comparisons": around("this.a == ", "1"),
    "logic": around("this.a && this.b || ", "true"),
    "coalescing": around("this.a | ", "1"),
    "mixed operators": around("1 - this.a * 2 == 3 && this.b | ", "1"),
    "a path": around(".a", before="root = this"),
    "a quoted path": around('."a b"', before="root = this"),
    "a path that is assigned": around(".a", before="root", after=" = 1"),
    "two long paths": lambda n: f"root{'.a' * n} = 1\nroot.b = root{'.a' * n}",
    "methods": around(".string()", before="root = this"),
    "methods with queries": around(".map_each(x -> x.a)", before="root = this"),
    "methods that are given queries": around(".sort_by(x -> x.a)", before="root = this"),
    "methods that are given queries with variables": around(
        ".any(x -> x.a == $b)", before="let b = 1\nroot = this"
    ),
    "maps into brackets": around(".(this.a)", before="root = this"),
    "arguments": around("this.a, ", "1", before="root = [].append(", after=")"),
    "array elements": around("this.a, ", before="root = [", after="]"),
    "object entries": lambda n: "root = {" + numbered('"a{i}": this.a,')(n) + "}",
    "else if expressions": around(" else if this.b { 2 }", before="root = if this.a { 1 }"),
    "else if statements": around(
        " else if this.b { root.b = 2 }", before="if this.a { root.a = 1 }"
    ),
    "match cases": around('"a" => this.b,\n', "_ => 1", before="root = match this.a {", after="}"),
    "match conditions": around("this.a == 1 => 2,", before="root = match {", after="}"),
    "assignments": numbered("root.a{i} = this.b{i}"),
    "assignments to objects in root": numbered("root.a{i}.b = this.c"),
    "the same assignment": around("root.a = this.b\n", before=""),
    "root read back": numbered("root.a{i}.b = 1\nroot.c = root.a{i}"),
    "deletions": numbered("root.a{i}.b = deleted()"),
    "assignments that may delete": numbered("root.a{i}.b = if this.c {{ deleted() }}"),
    "metadata": numbered("meta a{i} = this.b{i}"),
    "variables": numbered("let a{i} = this.b\nroot.c = $a{i}"),
    "variables in blocks": numbered("if this.b {{ let a{i} = 1\nroot.c = $a{i} }}"),
    "variables by computed names": numbered("let a{i} = 1\nroot.b = var(this.c)"),
    "unknown variables": numbered("root.c = $a{i} | 1"),
    "named maps": numbered("map a{i} {{ root = this }}", "\nroot = 1"),
    "named maps that apply the next": numbered(
        'map a{i} {{ root = this.apply("a{j}") }}', "\nroot = 1"
    ),
    "named maps that apply any": numbered("map a{i} {{ root = this.apply(this.b) }}", "\nroot = 1"),
    "a string of escapes": around(r"\n\u0041\x41\101", before='root = "', after='"'),
    "a string of wrong escapes": around(r"\q", before='root = "', after='"'),
    "a string that stays open": around("a", before='root = "'),
    "strings that stay open": around('"a '),
    "raw strings that stay open": around('a"', before='root = """'),
    "a comment": around("#", before="root = 1 "),
    "comments": around("# a\n", "x", before="root = 1\n"),
    "comments within brackets": around("# a\n", "x", before="root = (\n"),
    "comments and blanks": around(" \t\r\n # a\r\n", "x", before="root = [1 "),
    "blanks": around(" \t", "x", before="root = 1"),
    "line breaks": around("\n ", "x", before="root = 1"),
    "carriage returns": around("\r", before="root = 1"),
    "digits": around("1"),
    "digits of a fraction": around("1", before="root = 1."),
    "a name": around("a"),
    "the name of a function": around("a", after="()"),
    "the name of a method": around("a", before="root = this.", after="()"),
    "the name of an argument": around("a", before="root = count(", after=": 1)"),
    "dots": around(".", before="root = this"),
    "dollars": around("$"),
    "ats": around("@"),
    "words": around("this "),
    "elses": around(" else", before="root = if true { 1 }"),
    "noise": around("\0\ufeff\U0001f600\u2028"),
}


def work_of(text):
    """Count the calls and returns, of Python and of C, that reading and compiling a text takes."""
    events = 0

    def count(frame, event, argument):
        nonlocal events
        events += 1

    # What other tests have left to be collected would be counted, too.
    gc.disable()
    sys.setprofile(count)
    try:
        Mapping(text, MappingEnvironment(False, ""))
    except BloblangError:
        pass
    finally:
        sys.setprofile(None)
        gc.enable()
    return events


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_length_is_twice_the_work(shape):
    work_of(SHAPES[shape](2))
    small, large = (work_of(SHAPES[shape](n)) for n in (64, 128))
    assert large <= 2.2 * small + 500, (small, large)


def seconds_of(text):
    begin = time.process_time()
    with contextlib.suppress(BloblangError):
        Mapping(text, MappingEnvironment(False, ""))
    return time.process_time() - begin


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_four_times_the_length_takes_four_times_as_long(shape):
    """Work within C, such as copies of what was seen so far, shows in time only."""
    for _ in range(3):
        # A busy machine may slow one of the two; what grows as the square is late each time.
        small, large = (min(seconds_of(SHAPES[shape](n)) for _ in range(2)) for n in (700, 2800))
        if large <= 8 * small + 0.05:
            return
    raise AssertionError(f"{large} s for four times what takes {small} s")
