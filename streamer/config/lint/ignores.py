"""`# streamer:ignore CODE, CODE`: comments that silence findings of their line or of the next one.

A comment beside something is for its own line; one that has a line to itself is for the next line
that is neither empty nor a comment. Text after the codes is for the reader.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from streamer.config.findings import MAX_FINDINGS, suggest_name
from streamer.config.lint.rules import RULES
from streamer.config.nodes import Mapping, Node, Scalar
from streamer.config.nodes import Sequence as ListNode
from streamer.config.read_context import Ignore, LintOptions
from streamer.config.source_map import LINE_END, Source
from streamer.core.errors import Lint

_MARKER: Final = "streamer:ignore"
_COMMENT: Final = re.compile(
    rf"(?m)(^[ \t]*|[ \t])(#[ \t]*{_MARKER})(?![\w-])[ \t]*([\w-]*(?:[ \t]*,[ \t]*[\w-]+)*)"
)
_ONLY_COMMENT: Final = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")


def find_ignores(source: Source, root: Node | None) -> Iterator[Ignore]:
    """Return the ignores of a text.

    Args:
        source: the text.
        root: the tree that was read from it: what stands inside quotes is no comment.
    """
    if _MARKER not in source.text:
        return
    quoted = [] if root is None else sorted(_find_quoted_spans(root, source))
    following: dict[int, int] = {}
    # Looking back for the nearest end of a line would go through all of a text without `\r`.
    starts = [0, *(match.end() for match in LINE_END.finditer(source.text))]
    for match in _COMMENT.finditer(source.text):
        at = match.start(2)
        before = bisect_right(quoted, (at, len(source.text))) - 1
        if before >= 0 and at < quoted[before][1]:
            continue
        start = starts[bisect_right(starts, at) - 1]
        alone = not source.text[start:at].strip()
        line = source.locate(_find_next_line(source.text, start, following) if alone else at).line
        for code in re.split(r"[ \t]*,[ \t]*", match[3]):
            yield Ignore(source.name, source.locate(at), line, code)


def _find_next_line(text: str, position: int, known: dict[int, int]) -> int:
    """Return where the next line starts that has more than a comment.

    Args:
        text: the text.
        position: where a line starts that has a comment.
        known: the answers for lines that were passed before, which are added to.
    """
    passed = []
    while position not in known:
        only = _ONLY_COMMENT.match(text, position)
        if only is None or only.end() == position:
            known[position] = position
        else:
            passed.append(position)
            position = only.end()
    known.update(dict.fromkeys(passed, known[position]))
    return known[position]


def _find_quoted_spans(node: Node, source: Source) -> Iterator[tuple[int, int]]:
    if isinstance(node, Scalar):
        if node.style in ("'", '"') and node.source is source:
            yield node.start, node.end
    elif isinstance(node, ListNode):
        for item in node.items:
            yield from _find_quoted_spans(item, source)
    elif isinstance(node, Mapping):
        for key, value in node.entries.values():
            yield from _find_quoted_spans(key, source)
            yield from _find_quoted_spans(value, source)


def drop_ignored(
    lints: Sequence[Lint], ignores: Sequence[Ignore], options: LintOptions
) -> tuple[Lint, ...]:
    """Return the findings that no comment silences, and those about the comments themselves.

    Args:
        lints: the findings, in the order of the files.
        ignores: the comments of the files.
        options: when they are not `thorough`, what is silenced has to be something that a config
            can run with, and comments that silence nothing are no finding.
    """
    if not ignores:
        return tuple(lints)
    given = {(ignore.file, ignore.line, ignore.code) for ignore in ignores}
    used = set()
    kept = []
    for lint in lints:
        key = (lint.file, lint.line, lint.code)
        rule = RULES[lint.code]
        if key in given and rule.ignorable and (options.thorough or rule.runs_ignored):
            used.add(key)
        else:
            kept.append(lint)
    if not options.thorough:
        return tuple(kept)
    about = (
        lint
        for ignore in ignores
        if (ignore.file, ignore.line, ignore.code) not in used
        for lint in _lint_ignore(ignore, options)
    )
    kept += islice(about, max(0, MAX_FINDINGS - len(kept)))
    files = list(dict.fromkeys([ignores[0].file, *(lint.file for lint in kept)]))
    return tuple(sorted(kept, key=lambda lint: (files.index(lint.file), lint.line, lint.column)))


def _lint_ignore(ignore: Ignore, options: LintOptions) -> Iterable[Lint]:
    """Return what is wrong with a comment that has silenced nothing."""
    if not ignore.code:
        message = f"{_MARKER} names no code"
        yield Lint(
            ignore.file, *ignore.place, "bad_ignore", message, "write one, such as unknown_field"
        )
    elif ignore.code not in RULES:
        hint = suggest_name(ignore.code, RULES)
        message = f"{_MARKER} names {ignore.code}, which is not a code"
        yield Lint(ignore.file, *ignore.place, "bad_ignore", message, hint)
    elif not RULES[ignore.code].ignorable:
        message = f"{_MARKER} cannot silence {ignore.code}"
        yield Lint(ignore.file, *ignore.place, "bad_ignore", message, "remove it")
    elif _is_checked(ignore.code, options):
        message = f"nothing to ignore: line {ignore.line} has no finding {ignore.code}"
        yield Lint(ignore.file, *ignore.place, "unused_ignore", message, "remove the comment")


def _is_checked(code: str, options: LintOptions) -> bool:
    """Return whether findings of a code would have been found with these options."""
    if code == "deprecated":
        return options.deprecated
    if code == "missing_label":
        return options.labels
    if code == "missing_package":
        return options.packages
    return options.check_variables or code != "missing_variable"
