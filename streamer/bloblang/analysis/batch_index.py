"""Proofs about a mapping without running it: the one message of a batch that it keeps."""

from __future__ import annotations

from typing import Final

from streamer.bloblang import tree
from streamer.core.value import DELETED

_STATE_NEEDS: Final = frozenset(("state", "site"))
"""Needs of functions that keep something from call to call."""


def find_only_index(program: tree.Program, has_effects: bool) -> int | None:
    """Return the index of a batch that a mapping keeps when it provably deletes all others.

    Seen: `root = if batch_index() == N { … } else { deleted() }`, the same turned around, with
    `> 0` and the like for 0, and as a `match`. Other statements may assign variables and metadata:
    what they say of a message that is deleted is not asked.

    Args:
        program: the mapping.
        has_effects: whether a message may change something besides what is made of it, such as what
            is kept for its key.
    """
    if has_effects and len(program.statements) > 1:
        return None
    roots = [each for each in program.statements if isinstance(each, tree.Assign)]
    if len(roots) != 1 or roots[0].path:
        return None
    others = [each for each in program.statements if each is not roots[0]]
    if any(isinstance(part, tree.Assign) for part in tree.walk(others)):
        return None
    if others and any(map(_keeps_state, tree.walk([*others, *program.maps.values()]))):
        return None
    value = roots[0].value
    if isinstance(value, tree.If):
        return _find_index_of_if(value.branches, value.otherwise)
    if isinstance(value, tree.Match) and value.subject is None:
        tests = [(test, then) for test, then in value.cases if test is not None]
        defaults = [then for test, then in value.cases if test is None]
        if len(tests) == len(value.cases) - 1 and value.cases[-1][0] is None:
            return _find_index_of_if(tests, defaults[0]) if tests else None
    return None


def _keeps_state(part: tree.Node | tree.Statement) -> bool:
    """Whether a part is a call that depends on those before it, as `counter` does."""
    return isinstance(part, tree.Call) and not _STATE_NEEDS.isdisjoint(part.bound.declaration.needs)


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
