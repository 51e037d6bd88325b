"""What Benthos calls an expression in its error texts ("field `this.a`", "number literal")."""

from __future__ import annotations

from streamer.bloblang import tree
from streamer.bloblang.runtime.paths import dot_path
from streamer.value import type_name

# Functions that are named by what they look up; the words before the key, and without a key.
_LOOKUPS = {"meta": "meta", "metadata": "metadata", "root_meta": "root_meta"}


def annotation(node: tree.Node) -> str:
    """Return the name of an expression, in Benthos's words."""
    match node:
        case tree.Literal(value=value, name=name):
            return name or f"{type_name(value)} literal"
        case tree.Path(base=base, path=path):
            return f"field `{dot_path((base, *path)) if not path else base + '.' + dot_path(path)}`"
        case tree.Name(name=name):
            return f"field `{name}`" if name in ("this", "root") else f"field `this.{name}`"
        case tree.Get(path=path):
            return f"path `{dot_path(path)}`"
        case tree.Call():
            return _call(node)
        case tree.Method():
            return _method(node)
        case tree.MapInto(query=query):
            return annotation(query)
        case tree.Not(operand=operand):
            return f"not {annotation(operand)}"
        case tree.Binary(right=right):
            return annotation(right)
        case tree.Chain(operands=operands):
            return annotation(operands[-1])
        case tree.If():
            return "if expression"
        case tree.Match():
            return "match expression"
        case tree.Lambda(body=body):
            return annotation(body)
        case tree.Array():
            return "array literal"
        case tree.Object():
            return "object literal"
        case tree.Variable(name=name):
            return f"variable {name}"
        case tree.Metadata(key=key):
            return f"meta field {key}" if key else "meta object"
        case tree.Folded(origin=origin):
            return origin
    return "query"


def _literal(arguments: list[tree.Argument]) -> str | None:
    """Return the text of a call's only argument when it is a literal; `""` without arguments."""
    if not arguments:
        return ""
    value = arguments[0].value
    return str(value.value) if isinstance(value, tree.Literal) else None


def _call(node: tree.Call) -> str:
    key = _literal(node.arguments)
    if key is None:
        return f"function {node.name}"
    if node.name in _LOOKUPS:
        word = _LOOKUPS[node.name]
        return f"{word} field {key}" if key else f"{word} object"
    if node.name == "json":
        return f"json path `{key}`"
    if node.name == "var":
        return f"variable {key}"
    return f"function {node.name}"


def _method(node: tree.Method) -> str:
    key = _literal(node.arguments)
    match node.name, key:
        case "apply", str():
            return f"map {key}"
        case "get", str():
            return f"path `{key}`"
        case "from", str():
            return f"{annotation(node.target)} from {key}"
        case "not", _:
            return f"not {annotation(node.target)}"
        case "map", _:
            return annotation(node.arguments[0].value)
    return f"method {node.name}"
