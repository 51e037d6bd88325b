"""XML cut into tokens as forgivingly as Go's decoder does when it is not strict.

Unknown entities and bare ampersands stay as they are, attributes need no quotes and no value, end
tags that don't match close what is open. No entity that a document declares is ever expanded, so
a document stays as small as it is. Libraries for Python are either strict (expat) or lose where
comments and CDATA part a text (lxml), which the rules for `#text` look at.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Final, NamedTuple, NoReturn

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.goquote import quote

_NAME: Final = re.compile(r"[A-Za-z0-9_:.\-\x80-\U0010ffff]*")
_VALID_NAME: Final = re.compile(r"[^\W\d][\w:.\-·]*|:[\w:.\-·]*")
_SPACE: Final = re.compile(r"[ \r\n\t]*")
_BARE_VALUE: Final = re.compile(r"[A-Za-z0-9_:\-]*")
_ENTITY: Final = re.compile(r"&(?:#(x?)([0-9a-fA-F]+)|([A-Za-z_:][\w:.\-]*));")
_ENTITIES: Final = {"lt": "<", "gt": ">", "amp": "&", "apos": "'", "quot": '"'}
_ILLEGAL: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_QUOTED: Final = re.compile(r"""[^"'<>]+|"[^"]*"|'[^']*'""")


class XmlName(NamedTuple):
    """An element's or attribute's name."""

    prefix: str
    local: str


class StartTag(NamedTuple):
    """A start tag.

    Attributes:
        name: the element's name.
        attributes: local names and values in order.
        empty: whether it is an end tag as well.
    """

    name: XmlName
    attributes: list[tuple[str, str]]
    empty: bool


class EndTag(NamedTuple):
    """An end tag."""

    name: XmlName


Token = str | StartTag | EndTag


class XmlReader:
    """Reads one document, token by token; texts between comments are tokens of their own.

    Attributes:
        text: the document.
        at: the place that is read next.
    """

    def __init__(self, raw: bytes) -> None:
        self.text = raw.decode(errors="surrogateescape")
        self.at = 0

    def fail(self, reason: str, at: int | None = None) -> NoReturn:
        """Raise an error with the line of a place, by default of the one that is read next."""
        line = self.text.count("\n", 0, self.at if at is None else at) + 1
        raise QueryError(f"XML syntax error on line {line}: {reason}")

    def read_tokens(self) -> Iterator[Token]:
        """Go through texts and tags; comments, declarations and instructions are left out.

        Raises:
            QueryError: the document cannot be read on, in the words of Go's decoder.
        """
        while self.at < len(self.text):
            if self.text[self.at] != "<":
                start, end = self.at, self.text.find("<", self.at)
                self.at = len(self.text) if end < 0 else end
                yield self._clean_text(self.text[start : self.at])
                continue
            self.at += 1
            following = self.text[self.at : self.at + 1]
            if following == "/":
                self.at += 1
                yield EndTag(self._read_end_name())
            elif following == "?":
                self.at += 1
                self._read_instruction()
            elif following == "!":
                section = self._read_declaration()
                if section is not None:
                    yield section
            else:
                yield self._read_start_tag()

    def _peek(self) -> str:
        if self.at >= len(self.text):
            self.fail("unexpected EOF")
        return self.text[self.at]

    def _skip_space(self) -> None:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]

    def _read_name(self, missing: str) -> str:
        self._peek()
        start = self.at
        self.at = _NAME.match(self.text, start).end()  # type: ignore[union-attr]
        if self.at == start:
            self.fail(missing)
        self._peek()
        name = self.text[start : self.at]
        if not _VALID_NAME.fullmatch(name):
            self.fail(f"invalid XML name: {name}")
        return name

    def _read_qualified_name(self, missing: str) -> XmlName:
        name = self._read_name(missing)
        prefix, colon, local = name.partition(":")
        if ":" in local:
            self.fail(missing)
        return XmlName(prefix, local) if colon and prefix and local else XmlName("", name)

    def _read_end_name(self) -> XmlName:
        name = self._read_qualified_name("expected element name after </")
        self._skip_space()
        if self._peek() != ">":
            self.fail(f"invalid characters between </{name.local} and >")
        self.at += 1
        return name

    def _read_start_tag(self) -> StartTag:
        name = self._read_qualified_name("expected element name after <")
        attributes: list[tuple[str, str]] = []
        while True:
            self._skip_space()
            mark = self._peek()
            self.at += 1
            if mark == ">":
                return StartTag(name, attributes, False)
            if mark == "/":
                if self._peek() != ">":
                    self.fail("expected /> in element")
                self.at += 1
                return StartTag(name, attributes, True)
            self.at -= 1
            key = self._read_qualified_name("expected attribute name in element").local
            self._skip_space()
            if self._peek() == "=":
                self.at += 1
                self._skip_space()
                attributes.append((key, self._read_value()))
            else:
                attributes.append((key, key))

    def _read_value(self) -> str:
        mark, start = self._peek(), self.at
        if mark not in "\"'":
            self.at = _BARE_VALUE.match(self.text, start).end()  # type: ignore[union-attr]
            self._peek()
            return self.text[start : self.at]
        end = self.text.find(mark, start + 1)
        smaller = self.text.find("<", start + 1, end if end >= 0 else len(self.text))
        if smaller >= 0:
            self.fail("unescaped < inside quoted string", smaller)
        if end < 0:
            self.fail("unexpected EOF", len(self.text))
        self.at = end + 1
        return self._clean_text(self.text[start + 1 : end], quoted=True)

    def _clean_text(self, chunk: str, quoted: bool = False, section: bool = False) -> str:
        if not quoted and not section and "]]>" in chunk:
            at = self.at - len(chunk) + chunk.index("]]>")
            self.fail("unescaped ]]> not in CDATA section", at)
        if "\r" in chunk:
            chunk = chunk.replace("\r\n", "\n").replace("\r", "\n")
        if not section and "&" in chunk:
            chunk = _ENTITY.sub(_resolve_entity, chunk)
        illegal = _ILLEGAL.search(chunk)
        if illegal is not None:
            code = ord(illegal[0])
            surrogate = 0xD800 <= code < 0xE000
            self.fail("invalid UTF-8" if surrogate else f"illegal character code U+{code:04X}")
        return chunk

    def _read_until(self, mark: str, reason: str = "unexpected EOF") -> str:
        start, end = self.at, self.text.find(mark, self.at)
        if end < 0:
            self.fail(reason, len(self.text))
        self.at = end + len(mark)
        return self.text[start:end]

    def _read_instruction(self) -> None:
        name = self._read_name("expected target name after <?")
        self._skip_space()
        content = self._read_until("?>")
        if name != "xml":
            return
        version = _find_pseudo_attribute("version", content)
        if version and version != "1.0":
            supported = "only version 1.0 is supported"
            raise QueryError(f"xml: unsupported version {quote(version)}; {supported}")
        encoding = _find_pseudo_attribute("encoding", content)
        if encoding and encoding.lower() != "utf-8":
            self._recode(encoding)

    def _recode(self, encoding: str) -> None:
        rest = self.text[self.at :].encode(errors="surrogateescape")
        try:
            self.text = self.text[: self.at] + rest.decode(_find_codec(encoding), "replace")
        except LookupError:
            reason = f"unsupported charset: {quote(encoding)}"
            raise QueryError(f"xml: opening charset {quote(encoding)}: {reason}") from None

    def _read_declaration(self) -> str | None:
        self.at += 1
        mark = self._peek()
        if mark == "-":
            self.at += 1
            if self._peek() != "-":
                self.fail("invalid sequence <!- not part of <!--")
            self.at += 1
            self._read_until("--")
            if self._peek() != ">":
                self.fail('invalid sequence "--" not allowed in comments')
            self.at += 1
            return None
        if mark == "[":
            if not self.text.startswith("[CDATA[", self.at):
                self.fail("invalid <![ sequence")
            self.at += len("[CDATA[")
            return self._clean_text(
                self._read_until("]]>", "unexpected EOF in CDATA section"), section=True
            )
        self._skip_directive()
        return None

    def _skip_directive(self) -> None:
        self._peek()
        self.at += 1  # whatever stands behind <! opens nothing
        depth = 0
        while True:
            match = _QUOTED.match(self.text, self.at)
            if match is not None:
                self.at = match.end()
                continue
            mark = self._peek()
            if mark in "\"'":
                self.fail("unexpected EOF", len(self.text))
            self.at += 1
            if mark == "<" and self.text.startswith("!--", self.at):
                self.at += 3
                self._read_until("-->")
            elif mark == "<":
                depth += 1
            elif depth == 0:
                return
            else:
                depth -= 1


def _resolve_entity(match: re.Match[str]) -> str:
    base, digits, name = match.groups()
    if name is not None:
        return _ENTITIES.get(name, match[0])
    try:
        code = int(digits, 16 if base else 10)
    except ValueError:
        return match[0]
    if code > 0x10FFFF:
        return match[0]
    return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)


def _find_pseudo_attribute(name: str, content: str) -> str:
    match = re.search(rf"""(?:^|\s){name}\s*=\s*(?:"([^"]*)"|'([^']*)')""", content)
    return "" if match is None else match[1] or match[2] or ""


# The names under which the web knows Windows' superset of Latin 1.
_WINDOWS_1252_NAMES: Final = frozenset(
    ("iso-8859-1", "iso8859-1", "iso88591", "latin1", "l1", "us-ascii")
)


def _find_codec(encoding: str) -> str:
    label = encoding.strip().lower()
    if label in _WINDOWS_1252_NAMES or label == "ascii":
        return "cp1252"
    codec = codecs.lookup(label)
    if not getattr(codec, "_is_text_encoding", True):
        raise LookupError(encoding)
    return codec.name
