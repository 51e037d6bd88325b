"""The second look at a tree: names get their meaning, calls their function, constants their value.

It also finds out what a mapping leans on (`Uses`), so that the engine may route by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

from streamer.bloblang import operators, tree
from streamer.bloblang.arguments import CallBinding, StaticArgument, bind_arguments
from streamer.bloblang.catalog import FUNCTIONS, METHODS
from streamer.bloblang.declare import Declaration
from streamer.bloblang.environment import MappingEnvironment, StateCall
from streamer.bloblang.errors import ArgumentError, BloblangError, QueryError
from streamer.bloblang.extension import CallKind
from streamer.bloblang.golib.text import go_type
from streamer.bloblang.hints import suggest_call, suggest_name
from streamer.bloblang.runtime.paths import split_path
from streamer.core.permissions import current_permissions
from streamer.core.value import DELETED, NOTHING


@dataclass(frozen=True, slots=True)
class Uses:
    """The things that a mapping's result depends on besides the message's own parsed document.

    Attributes:
        batch: the other messages or the place among them (`batch_index`, `from_all`, `count`, …).
        meta: metadata, read or written.
        content: the message's bytes.
        now: the clock.
        random: chance (`random_int`, `uuid_v4`, …).
        error: the error that marks the message.
        impure: the world outside (`env`, `file`, `hostname`).
        document: the parsed document.
        keyed_state: what was kept for the message's key (`lag`, `accumulate`, …).
        table: the tables of `table_resources`.
    """

    batch: bool = False
    meta: bool = False
    content: bool = False
    now: bool = False
    random: bool = False
    error: bool = False
    impure: bool = False
    document: bool = False
    keyed_state: bool = False
    table: bool = False

    @property
    def only_document(self) -> bool:
        """Whether the result depends on nothing but the message's own parsed document."""
        beside_message = self.batch or self.now or self.random or self.impure or self.table
        beside_document = self.meta or self.content or self.error or self.keyed_state
        return not (beside_message or beside_document)


# Methods that are built around their target, so that a chain of them nests like brackets.
NESTING_METHODS: Final = frozenset(
    ("bool", "catch", "from", "from_all", "not", "number", "or", "timestamp")
)


@dataclass(slots=True)
class Resolver:
    """Resolves one mapping.

    Attributes:
        environment: what it may take from outside of messages.
        used_traits: collects what it leans on.
        text: the mapping, by which calls are named; empty where none has to be.
    """

    environment: MappingEnvironment
    used_traits: set[str] = field(default_factory=set)
    text: str = ""

    def collect_uses(self) -> Uses:
        """Return what the mapping resolved so far leans on."""
        return Uses(**dict.fromkeys(self.used_traits, True))

    def resolve_node(self, node: tree.Node, scope: tuple[str, ...], depth: int = 0) -> tree.Node:
        """Return an expression with everything in it resolved.

        Args:
            node: the expression.
            scope: the named contexts around it.
            depth: how deep it is nested.

        Raises:
            BloblangError: an unknown name, a wrong argument, or too deep a nesting.
        """
        spine: list[tree.Node] = []
        around = depth
        while (field_name := _LEFT_OPERANDS.get(type(node))) is not None:
            around += isinstance(node, tree.Method) and node.name in NESTING_METHODS
            if around > tree.MAX_DEPTH:
                raise _error_at(node, tree.TOO_DEEP)
            spine.append(node)
            node = getattr(node, field_name)
        if depth > tree.MAX_DEPTH:
            raise _error_at(node, tree.TOO_DEEP)
        node = self._resolve_leaf(node, scope, depth + 1)
        for upper in reversed(spine):
            node = self._resolve_upper(upper, node, scope, depth + 1)
        return node

    def _resolve_upper(
        self, node: tree.Node, left: tree.Node, scope: tuple[str, ...], depth: int
    ) -> tree.Node:
        """Resolve a node of the left spine, whose left part is resolved already."""
        match node:
            case tree.Get(path=path):
                return _extend_path(left, path)
            case tree.Method():
                return self._resolve_method(node, left, scope, depth)
            case tree.MapInto(query=query):
                return tree.MapInto(node.place, left, self.resolve_node(query, scope, depth))
            case tree.Binary(right=right):
                return operators.resolve_binary(node, left, self.resolve_node(right, scope, depth))
            case tree.Brackets():
                return left
        raise AssertionError(node)

    def _resolve_leaf(self, node: tree.Node, scope: tuple[str, ...], depth: int) -> tree.Node:
        match node:
            case tree.Literal():
                return node
            case tree.Name(name=name):
                return self._resolve_name(node, name, scope)
            case tree.Call():
                return self._resolve_call(node, scope, depth)
            case tree.Lambda(name=name, body=body):
                return self._resolve_lambda(node, name, body, scope, depth)
            case tree.Match():
                self.used_traits.add("document")
            case tree.Metadata():
                self.used_traits.add("meta")
        resolved = tree.map_children(node, lambda part: self.resolve_node(part, scope, depth))
        if isinstance(resolved, tree.Array):
            return _reduce_array(resolved)
        return _reduce_object(resolved) if isinstance(resolved, tree.Object) else resolved

    def _resolve_name(self, node: tree.Node, name: str, scope: tuple[str, ...]) -> tree.Node:
        if name == "root" or name in scope:
            return tree.Path(node.place, name, ())
        self.used_traits.add("document")
        return tree.Path(node.place, "this", () if name == "this" else (name,))

    def _resolve_lambda(
        self, node: tree.Node, name: str, body: tree.Node, scope: tuple[str, ...], depth: int
    ) -> tree.Node:
        if name in scope:
            raise _error_at(node, f"context label `{name}` would shadow a parent context")
        if name in ("root", "this"):
            raise _error_at(node, f"context label `{name}` is not allowed")
        inner = scope if name == "_" else (*scope, name)
        resolved = self.resolve_node(body, inner, depth)
        if isinstance(resolved, tree.Lambda):
            raise _error_at(
                node,
                "it would be in poor taste to capture the same context under both "
                f"'{name}' and '{resolved.name}'",
            )
        return tree.Lambda(node.place, name, resolved)

    def _resolve_call(self, node: tree.Call, scope: tuple[str, ...], depth: int) -> tree.Node:
        if node.name in ("deleted", "nothing") and not node.arguments:
            if node.name == "deleted":
                return tree.Literal(node.place, DELETED, "delete")
            return tree.Literal(node.place, NOTHING, "nothing")
        declaration = FUNCTIONS.get(node.name) or self._find_python(node, "function")
        arguments = self._resolve_arguments(node.arguments, scope, depth)
        if declaration is None:
            raise _unknown_name_error(node, "function", self.environment.extension.functions)
        bound = self._bind_call(node, declaration, arguments)
        if node.name == "json":
            self.used_traits.add("document")
            if arguments and not isinstance(arguments[0].value, tree.Literal):
                self.used_traits.add("content")  # the function looks at the message then
        if node.name == "var" and isinstance(arguments[0].value, tree.Literal):
            return tree.Variable(node.place, str(arguments[0].value.value))
        return tree.Call(node.place, node.name, arguments, bound)

    def _resolve_method(
        self, node: tree.Method, target: tree.Node, scope: tuple[str, ...], depth: int
    ) -> tree.Node:
        declaration = METHODS.get(node.name) or self._find_python(node, "method")
        arguments = self._resolve_arguments(node.arguments, scope, depth)
        if declaration is None:
            raise _unknown_name_error(node, "method", self.environment.extension.methods)
        if node.name == "get" and len(arguments) == 1 and _is_whole_table(target):
            # One row is looked up, and the key is no path.
            key = tree.Argument(None, arguments[0].value)
            pair = [tree.Argument(None, target.arguments[0].value), key]
            bound = self._bind_call(target, target.bound.declaration, pair)
            return tree.Call(target.place, target.name, pair, bound, node.end)
        bound = self._bind_call(node, declaration, arguments)
        if node.name == "get" and isinstance(path := arguments[0].value, tree.Literal):
            return _extend_path(target, split_path(str(path.value)))
        if node.name == "not":
            return tree.Not(node.place, target)
        if node.name == "map":
            return tree.MapInto(node.place, target, arguments[0].value)
        if declaration.foldable and isinstance(target, tree.Literal) and bound.is_static():
            return _evaluate_call(node, target, bound)
        return tree.Method(node.place, target, node.name, arguments, bound)

    def _find_python(self, node: tree.Call | tree.Method, kind: CallKind) -> Declaration | None:
        """Return the declaration of a call that the language does not have."""
        environment = self.environment
        extension, is_permitted = environment.extension, current_permissions().python
        declaration = extension.find(kind, node.name)
        if declaration is not None or (is_permitted and not extension.has_installed):
            return declaration
        # Imported here: few mappings call a function of another package.
        from streamer.bloblang.plugin_functions import find_plugin_function, read_function_index

        if not is_permitted:
            if (kind, node.name) not in read_function_index().entries:
                return None
            raise _error_at(node, _NOT_PERMITTED.format(kind=kind, name=node.name))
        try:
            plugin = find_plugin_function(kind, node.name)
        except QueryError as e:
            raise _error_at(node, str(e)) from None
        if plugin is None:
            return None
        environment.note_plugin(kind, node.name, plugin.distribution)
        return plugin.declaration

    def _resolve_arguments(
        self, arguments: list[tree.Argument], scope: tuple[str, ...], depth: int
    ) -> list[tree.Argument]:
        return [tree.Argument(a.name, self.resolve_node(a.value, scope, depth)) for a in arguments]

    def _bind_call(
        self, node: tree.Node, declaration: Declaration, arguments: list[tree.Argument]
    ) -> CallBinding:
        if declaration.impure and not self.environment.impure:
            raise _error_at(
                node, f"function '{declaration.name}' is switched off here", _IMPURE_HINT
            )
        self.used_traits.update(declaration.uses)
        try:
            binding = bind_arguments(declaration, arguments, self.environment.json_numbers)
            if declaration.takes_environment:
                binding.arguments.insert(0, StaticArgument(self.environment))
            if declaration.check:
                declaration.check(*_argument_values(binding))
            late = {"site", "state", "call_name"} & set(declaration.needs)
            if declaration.binds and binding.is_static() and not late:
                declaration.run(*_argument_values(binding))
        except (ArgumentError, QueryError) as e:
            raise _error_at(node, str(e)) from None
        if "call_name" in declaration.needs:
            binding.arguments.insert(0, StaticArgument(self._name_call(node, binding)))
        return binding

    def _name_call(self, node: tree.Node, binding: CallBinding) -> str:
        """Return a name for a call, which is the same whatever is changed around it.

        It is the call's text without spaces, and its number among those that say the same.
        """
        declaration, calls = binding.declaration, self.environment.state_calls
        text = _text_between(self.text, node.place, getattr(node, "end", None)) or declaration.name
        number = 1 + sum(call.text.partition("#")[0] == text for call in calls)
        text = text if number == 1 else f"{text}#{number}"
        named = zip(declaration.params, _argument_values(binding), strict=True)
        given = next((value for param, value in named if param.name == "name"), "")
        calls.append(StateCall(text, f"{declaration.name}:{given}" if given else ""))
        return text


_LEFT_OPERANDS: Final = {**tree.LEFT_OPERANDS, tree.Brackets: "query"}
_NOT_PERMITTED: Final = (
    "the {kind} {name} is Python of another package, which a config that comes by API may call "
    "with --allow-python alone"
)
_IMPURE_HINT = "it is impure: it reaches outside of the message, which --no-impure forbids"


def _text_between(text: str, start: tree.Place, end: tree.Place | None) -> str:
    """Return the text from one place up to another, without spaces."""
    if end is None:
        return ""
    lines = text.split("\n")[start.line - 1 : end.line]
    if lines:
        lines[-1] = lines[-1][: end.column - 1]
        lines[0] = lines[0][start.column - 1 :]
    return "".join("".join(lines).split())


def _is_whole_table(node: tree.Node) -> TypeGuard[tree.Call]:
    return isinstance(node, tree.Call) and node.name == "table" and len(node.arguments) == 1


def _argument_values(binding: CallBinding) -> list[Any]:
    return [getattr(argument, "value", None) for argument in binding.arguments]


def _extend_path(target: tree.Node, path: tuple[str, ...]) -> tree.Node:
    if isinstance(target, tree.Path):
        return tree.Path(target.place, target.base, (*target.path, *path))
    if isinstance(target, tree.Get):
        return tree.Get(target.place, target.target, (*target.path, *path))
    return tree.Get(target.place, target, path)


def _reduce_array(node: tree.Array) -> tree.Node:
    values = [item.value for item in node.items if isinstance(item, tree.Literal)]
    if len(values) < len(node.items):
        return node
    present = [value for value in values if value is not DELETED and value is not NOTHING]
    return tree.Literal(node.place, present)


def _reduce_object(node: tree.Object) -> tree.Node:
    result: dict[str, Any] = {}
    static = True
    for key, value in node.pairs:
        if isinstance(key, tree.Literal) and not isinstance(key.value, str):
            message = f"object keys must be strings, received: {go_type(key.value)}"
            raise _error_at(node, message)
        if not (isinstance(key, tree.Literal) and isinstance(value, tree.Literal)):
            static = False
        elif value.value is not DELETED and value.value is not NOTHING:
            result[key.value] = value.value
    return tree.Literal(node.place, result) if static else node


def _evaluate_call(node: tree.Method, target: tree.Literal, bound: CallBinding) -> tree.Node:
    """Return what a method gives for a literal, worked out when the mapping is read."""
    run, values = bound.declaration.run, _argument_values(bound)
    try:
        if bound.declaration.binds:
            result = run(*values)(target.value)
        else:
            result = run(target.value, *values)
    except QueryError as e:
        raise _error_at(node, str(e)) from None
    return tree.Literal(node.place, result, f"method {node.name}")


def _error_at(node: tree.Node, message: str, suggestion: str = "") -> BloblangError:
    # Benthos looks at a call once it has read it, and tells of the place behind it.
    place = (isinstance(node, tree.Call | tree.Method) and node.end) or node.place
    return BloblangError(place.line, place.column, message, suggestion)


def _unknown_name_error(
    node: tree.Call | tree.Method, kind: CallKind, others: Iterable[str]
) -> BloblangError:
    """Return the error of a call that is not there; `others` are names beside the language's."""
    name = node.name
    hint = suggest_name(name, others) or suggest_call(kind, name)
    return _error_at(node, f"unrecognised {kind} '{name}'", hint)
