"""Variables of a mapping that are read as what was assigned to them, so that they aggregate.

A `let` of `json("x").from_all()`, with or without `map_each` and `filter`, stands for all values of
a window; each place that reads it is taken for the expression itself. So is a `let` of a literal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from streamer.bloblang import tree
from streamer.bloblang.analysis.aggregation_obstacles import split_from_all


def inline_variables(
    program: tree.Program, keep_array: Callable[[tree.Method], tree.Node]
) -> tree.Program:
    """Return a mapping that reads expressions in the place of variables, as far as it can.

    Args:
        program: the mapping.
        keep_array: gives what a `let` is to evaluate in the place of an array of all values: what
            fails as the array does.
    """
    names = _find_names(program)
    if not names:
        return program
    values: dict[str, tree.Node] = {}
    statements = []
    for statement in program.statements:
        changed = _read_values(statement, values)
        if isinstance(changed, tree.Let) and changed.name in names:
            value = changed.value
            if isinstance(value, tree.Method) and split_from_all(value):
                values[changed.name] = value
                changed = replace(changed, value=keep_array(value))
            elif isinstance(value, tree.Literal):
                values[changed.name] = value
        statements.append(changed)
    return replace(program, statements=statements)


def _find_names(program: tree.Program) -> set[str]:
    """Return the variables that are assigned once, outside of named maps, and read in sight."""
    parts = list(tree.walk(program))
    if any(isinstance(part, tree.Call) and part.name == "var" for part in parts):
        return set()
    assigned = Counter(part.name for part in parts if isinstance(part, tree.Let))
    in_maps = {
        part.name
        for part in tree.walk(list(program.maps.values()))
        if isinstance(part, tree.Variable | tree.Let)
    }
    once = {
        statement.name
        for statement in program.statements
        if isinstance(statement, tree.Let) and assigned[statement.name] == 1
    }
    return once - in_maps


def _read_values(part: Any, values: dict[str, tree.Node]) -> Any:
    """Return a part of a tree with the values of variables in the variables' places."""
    if isinstance(part, tree.Variable):
        value = values.get(part.name)
        if isinstance(value, tree.Literal):
            return tree.Literal(part.place, value.value, f"variable {part.name}")
        if isinstance(value, tree.Method):
            return replace(value, place=part.place, end=part.place, alias=part.name)
        return part

    def change(child: Any) -> Any:
        return _read_values(child, values)

    changed = tree.map_children(part, change)
    if isinstance(changed, tree.Method | tree.Call):
        changed.bound = changed.bound.map_nodes(change)
    return changed
