"""Results of a pre-aggregated mapping that are written column by column, without an object of each.

A window may close with hundreds of thousands of groups. Where the mapping makes an object of
constants, metadata, fields of the first message and aggregates, each of its fields is a column of
values, and the JSON of all groups is put together from the JSON of the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from streamer.bloblang import tree
from streamer.bloblang.analysis.pre_aggregation import PreAggregation, analyze_pre_aggregation
from streamer.bloblang.compiler.program import compile_query
from streamer.core.json.dump import dump_json
from streamer.core.value import DELETED, NOTHING

_COMPUTED_NODES: Final = (
    tree.AggregateValue,
    tree.Literal,
    tree.Binary,
    tree.Not,
    tree.If,
    tree.Method,
    tree.Argument,
)


@dataclass(frozen=True, slots=True)
class AggregateField:
    """A field that is an aggregate's value, by its number."""

    number: int


@dataclass(frozen=True, slots=True)
class MetadataField:
    """A field that is the metadata of a name.

    Attributes:
        name: the name.
        as_text: whether it is given as text, null where it is empty, as `meta("name")` does.
    """

    name: str
    as_text: bool


@dataclass(frozen=True, slots=True)
class DocumentField:
    """A field that is read from the document of the first message by a function.

    Attributes:
        path: the path in the document.
        read: returns the value; it may raise.
    """

    path: tuple[str, ...]
    read: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class ComputedField:
    """A field that is computed of aggregates alone.

    Attributes:
        numbers: those of the aggregates.
        compute: takes an object with `aggregate_value`, and four things that it does not look at.
    """

    numbers: tuple[int, ...]
    compute: Callable[..., Any]


ResultField = AggregateField | MetadataField | DocumentField | ComputedField


@dataclass(frozen=True, slots=True)
class ResultColumns:
    """The JSON of the objects that a mapping makes of groups.

    Attributes:
        fragments: what stands before each field, and behind the last one.
        fields: the fields that differ, in the order of their keys.
    """

    fragments: tuple[bytes, ...]
    fields: tuple[ResultField, ...]

    @property
    def reads_documents(self) -> bool:
        """Whether the first messages are looked at."""
        return any(isinstance(one, DocumentField) for one in self.fields)

    def join(self, columns: Sequence[Sequence[bytes]], count: int) -> list[bytes]:
        """Return the JSON of each group.

        Args:
            columns: by field, the JSON of its values; none holds a line break.
            count: how many groups there are.
        """
        if not columns:
            return [self.fragments[0]] * count
        width = 2 * len(columns)
        parts: list[bytes] = [b""] * (width * count)
        for place, column in enumerate(columns):
            parts[2 * place :: width] = [self.fragments[place]] * count
            parts[2 * place + 1 :: width] = column
        first, last = self.fragments[0], self.fragments[-1]
        # Of what ends a group and begins the next one, the line break is where they are cut.
        parts[::width] = [last + b"\n" + first] * count
        parts[0] = first
        parts.append(last)
        return b"".join(parts).split(b"\n")


@lru_cache(maxsize=64)
def find_result_columns(text: str) -> ResultColumns | None:
    """Return how the results of a pre-aggregated mapping are columns; None if they are not.

    Raises:
        BloblangError: the text is no mapping.
    """
    aggregation = analyze_pre_aggregation(text)
    if not isinstance(aggregation, PreAggregation):
        return None
    statements = aggregation.mapping.program.statements
    if len(statements) != 1 or not isinstance(statements[0], tree.Assign):
        return None
    made = _find_kept(statements[0].value)
    parts: list[bytes | ResultField] = []
    if statements[0].path or made is None or not _add_object(made, parts):
        return None
    return _merge_parts(parts)


def _find_kept(node: tree.Node) -> tree.Object | None:
    """Return the object that the first message of a batch becomes.

    All other messages are deleted, so that it is the one that is not (`only_index`).
    """
    if isinstance(node, tree.If):
        ways = [*(then for _, then in node.branches), node.otherwise]
    elif isinstance(node, tree.Match):
        ways = [then for _, then in node.cases]
    else:
        return None
    kept = [way for way in ways if not (isinstance(way, tree.Literal) and way.value is DELETED)]
    return kept[0] if len(kept) == 1 and isinstance(kept[0], tree.Object) else None


def _add_object(node: tree.Object, parts: list[bytes | ResultField]) -> bool:
    """Add what an object is written as; return whether all of it is columns."""
    by_key: dict[str, tree.Node] = {}
    for key, value in node.pairs:
        if not isinstance(key, tree.Literal) or type(key.value) is not str or key.value in by_key:
            return False
        by_key[key.value] = value
    parts.append(b"{")
    for place, name in enumerate(sorted(by_key)):
        parts.append(b"," * (place > 0) + dump_json(name) + b":")
        if not _add_value(by_key[name], parts):
            return False
    parts.append(b"}")
    return True


def _add_value(node: tree.Node, parts: list[bytes | ResultField]) -> bool:
    if isinstance(node, tree.Object):
        return _add_object(node, parts)
    if isinstance(node, tree.Literal):
        if node.value is DELETED or node.value is NOTHING:
            return False
        parts.append(dump_json(node.value))
        return True
    field = _make_field(node)
    if field is None:
        return False
    parts.append(field)
    return True


def _make_field(node: tree.Node) -> ResultField | None:
    match node:
        case tree.AggregateValue(number=number, special=False):
            return AggregateField(number)
        case tree.Metadata(key=key) if key:
            return MetadataField(key, as_text=False)
        case tree.Call(name="meta" | "metadata") if name := _literal_argument(node):
            return MetadataField(name, as_text=node.name == "meta")
        case tree.Path(base="this", path=path) if path:
            return DocumentField(path, compile_query(node, "", document_only=True).run)
        case tree.Call(name="json") if name := _literal_argument(node):
            return DocumentField((name,), compile_query(node, "", document_only=True).run)
    parts = list(tree.walk([node]))
    numbers = {one.number for one in parts if isinstance(one, tree.AggregateValue)}
    if numbers and all(map(_is_computable, parts)):
        return ComputedField(tuple(sorted(numbers)), compile_query(node, "").run)
    return None


def _literal_argument(node: tree.Call) -> str:
    """Return the one argument of a call, if it is a text."""
    if len(node.arguments) == 1 and isinstance(node.arguments[0].value, tree.Literal):
        value = node.arguments[0].value.value
        return value if type(value) is str else ""
    return ""


def _is_computable(part: Any) -> bool:
    """Whether a part of an expression depends on the values in it alone."""
    if not isinstance(part, _COMPUTED_NODES):
        return False
    if isinstance(part, tree.AggregateValue):
        return not part.special
    if isinstance(part, tree.Method):
        declaration = part.bound.declaration
        return not (declaration.needs or declaration.uses or declaration.impure)
    return True


def _merge_parts(parts: list[bytes | ResultField]) -> ResultColumns:
    """Join the texts that follow one another."""
    fragments, fields = [b""], []
    for part in parts:
        if isinstance(part, bytes):
            fragments[-1] += part
        else:
            fields.append(part)
            fragments.append(b"")
    return ResultColumns(tuple(fragments), tuple(fields))
