"""Benthos's names of expressions in its error texts ("field `this.a`", "number literal")."""

from __future__ import annotations

from streamer.bloblang import tree
from streamer.bloblang.runtime.paths import join_path
from streamer.core.value import type_name

# Functions that are named by what they look up; the words before the key, and without a key.
_METADATA_FUNCTIONS = {"meta": "meta", "metadata": "metadata", "root_meta": "root_meta"}


def describe_expression(node: tree.Node) -> str:
    """Return the name of an expression, in Benthos's words."""
    match node:
        case tree.Literal(value=value, name=name):
            return name or f"{type_name(value)} literal"
        case tree.Path(base=base, path=path):
            return (
                f"field `{join_path((base, *path)) if not path else base + '.' + join_path(path)}`"
            )
        case tree.Name(name=name):
            return f"field `{name}`" if name in ("this", "root") else f"field `this.{name}`"
        case tree.Get(path=path):
            return f"path `{join_path(path)}`"
        case tree.Call():
            return _describe_call(node)
        case tree.Method(alias=alias):
            return f"variable {alias}" if alias else _describe_method(node)
        case tree.MapInto(query=query):
            return describe_expression(query)
        case tree.Not(operand=operand):
            return f"not {describe_expression(operand)}"
        case tree.Binary(right=right):
            return describe_expression(right)
        case tree.Chain(operands=operands):
            return describe_expression(operands[-1])
        case tree.If():
            return "if expression"
        case tree.Match():
            return "match expression"
        case tree.Lambda(body=body):
            return describe_expression(body)
        case tree.Array():
            return "array literal"
        case tree.Object():
            return "object literal"
        case tree.Variable(name=name):
            return f"variable {name}"
        case tree.Metadata(key=key):
            return f"meta field {key}" if key else "meta object"
        case tree.AggregateValue(origin=origin):
            return origin
    return "query"


def _literal_text(arguments: list[tree.Argument]) -> str | None:
    """Return the text of a call's only argument when it is a literal; `""` without arguments."""
    if not arguments:
        return ""
    value = arguments[0].value
    return str(value.value) if isinstance(value, tree.Literal) else None


def _describe_call(node: tree.Call) -> str:
    key = _literal_text(node.arguments)
    if key is None:
        return f"function {node.name}"
    if node.name in _METADATA_FUNCTIONS:
        word = _METADATA_FUNCTIONS[node.name]
        return f"{word} field {key}" if key else f"{word} object"
    if node.name == "json":
        return f"json path `{key}`"
    if node.name == "var":
        return f"variable {key}"
    return f"function {node.name}"


def _describe_method(node: tree.Method) -> str:
    key = _literal_text(node.arguments)
    match node.name, key:
        case "apply", str():
            return f"map {key}"
        case "get", str():
            return f"path `{key}`"
        case "from", str():
            return f"{describe_expression(node.target)} from {key}"
        case "not", _:
            return f"not {describe_expression(node.target)}"
        case "map", _:
            return describe_expression(node.arguments[0].value)
    return f"method {node.name}"
