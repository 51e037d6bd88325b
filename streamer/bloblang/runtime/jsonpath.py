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
from streamer.bloblang.runtime import gval, pathsteps
from streamer.bloblang.runtime.gval import Evaluate
from streamer.bloblang.runtime.pathsteps import Path
from streamer.value import bounded_int

_TOKEN: Final = re.compile(
    r"""[ \t\r\n]*(?:(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"""
    r"""|(?P<ident>[^\W\d]\w*)"""
    r"""|(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)"""
    r"""|(?P<sign>\*\*|==|!=|>=|<=|=~|!~|&&|\|\||\?\?|<<|>>|.)|(?P<end>\Z))""",
    re.DOTALL,
)
_FARTHEST: Final = (1 << 31) - 1


class Parser:
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
        self.next()

    def next(self) -> None:
        """Go to the next token."""
        match = _TOKEN.match(self.text, self.at)
        assert match is not None
        self.kind = match.lastgroup or "end"
        self.token = match[self.kind]
        self.start, self.at = match.start(self.kind), match.end()

    def fail(self, unit: str, expected: str = "") -> ArgumentError:
        """Return the error that the current token does not fit."""
        found = {"end": "EOF", "ident": "Ident", "string": "String"}.get(self.kind)
        if self.kind == "number":
            found = "Int" if self.token.isdigit() else "Float"
        found = found or f'"{self.token}"'
        place = f"1:{self.start + 1} - 1:{self.at + 1}"
        if not self.text:
            place = "- 1:1"
        where = f"{self.text}\t:{place}" if self.text else f"\t {place}"
        reason = f"unexpected {found} while scanning {unit}{expected}"
        return ArgumentError(f"evaluating json path expression: parsing error: {where} {reason}")

    def takes(self, sign: str) -> bool:
        """Go past a sign if it is the current token."""
        if self.kind == "sign" and self.token == sign:
            self.next()
            return True
        return False

    def whole(self) -> Evaluate:
        """Read the expression up to its end."""
        found = self.expression()
        if self.kind != "end":
            raise self.fail("operator")
        return found

    def expression(self, binding: int = -1) -> Evaluate:
        """Read an expression whose operators all bind tighter than a given strength."""
        left = self._operand()
        while True:
            sign = self.token if self.kind in ("sign", "ident") else ""
            strength = gval.STRENGTHS.get(sign, -1)
            if sign == "?" and binding < 0:
                left = self._choice(left)
            elif strength > binding:
                self.next()
                left = gval.combine(sign, left, self.expression(strength))
            else:
                return left

    def _choice(self, condition: Evaluate) -> Evaluate:
        self.next()
        chosen = self.expression()
        other: Evaluate = gval.constant(None)
        if self.takes(":"):
            other = self.expression()
        elif self.kind != "end":
            raise self.fail("<> ? <> : <>", ' expected ":" or EOF')
        return gval.choice(condition, chosen, other)

    def _operand(self) -> Evaluate:
        kind, token = self.kind, self.token
        if kind == "number":
            self.next()
            return gval.constant(_number(token))
        if kind == "string":
            self.next()
            return gval.constant(_unquoted(token))
        if kind == "ident":
            return self._identifier()
        if kind == "sign" and token in _OPERANDS:
            self.next()
            return _OPERANDS[token](self)
        raise self.fail("extensions")

    def _identifier(self) -> Evaluate:
        name = self.token
        self.next()
        if name in ("true", "false"):
            return gval.constant(name == "true")
        keys = [gval.constant(name)]
        while True:
            if self.takes("."):
                if self.kind != "ident":
                    raise self.fail("field", " expected Ident")
                keys.append(gval.constant(self.token))
                self.next()
            elif self.takes("["):
                keys.append(self.expression())
                if not self.takes("]"):
                    raise self.fail("array key", ' expected "]"')
            else:
                return gval.variable(keys)

    def _parenthesised(self) -> Evaluate:
        found = self.expression()
        if not self.takes(")"):
            raise self.fail("parentheses", ' expected ")"')
        return found

    def _array(self) -> Evaluate:
        items: list[Evaluate] = []
        while not self.takes("]"):
            if not self.takes(","):
                items.append(self.expression())
        return lambda root, current: [item(root, current) for item in items]

    def _object(self) -> Evaluate:
        pairs: list[tuple[Evaluate, Evaluate]] = []
        while not self.takes("}"):
            if self.takes(","):
                continue
            key = self.expression()
            if not self.takes(":"):
                raise self.fail("object", ' expected ":"')
            pairs.append((key, self.expression()))
        return lambda root, current: {
            gval.to_string(key(root, current)): value(root, current) for key, value in pairs
        }

    def _from_root(self) -> Evaluate:
        path = self._path()
        return lambda root, current: path.value(root, root)

    def _from_current(self) -> Evaluate:
        path = self._path()
        return path.value

    def _path(self) -> Path:
        path = Path()
        while True:
            if self.takes("."):
                self._dotted(path)
            elif self.takes("["):
                self._bracket(path)
            elif self.takes("("):
                self._script(path)
            else:
                return path

    def _dotted(self, path: Path) -> None:
        if self.kind == "ident":
            self._named(path)
        elif self.takes("."):
            path.many(pathsteps.everything)
            self._below(path)
        elif self.takes("*"):
            path.many(pathsteps.each)
        else:
            raise self.fail("JSON select", ' expected Ident, "." or "*"')

    def _below(self, path: Path) -> None:
        if self.kind == "ident":
            self._named(path)
        elif self.takes("["):
            self._bracket(path, below=True)
        elif self.takes("*"):
            path.many(pathsteps.each)
        elif self.takes("("):
            self._script(path)
        else:
            raise self.fail("JSON mapper", ' expected "[", Ident or "*"')

    def _named(self, path: Path) -> None:
        key = gval.constant(self.token)
        self.next()
        path.one(lambda root, value: pathsteps.select(key, root, value))

    def _script(self, path: Path) -> None:
        script = self.expression()
        if not self.takes(")"):
            raise self.fail("jsnopath script", ' expected ")"')
        path.one(script)

    def _bracket(self, path: Path, below: bool = False) -> None:
        if self.takes("*"):
            if not self.takes("]"):
                raise self.fail("JSON bracket star", ' expected "]"')
            path.many(pathsteps.each)
            return
        if self.takes("?"):
            condition = self.expression()
            path.many(pathsteps.filtered(condition))
        else:
            keys, ranged = self._keys()
            if ranged:
                path.many(pathsteps.ranged(keys))
            elif len(keys) == 1 and not below:
                path.one(lambda root, value: pathsteps.select(keys[0], root, value))
            else:
                path.many(pathsteps.listed(keys))
        if not self.takes("]"):
            raise self.fail("JSON bracket separator", ' expected ":" or ","')

    def _keys(self) -> tuple[list[Evaluate], bool]:
        """Read the keys or bounds in brackets; return whether they are bounds."""
        absent = [gval.constant(float(n)) for n in (0, _FARTHEST, 1)]
        keys: list[Evaluate | None] = [None if self.token in ":]" else self.expression()]
        sign = self.token if self.kind == "sign" and self.token in (":", ",") else ""
        while sign and self.takes(sign):
            keys.append(None if self.token in (":", "]") else self.expression())
        if sign != ":" or len(keys) > 3:
            if None in keys or sign == ":":
                raise self.fail("extensions")
            return [key for key in keys if key is not None], False
        keys += [None] * (3 - len(keys))
        return [key or default for key, default in zip(keys, absent, strict=True)], True


_OPERANDS: Final[dict[str, Callable[[Parser], Evaluate]]] = {
    "(": Parser._parenthesised,
    "[": Parser._array,
    "{": Parser._object,
    "$": Parser._from_root,
    "@": Parser._from_current,
    "-": lambda parser: gval.negative(parser._operand()),
    "!": lambda parser: gval.inverse(parser._operand()),
    "~": lambda parser: gval.complement(parser._operand()),
}


def _number(token: str) -> int | float:
    if token.isdigit():
        return bounded_int(token)
    return int(token, 16) if token[:2] in ("0x", "0X") else float(token)


def _unquoted(token: str) -> str:
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
