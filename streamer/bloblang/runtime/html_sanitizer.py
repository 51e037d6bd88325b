"""HTML reduced to its text and to the elements that are let through, without attributes.

The text is cut into tokens as the HTML standard says and put together again as Go's bluemonday
does, which keeps what libraries for Python (nh3 and its like) repair: unbalanced tags stay as they
are. Nothing but escaped text and tags of the given names ever goes out.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final

# Elements whose content is not markup, up to their end tag.
_RAW: Final = frozenset(
    ("iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style")
) | {"textarea", "title", "xmp"}
_RAW_WITH_ENTITIES: Final = frozenset(("textarea", "title"))
# Elements that never go through, nor does what they hold.
_UNSAFE: Final = frozenset(("script", "style"))
# Elements that take what they hold with them, unless they are let through.
_WITH_CONTENT: Final = frozenset(
    ("frame", "frameset", "iframe", "noembed", "noframes", "noscript", "nostyle", "object", "title")
)
# Elements that mean something without attributes; others are dropped with their tags.
_LAYOUT: Final = """
abbr acronym address article aside audio b bdi blockquote body br button canvas caption center cite
code col colgroup datalist dd del details dfn div dl dt em fieldset figcaption figure footer h1 h2
h3 h4 h5 h6 head header hgroup hr html i ins kbd li mark marquee nav ol optgroup option p picture
pre q rp rt ruby s samp section select small span strike strong sub summary sup svg table tbody td
textarea tfoot th thead title time tr tt u ul var video wbr
"""
_WITHOUT_ATTRIBUTES: Final = frozenset(_LAYOUT.split())

_OPENING: Final = re.compile(r"</?(?=([a-zA-Z]))|<[!?]|</(?=.)", re.DOTALL)
_NAME: Final = re.compile(r"[^\s/>]*")
_COMMENT: Final = re.compile(r"<!--(?:-?>|.*?--!?>)", re.DOTALL)
_MARK: Final = re.compile("[>/=]")
_SPACE: Final = re.compile(r"\s*")
_VALUE: Final = re.compile(r"[^\s>]*")


def _find_tag_end(text: str, at: int) -> tuple[int, bool]:
    """Return where a tag ends, or -1, and whether it closes itself; quoted values are skipped."""
    slash = -1
    while (mark := _MARK.search(text, at)) is not None:
        at = mark.end()
        if mark[0] == ">":
            return at, slash == at - 2
        if mark[0] == "/":
            slash = at - 1
            continue
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if text[at : at + 1] in ('"', "'"):
            at = text.find(text[at], at + 1) + 1
            if not at:
                break
        else:
            at = _VALUE.match(text, at).end()  # type: ignore[union-attr]
    return -1, False


_Token = tuple[str, str]
"""What it is (`text`, `raw`, `start`, `end`, `empty`), and its text or lower-case name."""


def _find_raw_text_end(text: str, at: int, name: str) -> int:
    if name == "plaintext":
        return len(text)
    end = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(text, at)
    return len(text) if end is None else end.start()


def _tokenize(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        opening = _OPENING.search(text, at)
        start = len(text) if opening is None else opening.start()
        if start > at:
            yield "text", html.unescape(text[at:start])
        if opening is None:
            return
        if opening[1] is None:
            at = _find_declaration_end(text, start)
            continue
        closing = opening[0] == "</"
        name_end = _NAME.match(text, opening.end()).end()  # type: ignore[union-attr]
        name = text[opening.end() : name_end].lower()
        at, empty = _find_tag_end(text, name_end)
        if at < 0:
            return
        yield ("end" if closing else "empty" if empty else "start"), name
        if not closing and name in _RAW:
            end = _find_raw_text_end(text, at, name)
            raw = text[at:end]
            if raw and (empty or name not in _UNSAFE):
                yield "text", html.unescape(raw) if name in _RAW_WITH_ENTITIES else raw
            at = end


def _find_declaration_end(text: str, start: int) -> int:
    if text.startswith("<!--", start):
        comment = _COMMENT.match(text, start)
        return len(text) if comment is None else comment.end()
    end = text.find(">", start)
    return len(text) if end < 0 else end + 1


def _escape_text(text: str) -> str:
    escaped = html.escape(text).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")
    return escaped.replace("\r", "&#13;")


def sanitize(text: str, allowed: frozenset[str]) -> str:
    """Return the text of an HTML document, with the tags of the kept elements.

    Args:
        text: the document or a part of one, however broken.
        allowed: lower-case names of elements.
    """
    if not text.strip():
        return text
    out: list[str] = []
    inside = 0  # how many open elements take their content with them
    hidden = False
    dropped: list[str] = []  # kept elements whose start tags were dropped, so that ends are too
    for kind, name in _tokenize(text.replace("\r\n", "\n").replace("\r", "\n")):
        if kind == "text":
            if not hidden:
                out.append(_escape_text(name))
        elif name in _UNSAFE:
            continue
        elif kind == "end":
            if dropped and dropped[-1] == name:
                dropped.pop()
            elif name in allowed:
                if not hidden:
                    out.append(f"</{name}>")
            elif name in _WITH_CONTENT:
                inside -= 1
                hidden = hidden and inside != 0
        elif name not in allowed:
            if kind == "start" and name in _WITH_CONTENT:
                inside, hidden = inside + 1, True
        elif name not in _WITHOUT_ATTRIBUTES:
            if kind == "start":
                dropped.append(name)
        elif not hidden:
            out.append(f"<{name}/>" if kind == "empty" else f"<{name}>")
    return "".join(out)
