"""JSONPath in the dialect of Connect: PaesslerAG's, with the expressions of gval around and in it.

A path that can lead to one place only gives what is there, or fails; one with `*`, `..`, ranges,
lists or filters gives an array of all that it finds. No library for Python has these rules, nor
gval's. Numbers of documents count as numbers here; Connect compares their texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from streamer.bloblang.errors import ArgumentError
from streamer.bloblang.golib import gval
from streamer.bloblang.golib.gval import Evaluate
from streamer.bloblang.runtime import jsonpath_steps
from streamer.bloblang.runtime.jsonpath_steps import JsonPath
from streamer.core.value import parse_bounded_int

_TOKEN: Final = re.compile(
    r"""[ \t\r\n]*(?:(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"""
    r"""|(?P<ident>[^\W\d]\w*)"""
    r"""|(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)"""
    r"""|(?P<sign>\*\*|==|!=|>=|<=|=~|!~|&&|\|\||\?\?|<<|>>|.)|(?P<end>\Z))""",
    re.DOTALL,
)
_MAX_INDEX: Final = (1 << 31) - 1


class JsonPathParser:
    """Reads an expression; every method reads on from where the one before stopped.

    Attributes:
        text: the expression.
        at: where the current token ends.
        kind: the current token's kind: `number`, `ident`, `string`, `sign`, `end`.
        token: its text.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.kind = self.token = ""
        self.start = 0
        self.advance()

    def advance(self) -> None:
        """Go to the next token."""
        match = _TOKEN.match(self.text, self.at)
        assert match is not None
        self.kind = match.lastgroup or "end"
        self.token = match[self.kind]
        self.start, self.at = match.start(self.kind), match.end()

    def make_error(self, unit: str, expected: str = "") -> ArgumentError:
        """Return the error that the current token does not fit."""
        token = {"end": "EOF", "ident": "Ident", "string": "String"}.get(self.kind)
        if self.kind == "number":
            token = "Int" if self.token.isdigit() else "Float"
        token = token or f'"{self.token}"'
        place = f"1:{self.start + 1} - 1:{self.at + 1}"
        if not self.text:
            place = "- 1:1"
        where = f"{self.text}\t:{place}" if self.text else f"\t {place}"
        reason = f"unexpected {token} while scanning {unit}{expected}"
        return ArgumentError(f"evaluating json path expression: parsing error: {where} {reason}")

    def accept(self, sign: str) -> bool:
        """Go past a sign if it is the current token."""
        if self.kind == "sign" and self.token == sign:
            self.advance()
            return True
        return False

    def parse(self) -> Evaluate:
        """Read the expression up to its end."""
        evaluate = self.parse_expression()
        if self.kind != "end":
            raise self.make_error("operator")
        return evaluate

    def parse_expression(self, binding: int = -1) -> Evaluate:
        """Read an expression whose operators all bind tighter than a given strength."""
        left = self._parse_operand()
        while True:
            sign = self.token if self.kind in ("sign", "ident") else ""
            strength = gval.PRECEDENCE.get(sign, -1)
            if sign == "?" and binding < 0:
                left = self._parse_choice(left)
            elif strength > binding:
                self.advance()
                left = gval.combine(sign, left, self.parse_expression(strength))
            else:
                return left

    def _parse_choice(self, condition: Evaluate) -> Evaluate:
        self.advance()
        value = self.parse_expression()
        other: Evaluate = gval.make_constant(None)
        if self.accept(":"):
            other = self.parse_expression()
        elif self.kind != "end":
            raise self.make_error("<> ? <> : <>", ' expected ":" or EOF')
        return gval.make_choice(condition, value, other)

    def _parse_operand(self) -> Evaluate:
        kind, token = self.kind, self.token
        if kind == "number":
            self.advance()
            return gval.make_constant(_parse_number(token))
        if kind == "string":
            self.advance()
            return gval.make_constant(_unquote(token))
        if kind == "ident":
            return self._parse_identifier()
        if kind == "sign" and token in _OPERAND_PARSERS:
            self.advance()
            return _OPERAND_PARSERS[token](self)
        raise self.make_error("extensions")

    def _parse_identifier(self) -> Evaluate:
        name = self.token
        self.advance()
        if name in ("true", "false"):
            return gval.make_constant(name == "true")
        keys = [gval.make_constant(name)]
        while True:
            if self.accept("."):
                if self.kind != "ident":
                    raise self.make_error("field", " expected Ident")
                keys.append(gval.make_constant(self.token))
                self.advance()
            elif self.accept("["):
                keys.append(self.parse_expression())
                if not self.accept("]"):
                    raise self.make_error("array key", ' expected "]"')
            else:
                return gval.make_variable(keys)

    def _parse_parentheses(self) -> Evaluate:
        inner = self.parse_expression()
        if not self.accept(")"):
            raise self.make_error("parentheses", ' expected ")"')
        return inner

    def _parse_array(self) -> Evaluate:
        items: list[Evaluate] = []
        while not self.accept("]"):
            if not self.accept(","):
                items.append(self.parse_expression())
        return lambda root, current: [item(root, current) for item in items]

    def _parse_object(self) -> Evaluate:
        pairs: list[tuple[Evaluate, Evaluate]] = []
        while not self.accept("}"):
            if self.accept(","):
                continue
            key = self.parse_expression()
            if not self.accept(":"):
                raise self.make_error("object", ' expected ":"')
            pairs.append((key, self.parse_expression()))
        return lambda root, current: {
            gval.to_string(key(root, current)): value(root, current) for key, value in pairs
        }

    def _parse_from_root(self) -> Evaluate:
        path = self._parse_path()
        return lambda root, current: path.evaluate(root, root)

    def _parse_from_current(self) -> Evaluate:
        path = self._parse_path()
        return path.evaluate

    def _parse_path(self) -> JsonPath:
        path = JsonPath()
        while True:
            if self.accept("."):
                self._parse_after_dot(path)
            elif self.accept("["):
                self._parse_bracket(path)
            elif self.accept("("):
                self._parse_script(path)
            else:
                return path

    def _parse_after_dot(self, path: JsonPath) -> None:
        if self.kind == "ident":
            self._parse_name(path)
        elif self.accept("."):
            path.add_multiple(jsonpath_steps.iterate_descendants)
            self._parse_descendants(path)
        elif self.accept("*"):
            path.add_multiple(jsonpath_steps.iterate_children)
        else:
            raise self.make_error("JSON select", ' expected Ident, "." or "*"')

    def _parse_descendants(self, path: JsonPath) -> None:
        if self.kind == "ident":
            self._parse_name(path)
        elif self.accept("["):
            self._parse_bracket(path, below=True)
        elif self.accept("*"):
            path.add_multiple(jsonpath_steps.iterate_children)
        elif self.accept("("):
            self._parse_script(path)
        else:
            raise self.make_error("JSON mapper", ' expected "[", Ident or "*"')

    def _parse_name(self, path: JsonPath) -> None:
        key = gval.make_constant(self.token)
        self.advance()
        path.add_single(lambda root, value: jsonpath_steps.select_child(key, root, value))

    def _parse_script(self, path: JsonPath) -> None:
        script = self.parse_expression()
        if not self.accept(")"):
            raise self.make_error("jsnopath script", ' expected ")"')
        path.add_single(script)

    def _parse_bracket(self, path: JsonPath, below: bool = False) -> None:
        if self.accept("*"):
            if not self.accept("]"):
                raise self.make_error("JSON bracket star", ' expected "]"')
            path.add_multiple(jsonpath_steps.iterate_children)
            return
        if self.accept("?"):
            condition = self.parse_expression()
            path.add_multiple(jsonpath_steps.make_filter(condition))
        else:
            keys, ranged = self._parse_keys()
            if ranged:
                path.add_multiple(jsonpath_steps.make_range(keys))
            elif len(keys) == 1 and not below:
                path.add_single(
                    lambda root, value: jsonpath_steps.select_child(keys[0], root, value)
                )
            else:
                path.add_multiple(jsonpath_steps.make_list(keys))
        if not self.accept("]"):
            raise self.make_error("JSON bracket separator", ' expected ":" or ","')

    def _parse_keys(self) -> tuple[list[Evaluate], bool]:
        """Read the keys or bounds in brackets; return whether they are bounds."""
        absent = [gval.make_constant(float(n)) for n in (0, _MAX_INDEX, 1)]
        keys: list[Evaluate | None] = [None if self.token in ":]" else self.parse_expression()]
        sign = self.token if self.kind == "sign" and self.token in (":", ",") else ""
        while sign and self.accept(sign):
            keys.append(None if self.token in (":", "]") else self.parse_expression())
        if sign != ":" or len(keys) > 3:
            if None in keys or sign == ":":
                raise self.make_error("extensions")
            return [key for key in keys if key is not None], False
        keys += [None] * (3 - len(keys))
        return [key or default for key, default in zip(keys, absent, strict=True)], True


_OPERAND_PARSERS: Final[dict[str, Callable[[JsonPathParser], Evaluate]]] = {
    "(": JsonPathParser._parse_parentheses,
    "[": JsonPathParser._parse_array,
    "{": JsonPathParser._parse_object,
    "$": JsonPathParser._parse_from_root,
    "@": JsonPathParser._parse_from_current,
    "-": lambda parser: gval.make_negative(parser._parse_operand()),
    "!": lambda parser: gval.make_inverse(parser._parse_operand()),
    "~": lambda parser: gval.make_complement(parser._parse_operand()),
}


def _parse_number(token: str) -> int | float:
    if token.isdigit():
        return parse_bounded_int(token)
    return int(token, 16) if token[:2] in ("0x", "0X") else float(token)


def _unquote(token: str) -> str:
    from streamer.bloblang.literals import unquote

    if token[0] == "`":
        return token[1:-1]
    if token[0] == "'":
        token = '"' + token[1:-1].replace("\\'", "'").replace('"', '\\"') + '"'
    try:
        return unquote(token)
    except ValueError:
        reason = "could not parse string: invalid syntax"
        raise ArgumentError(f"evaluating json path expression: {reason}") from None
