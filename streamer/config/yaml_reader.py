"""YAML text to a tree of nodes: exact offsets, bounded depth, aliases bounded in what they make.

It works on the parser's events rather than on PyYAML's composer, which recurses without bound
and follows aliases for ever.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Mapping as MappingType
from typing import Any, Final

import yaml

from streamer.config.env_variables import replace_variables
from streamer.config.findings import Findings
from streamer.config.nodes import SECRET_STYLE, Mapping, Node, Scalar, Sequence
from streamer.config.source_map import Source
from streamer.config.unset_variables import UNSET_MARK

MAX_DEPTH: Final = 100
MAX_VALUES: Final = 100_000
_TOO_DEEP: Final = ("too_deep", f"the config is nested deeper than {MAX_DEPTH} levels")
_NESTING_ERROR: Final = "exceeded maximum nesting depth"  # of libyaml, not of PyYAML's own parser
_UNCLOSED_NAMES: Final = {
    "quoted scalar": "the quote",
    "flow sequence": "the list [",
    "flow mapping": "the object {",
}
_QUOTE_HINT: Final = "quote a text that begins with *"

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE_TAGS: Final = frozenset({"", "tag:yaml.org,2002:merge"})


def read_source(
    source: Source,
    env: MappingType[str, str],
    findings: Findings,
    *,
    check: bool = True,
    marks: bool = False,
) -> tuple[Source, Node | None]:
    """Replace the variables of a source and read its YAML.

    Args:
        source: the text.
        env: the environment's variables.
        findings: gets what is wrong.
        check: whether variables without a value are findings.
        marks: whether `UNSET_MARK` may stand in the place of those, for a lint.

    Returns:
        The source that was read, and the document's root as `read_yaml` returns it.
    """
    findings.warns_of_files = marks
    if marks and "${" in source.text and UNSET_MARK not in source.text:
        marked = Source(source.name, source.text)
        trial_findings = Findings()
        trial_findings.referenced_values = findings.referenced_values
        replace_variables(marked, env, trial_findings, check, UNSET_MARK)
        if UNSET_MARK in marked.text and read_yaml(marked, trial_findings) is not None:
            marked = Source(source.name, source.text)
            replace_variables(marked, env, findings, check, UNSET_MARK)
            # What is wrong with a value is told by its mark, and not by its line.
            findings.files_with_marks.add(source.name)
            return marked, read_yaml(marked, findings)
    replace_variables(source, env, findings, check)
    return source, read_yaml(source, findings)


class _ReadError(Exception):
    """The text cannot be read any further."""

    def __init__(self, offset: int, code: str, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.finding = (offset, code, message, suggestion)


def read_yaml(source: Source, findings: Findings) -> Node | None:
    """Read the one YAML document of a source.

    Args:
        source: the text, variables replaced already.
        findings: gets syntax errors, duplicate keys, and what is beyond the bounds.

    Returns:
        The document's root, or None when it cannot be read; then there is a finding.
    """
    try:
        return _Reader(source, findings).read()
    except _ReadError as e:
        findings.add_at_offset(source, *e.finding)
    except yaml.MarkedYAMLError as e:
        if e.problem == _NESTING_ERROR:
            findings.add_at_offset(source, *_find_refusal(source, e).finding)
        else:
            _report_marked(source, findings, e)
    except yaml.reader.ReaderError as e:
        _report_syntax(source, findings, *_find_control_character(source.text, str(e.reason)))
    return None


def _find_refusal(source: Source, nested: yaml.MarkedYAMLError) -> _ReadError:
    """Return what the reader refuses in a text whose nesting libyaml gave up.

    From 0.2.6 on libyaml ends at a thousand levels, and it looks at a thousand characters before
    it gives the first of their events. What stands before that place is nested less, and read
    again.
    """
    end = _get_mark_offset(nested.problem_mark)
    try:
        _Reader(source, Findings()).read(end)
    except _ReadError as e:
        return e
    except yaml.YAMLError:
        pass  # the text was cut off
    return _ReadError(end, *_TOO_DEEP)


def _report_marked(source: Source, findings: Findings, error: yaml.MarkedYAMLError) -> None:
    """Add what the parser says; what was opened and never closed is named where it begins."""
    problem, context = str(error.problem or error.context), str(error.context or "")
    opened = next((what for word, what in _UNCLOSED_NAMES.items() if word in context), "")
    start = error.context_mark
    if opened and start is not None and "end of stream" in problem:
        findings.add_at_offset(
            source,
            _get_mark_offset(start),
            "bad_yaml",
            f"YAML: {opened} that begins here is never closed",
        )
        return
    hint = (
        f"{opened} that begins at line {source.locate(_get_mark_offset(start)).line} is not closed"
    )
    mark = error.problem_mark or start
    _report_syntax(
        source, findings, _get_mark_offset(mark), problem, hint if opened and start else ""
    )


def _report_syntax(
    source: Source, findings: Findings, offset: int, problem: str, hint: str = ""
) -> None:
    if re.match(r"[ \t]*\t", source.text[source.text.rfind("\n", 0, offset) + 1 :]):
        hint = "YAML is indented with spaces; replace the tab"
    elif "mapping values are not allowed" in problem:
        hint = "quote a text that holds ': ', or check the indentation"
    elif "did not find expected key" in problem:
        hint = "check the indentation, and quotes that end too early"
    findings.add_at_offset(source, offset, "bad_yaml", f"YAML: {problem}", hint)


def _get_mark_offset(mark: Any) -> int:
    """Return the offset of an error's mark; 0 where it has none."""
    return int(mark.index) if mark else 0


def _find_control_character(text: str, reason: str) -> tuple[int, str]:
    for offset, char in enumerate(text):
        if char not in "\t\r\n\x85" and (char < " " or "\x7f" <= char < "\xa0"):
            return offset, f"the control character U+{ord(char):04X} is not allowed"
    return 0, reason


class _OpenNode:
    """A list or map whose end has not come yet."""

    __slots__ = ("node", "key", "merges", "size", "height", "anchor")

    def __init__(self, node: Sequence | Mapping, anchor: str | None) -> None:
        self.node = node
        self.key: Scalar | None = None
        self.merges: list[tuple[Scalar, Node]] = []
        self.size = 1
        self.height = 0
        self.anchor = anchor


class _Reader:
    """Reads one document from the parser's events, with a stack of its own."""

    def __init__(self, source: Source, findings: Findings) -> None:
        self._source = source
        self._findings = findings
        self._stack: list[_OpenNode] = []
        self._anchors: dict[str, Node | None] = {}
        # How many values, and how many levels, a list or map that has an anchor expands to.
        self._extents: dict[int, tuple[int, int]] = {}
        self._values = 0
        self._root: Node | None = None
        self._documents = 0

    def read(self, end: int | None = None) -> Node:
        """Return the root of the text, or of what stands before an offset."""
        handlers: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._on_scalar,
            yaml.AliasEvent: self._on_alias,
            yaml.MappingStartEvent: self._on_start,
            yaml.SequenceStartEvent: self._on_start,
            yaml.MappingEndEvent: self._on_end,
            yaml.SequenceEndEvent: self._on_end,
            yaml.DocumentStartEvent: self._on_document,
        }
        for event in yaml.parse(self._source.text[:end], Loader=_LOADER):
            handle = handlers.get(type(event))
            if handle is not None:
                handle(event)
        if self._root is None:
            raise _ReadError(0, "empty", "the config is empty", "write at least `input: …`")
        return self._root

    def _on_document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            raise _ReadError(
                event.start_mark.index,
                "several_documents",
                "a second YAML document starts here; a config is one document",
                "move it to a file of its own",
            )

    def _on_scalar(self, event: Any) -> None:
        value, style, marked = event.value, event.style or "", ""
        if self._source.has_secret(value):
            marked, value = value, self._source.reveal(value)
            style = style if style in ("|", ">") else SECRET_STYLE
        node = Scalar(
            self._source,
            event.start_mark.index,
            event.end_mark.index,
            value,
            style,
            event.tag or "",
            marked,
        )
        if event.anchor:
            self._anchors[event.anchor] = node
        if not self._stack and not value and not style:
            return  # only comments, or `---`
        self._add(node, node.start, 1, 0)

    def _on_alias(self, event: Any) -> None:
        at, name = event.start_mark.index, event.anchor
        if name not in self._anchors:
            # The name is not shown: it may be a secret that begins with an asterisk.
            raise _ReadError(at, "bad_alias", "this alias has no anchor before it", _QUOTE_HINT)
        node = self._anchors[name]
        if node is None:
            raise _ReadError(at, "bad_alias", "the anchor of this alias holds itself through it")
        self._add(node, at, *self._extents.get(id(node), (1, 0)))

    def _on_start(self, event: Any) -> None:
        at = event.start_mark.index
        if len(self._stack) >= MAX_DEPTH:
            raise _ReadError(at, *_TOO_DEEP)
        if event.tag not in (None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            raise _ReadError(at, "bad_tag", "this tag is not supported", "remove it")
        kind = Mapping if isinstance(event, yaml.MappingStartEvent) else Sequence
        if event.anchor:
            self._anchors[event.anchor] = None
        self._stack.append(_OpenNode(kind(self._source, at, at), event.anchor))

    def _on_end(self, event: Any) -> None:
        closed = self._stack.pop()
        closed.node.end = event.end_mark.index
        if isinstance(closed.node, Mapping):
            for key, merged in closed.merges:
                self._merge(closed.node, key, merged)
        if closed.anchor:
            self._anchors[closed.anchor] = closed.node
            self._extents[id(closed.node)] = (closed.size, closed.height + 1)
        self._add(closed.node, closed.node.start, closed.size, closed.height + 1)

    def _add(self, node: Node, at: int, size: int, height: int) -> None:
        """Put a finished value into the list or map that is open.

        Args:
            node: the value.
            at: the offset where it stands; where an alias does.
            size: how many values it expands to.
            height: how many levels.
        """
        if not self._stack:
            self._root = node
            return
        parent = self._stack[-1]
        parent.size += size
        if height > parent.height:
            parent.height = height
        self._values += 1
        if parent.size > MAX_VALUES or self._values > MAX_VALUES:
            raise _ReadError(
                at, "too_large", f"the config holds, or expands to, over {MAX_VALUES:,} values"
            )
        if len(self._stack) + height > MAX_DEPTH:
            raise _ReadError(at, *_TOO_DEEP)
        if isinstance(parent.node, Sequence):
            parent.node.items.append(node)
        elif parent.key is None:
            parent.key = self._to_key(node, at)
        else:
            self._add_entry(parent, parent.key, node)
            parent.key = None

    def _to_key(self, node: Node, offset: int) -> Scalar:
        if isinstance(node, Scalar):
            return node
        raise _ReadError(offset, "bad_key", "a field's name must be a string, found a list or map")

    def _add_entry(self, parent: _OpenNode, key: Scalar, value: Node) -> None:
        assert isinstance(parent.node, Mapping)
        if key.text == "<<" and not key.style and key.tag in _MERGE_TAGS:
            parent.merges.append((key, value))
            return
        earlier = parent.node.entries.get(key.text)
        if earlier is None:
            parent.node.entries[key.text] = (key, value)
            return
        line = self._source.locate(earlier[0].start).line
        self._findings.add_at(
            key,
            "duplicate_field",
            f"field {key.text} is already set at line {line}",
            "keep one of them",
        )

    def _merge(self, into: Mapping, key: Scalar, value: Node) -> None:
        """Add the fields of `<<: *anchor` that the map does not set itself."""
        for merged in value.items if isinstance(value, Sequence) else [value]:
            if not isinstance(merged, Mapping):
                raise _ReadError(
                    key.start, "bad_merge", "<< expects a map or a list of maps", "check the alias"
                )
            for name, entry in merged.entries.items():
                into.entries.setdefault(name, entry)
