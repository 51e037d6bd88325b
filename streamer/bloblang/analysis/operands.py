"""What expressions are made of that are neither names nor calls: the same for all who walk them."""

from __future__ import annotations

from collections.abc import Sequence

from streamer.bloblang import tree


def list_operands(node: tree.Node) -> Sequence[tree.Node]:
    """Return the expressions in a node that are worked out in the node's own scope.

    Returns:
        They are none for literals and names, and for nodes that look something up, bind a name or
        give a value to a query: of those, who walks knows more.
    """
    match node:
        case tree.Not(operand=operand):
            return [operand]
        case tree.Binary(left=left, right=right):
            return [left, right]
        case tree.Chain(operands=operands):
            return operands
        case tree.If(branches=branches, otherwise=otherwise):
            parts = [part for branch in branches for part in branch]
            return parts if otherwise is None else [*parts, otherwise]
        case tree.Array(items=items):
            return items
        case tree.Object(pairs=pairs):
            return [part for pair in pairs for part in pair]
    return []
