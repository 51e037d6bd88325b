"""XML as a value and a value as XML, by the conventions of Go's mxj.

Attributes are keys with a hyphen before them, the text of an element that has more than text is
`#text`, repeated elements are arrays, an empty element is an empty text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.convert import parse_float
from streamer.bloblang.golib.xmlreader import StartTag, XmlName, XmlReader

_TEXT: Final = "#text"
_BLANK: Final = "\t\r\b\n "
_NO_NUMBERS: Final = frozenset(("nan", "inf", "-inf"))
_BOOLEANS: Final = {word: word[0] in "tT" for word in ("t", "T", "TRUE", "true", "True")} | {
    word: False for word in ("f", "F", "FALSE", "false", "False")
}


def _cast_text(text: str) -> Any:
    """Return a text as the number or boolean that it spells."""
    if text.lower() in _NO_NUMBERS:
        return text
    try:
        return parse_float(text)
    except QueryError:
        return _BOOLEANS.get(text, text)


def _keep_text(text: str) -> Any:
    return text


class _Element:
    """An element that is being read.

    Attributes:
        name: its name.
        content: its attributes and elements by key, and its text once it has others.
        text: its text as long as it had nothing else, or None.
    """

    __slots__ = ("name", "content", "text")

    def __init__(self, name: XmlName, content: dict[str, Any]) -> None:
        self.name = name
        self.content = content
        self.text: Any = None

    def finish(self) -> Any:
        """Return what the element stands for, now that it has ended."""
        if not self.content:
            return "" if self.text is None else self.text
        if self.text is not None:
            self.content[_TEXT] = self.text
        return self.content

    def add(self, key: str, value: Any) -> None:
        """Add an element; the second one of a name makes an array."""
        content = self.content
        if key not in content:
            content[key] = value
        elif type(content[key]) is list:
            content[key].append(value)
        else:
            content[key] = [content[key], value]


def parse_document(raw: bytes, cast: bool) -> dict[str, Any]:
    """Return the value of the first element of a document.

    Args:
        raw: the document; what stands before and after its first element is left out.
        cast: whether texts that spell numbers and booleans become such.

    Raises:
        QueryError: the document cannot be read, in the words of Go's decoder.
    """
    reader = XmlReader(raw)
    convert = _cast_text if cast else _keep_text
    try:
        document = _read_first_element(reader, convert)
    except QueryError as e:
        raise QueryError(f"xml.Decoder.Token() - {e}") from None
    if document is None:
        raise QueryError("EOF")
    return document


def _read_first_element(reader: XmlReader, convert: Callable[[str], Any]) -> dict[str, Any] | None:
    open_elements: list[_Element] = []
    for token in reader.read_tokens():
        if isinstance(token, str):
            text = token.strip(_BLANK)
            if text and open_elements:
                element = open_elements[-1]
                if element.content:
                    element.content[_TEXT] = convert(text)
                else:
                    element.text = convert(text)
            continue
        if isinstance(token, StartTag):
            content = {f"-{key}": convert(value) for key, value in token.attributes}
            open_elements.append(_Element(token.name, content))
            if not token.empty:
                continue
        done = _close_elements(reader, open_elements, token.name)
        if done is not None:
            return done
    if open_elements:
        reader.fail("unexpected EOF")
    return None


def _close_elements(
    reader: XmlReader, open_elements: list[_Element], name: XmlName
) -> dict[str, Any] | None:
    """End elements up to one of this name; return the document when none is left."""
    while open_elements:
        element = open_elements.pop()
        local, space = element.name.local, element.name.prefix
        matches = local == name.local
        if matches and space != name.prefix:
            prefix = name.prefix or '""'
            reader.fail(
                f"element <{local}> in space {space} closed by </{local}> in space {prefix}"
            )
        if not open_elements:
            return {local: element.finish()}
        open_elements[-1].add(local, element.finish())
        if matches:
            return None
    reader.fail(f"unexpected end element </{name.local}>")
