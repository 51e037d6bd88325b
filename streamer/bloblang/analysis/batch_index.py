"""Proofs about a mapping without running it: the one message of a batch that it keeps."""

from __future__ import annotations

from streamer.bloblang import tree
from streamer.core.value import DELETED


def find_only_index(program: tree.Program) -> int | None:
    """Return the index of a batch that a mapping keeps when it provably deletes all others.

    Seen: `root = if batch_index() == N { … } else { deleted() }`, the same turned around, with
    `> 0` and the like for 0, and as a `match`.
    """
    if len(program.statements) != 1:
        return None
    statement = program.statements[0]
    if not isinstance(statement, tree.Assign) or statement.path:
        return None
    value = statement.value
    if isinstance(value, tree.If):
        return _find_index_of_if(value.branches, value.otherwise)
    if isinstance(value, tree.Match) and value.subject is None:
        tests = [(test, then) for test, then in value.cases if test is not None]
        others = [then for test, then in value.cases if test is None]
        if len(tests) == len(value.cases) - 1 and value.cases[-1][0] is None:
            return _find_index_of_if(tests, others[0]) if tests else None
    return None


def _is_deleted(node: tree.Node | None) -> bool:
    return isinstance(node, tree.Literal) and node.value is DELETED


def _find_index_of_if(
    branches: list[tuple[tree.Node, tree.Node]], otherwise: tree.Node | None
) -> int | None:
    if len(branches) != 1:
        return None
    test, then = branches[0]
    holds_for, fails_for = _parse_index_test(test)
    if _is_deleted(otherwise):
        return holds_for
    return fails_for if _is_deleted(then) else None


def _parse_index_test(test: tree.Node) -> tuple[int | None, int | None]:
    """Return the only index for which a test holds, and the only one for which it fails."""
    if not isinstance(test, tree.Binary):
        return None, None
    operator, left, right = test.operator, test.left, test.right
    if isinstance(left, tree.Literal):
        left, right = right, left
        operator = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(operator, operator)
    if not (isinstance(left, tree.Call) and left.name == "batch_index"):
        return None, None
    if not isinstance(right, tree.Literal) or type(right.value) is not int or right.value < 0:
        return None, None
    match operator, right.value:
        case "==", index:
            return index, None
        case "!=", index:
            return None, index
        case ("<", 1) | ("<=", 0):
            return 0, None
        case (">", 0) | (">=", 1):
            return None, 0
    return None, None
