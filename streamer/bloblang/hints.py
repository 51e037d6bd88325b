"""Hints beside errors in mappings: the nearest name, and how a habit of other languages is written.

Messages are in Benthos's words; a hint is added behind them, for whoever comes from Python,
JavaScript, Go, jq or SQL.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

_LET_BEFORE: Final = re.compile(r"[{\n][ \t\r\n]*let[ \t]+\Z")
_LET_TARGET: Final = re.compile(r"\w+[ \t]*=(?!=)")
_TARGET_BEFORE: Final = re.compile(r"[{\n][ \t\r\n]*root\b[^{}\n]*\Z")
_ASSIGNMENT_SIGN: Final = re.compile(r"=(?!=)")
_MAX_CONTEXT_CHARS: Final = 200
"""So much of a text before and behind an error is read, at most."""

_UNKNOWN_NAME: Final = re.compile(r"unrecognised (function|method) '([^']+)'")
_MIN_SIMILARITY: Final = 0.6
_METHODS_ELSEWHERE: Final = {
    "length": ("len", "size", "count", "strlen"),
    "uppercase": ("upper", "toUpperCase", "to_upper", "ToUpper", "upcase", "ascii_upcase"),
    "lowercase": ("lower", "toLowerCase", "to_lower", "ToLower", "downcase", "ascii_downcase"),
    "string": ("str", "toString", "to_string", "tostring", "String"),
    "number": ("float", "parseFloat", "parseInt", "to_number", "tonumber", "Number"),
    "int64": ("int", "to_int", "toInt", "integer"),
    "has_prefix": ("startsWith", "startswith", "starts_with", "HasPrefix"),
    "has_suffix": ("endsWith", "endswith", "ends_with", "HasSuffix"),
    "contains": ("includes", "has", "in_array"),
    "trim": ("strip", "trimSpace", "TrimSpace"),
    "slice": ("substring", "substr", "sub", "subarray"),
    "append": ("push", "add"),
    "map_each": ("forEach", "for_each", "each", "select"),
    "parse_json": ("json_parse", "fromjson", "json_decode", "loads", "parseJSON"),
    "format_json": ("tojson", "json_encode", "dumps", "stringify", "toJSON"),
    "ts_format": ("strftime",),
    "ts_parse": ("strptime", "to_timestamp"),
    "replace_all": ("replaceAll", "gsub"),
    "sort": ("sorted",),
    "abs": ("Abs",),
    "floor": ("Floor",),
}
"""Methods by what other languages call them, as a method or as a function."""
_METHOD_ELSEWHERE: Final = {
    other: ours for ours, others in _METHODS_ELSEWHERE.items() for other in others
}

_FUNCTIONS_ELSEWHERE: Final = {
    **dict.fromkeys(("uuid", "uuid4", "gen_random_uuid"), "did you mean 'uuid_v4'?"),
    **dict.fromkeys(("random", "rand", "randint"), "did you mean 'random_int'?"),
    **dict.fromkeys(("time", "getdate", "current_timestamp"), "did you mean 'now'?"),
    **dict.fromkeys(
        ("print", "println", "printf", "console"), "the processor log writes to the log"
    ),
    **dict.fromkeys(("coalesce", "ifnull", "nvl", "default"), "write this.a | this.b"),
    "concat": "texts are joined by +, and lists by .concat(…)",
}
"""Hints for functions by what other languages call them."""

_CAPITAL_CALL: Final = re.compile(r"\.(\w*[A-Z]\w*)\Z")
_CHOICES: Final = re.compile(r"\?[ \t]*(?P<then>[^:?\n]+?)[ \t]*:[ \t]*(?P<other>[^?\n]+)\Z")
_BRACKETS: Final = {")": "(", "]": "[", "}": "{"}
_COMPARED: Final = frozenset("=!<>")

Rule = tuple[re.Pattern[str], re.Pattern[str], str]


def _rule(before: str, behind: str, hint: str) -> Rule:
    return re.compile(rf"(?:{before})\Z"), re.compile(behind), hint


_EQUALITY: Final = "equality is written =="
_LAMBDA: Final = "a lambda is written x -> x + 1"
_LOOP: Final = "a loop is a method: .map_each(x -> …), .filter(x -> …), .fold(0, x -> …)"
_ASSIGN: Final = "a mapping assigns what it gives: root = …"
_QUOTES: Final = "text stands in double quotes, and over several lines in three of them"
_RULES: Final[tuple[Rule, ...]] = (
    _rule("", "['`]", _QUOTES),
    _rule("", r"\?\?", "a value instead of null or an error stands behind |: this.a | \"none\""),
    _rule("", r"\?\.", "a field that is missing gives null: write . without ?"),
    _rule("", r"and\b", "and is written &&"),
    _rule("", r"or\b", "or is written ||, and a value instead of null or an error stands behind |"),
    _rule(r"\bnot[ \t]+", "", "not is written !"),
    _rule(r"[^=!]==", "=", _EQUALITY),
    _rule("!=", "=", "inequality is written !="),
    _rule("", r"<>", "inequality is written !="),
    _rule("<", ">", "inequality is written !="),
    _rule("", "=>", _LAMBDA),
    _rule("=", ">", _LAMBDA),
    _rule(r"\blambda[ \t]+", "", _LAMBDA),
    _rule("", ";", "a statement ends with its line, without ;"),
    _rule(r"\+", r"\+", "there is no ++: write + 1"),
    _rule(r"[-+*/]", "=(?!=)", "there is no such assignment: write root.a = this.a + 1"),
    _rule("", r"\[[ \t]*-?\d", "an element is a method: .index(0)"),
    _rule("", r"\[[ \t]*\"", 'a field stands behind a dot: this.a, or this."a b"'),
    _rule("", r"\[", "an element is a method: .index(0), and a field .get(\"a\")"),
    _rule("/", r"[/*]", "a comment begins with #"),
    _rule("", r"//|/\*|--", "a comment begins with #"),
    _rule("", ":=", "an assignment is written ="),
    _rule("", r"el(?:s)?e?if\b", "write else if"),
    _rule("", r"then\b", "branches stand in braces: if this.a == 1 { root.b = 2 }"),
    _rule(r"\b(?:return|yield)[ \t]+", "", _ASSIGN),
    _rule(r"\b(?:var|const|local)[ \t]+", "", "a variable is set by let: let x = 1"),
    _rule(r"\b(?:for|foreach|while)[ \t]+", "", _LOOP),
    _rule(r"\b(?:def|function|func|fn)[ \t]+", "", "a function is written map name { root = … }"),
    _rule(r'[{,][ \t\n]*"(?:[^"\\]|\\.)*"[ \t]*', "=(?!=)", "in an object a value follows a colon"),
    _rule(r'"[ \t]*', r"\.[ \t]*[\"\w]", "texts are joined by +"),
    _rule("", r"is\b", "write == null"),
    _rule("", r"in\b", "write .contains(…) behind the list"),
    _rule(r"\$", r"\{", "a mapping takes the query itself, without ${! }"),
)  # fmt: skip
"""By the text before an error and the one behind it; the first that fits."""


def suggest_syntax(text: str, at: int, message: str) -> str:
    """Return a hint for a place where a mapping cannot be read; empty where there is none.

    Args:
        text: the mapping.
        at: the place, from 0.
        message: the error, in Benthos's words.
    """
    named = _UNKNOWN_NAME.match(message)
    if named:
        return suggest_call(named[1], named[2])
    before = text[max(at - _MAX_CONTEXT_CHARS, 0) : at]
    if _LET_BEFORE.search(before) and _LET_TARGET.match(text, at):
        return "a let stands at the top of the mapping, before what reads it, or in an if statement"
    if _TARGET_BEFORE.search(before) and _ASSIGNMENT_SIGN.match(text, at):
        return (
            "an if expression gives a value; an if statement, with nothing before the if, can "
            "hold assignments"
        )
    if not text[at:].strip() and (opening := _find_unclosed(text)):
        return opening
    line = before[before.rfind("\n") + 1 :]
    behind = text[at : at + _MAX_CONTEXT_CHARS].partition("\n")[0]
    if behind.startswith("(") and (called := _CAPITAL_CALL.search(line)):
        # Names of methods have no capitals: this one was read as a field.
        return suggest_call("method", called[1])
    if behind.startswith("?") and ":" in behind:
        return _write_conditional(line, behind)
    return next(
        (hint for left, right, hint in _RULES if left.search(line) and right.match(behind)), ""
    )


def suggest_call(kind: str, name: str) -> str:
    """Return a hint for a function or method that does not exist; empty where there is none.

    Args:
        kind: `function` or `method`.
        name: what it was called.
    """
    # Imported here: the catalogue imports what is declared by this package.
    from streamer.bloblang.catalog import FUNCTIONS, METHODS

    method = _METHOD_ELSEWHERE.get(name, name)
    if kind == "method":
        return f"did you mean '{method}'?" if method != name else suggest_name(name, METHODS)
    if name in _FUNCTIONS_ELSEWHERE:
        return _FUNCTIONS_ELSEWHERE[name]
    if method in METHODS:
        return f"{method} is a method: write .{method}() behind the value"
    return suggest_name(name, FUNCTIONS)


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return the nearest of the names that there are, as a hint."""
    close = difflib.get_close_matches(name, list(known), 1, _MIN_SIMILARITY)
    return f"did you mean '{close[0]}'?" if close else ""


def _write_conditional(line: str, behind: str) -> str:
    """Return how a conditional is written.

    Args:
        line: the text before the question mark.
        behind: the text from there on.
    """
    test = line[_find_expression_start(line) :].strip()
    choices = _CHOICES.match(behind[: _find_expression_end(behind)])
    if not test or choices is None:
        return "a conditional is written if this.a { 1 } else { 2 }"
    other = choices["other"].strip().rstrip(";,")
    return f"write if {test} {{ {choices['then']} }} else {{ {other} }}"


def _find_expression_start(line: str) -> int:
    """Return where the expression begins that a line ends with."""
    depth = 0
    for at in range(len(line) - 1, -1, -1):
        one = line[at]
        if one in _BRACKETS:
            depth += 1
        elif one in _BRACKETS.values():
            if not depth:
                return at + 2 if line[at - 1 : at + 2] == "${!" else at + 1
            depth -= 1
        elif (
            not depth
            and (one in ",:" or line[at - 1 : at + 1] == "->")
            or not depth
            and one == "="
            and _COMPARED.isdisjoint(line[at - 1] + line[at + 1 : at + 2])
        ):
            return at + 1
    return 0


def _find_expression_end(text: str) -> int:
    """Return where a closing bracket ends an expression that was opened before it."""
    depth = 0
    for at, one in enumerate(text):
        if one in _BRACKETS.values():
            depth += 1
        elif one in _BRACKETS:
            if not depth:
                return at
            depth -= 1
    return len(text)


_TOKENS: Final = re.compile(
    r'"""(?:.*?""")|"(?:[^"\\\n]|\\.)*"|#[^\n]*|(?P<open>[({\[])|(?P<close>[)}\]])|(?P<quote>"+)',
    re.S,
)


def _find_unclosed(text: str) -> str:
    """Return which bracket or text is not closed, as a hint."""
    opened: list[int] = []
    for token in _TOKENS.finditer(text):
        if token["open"]:
            opened.append(token.start())
        elif token["close"] and opened:
            opened.pop()
        elif token["quote"]:
            return f"the text that begins {_describe_place(text, token.start())} is not closed"
    if not opened:
        return ""
    return f"the {text[opened[-1]]} {_describe_place(text, opened[-1])} is not closed"


def _describe_place(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"at line {line} char {at - (text.rfind(chr(10), 0, at) + 1) + 1}"
