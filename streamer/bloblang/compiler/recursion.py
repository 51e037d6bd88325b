"""Named maps that apply one another: as deep as Benthos has it, whatever Python's stack holds.

Source: Benthos `internal/bloblang/mapping/executor.go` (5,000 maps may be open at once). A run that
goes deeper than an ordinary stack surely holds is begun again on a thread with a big one.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from streamer.bloblang import tree
from streamer.bloblang.errors import MapRecursionError

MAX_OPEN_MAPS: Final = 5000
_MAX_MAPS_ON_NORMAL_STACK: Final = 60
_BIG_STACK_BYTES: Final = 512 << 20
_BIG_STACK_FRAMES: Final = 40 * MAX_OPEN_MAPS
_lock = threading.Lock()
_big_stack = threading.local()


class _StackExhausted(BaseException):
    """The run wants more stack than there is; no `catch` of a mapping sees this."""


class MapDepth(threading.local):
    """A count of the named maps that are open on this thread.

    Attributes:
        open_maps: their number.
    """

    open_maps = 0

    def enter(self, name: str) -> None:
        """Count a map that begins.

        Raises:
            TooDeep: there are too many.
        """
        if self.open_maps >= _MAX_MAPS_ON_NORMAL_STACK:
            if not hasattr(_big_stack, "yes"):
                raise _StackExhausted
            if self.open_maps >= MAX_OPEN_MAPS:
                raise MapRecursionError(
                    f"entering map {name} exceeded maximum allowed stacks of {MAX_OPEN_MAPS}, "
                    "this could be due to unbounded recursion"
                )
        self.open_maps += 1

    def leave(self) -> None:
        """Count a map that has ended."""
        self.open_maps -= 1


def sort_maps(program: tree.Program) -> list[str] | None:
    """Return the program's maps, each behind those it applies.

    None when one may, by way of others, apply itself.
    """
    graph: dict[str, set[str]] = {}
    for name, named in program.maps.items():
        applied = _find_applied_maps(named.body, program)
        if applied is None:
            return None
        graph[name] = applied
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError:
        return None


def _find_applied_maps(body: Any, program: tree.Program) -> set[str] | None:
    """Return the names of the maps that a part of the tree applies; None when it may be any."""
    names: set[str] = set()
    for part in tree.walk(body):
        if isinstance(part, tree.Method) and part.name == "apply":
            argument = part.arguments[0].value
            if not isinstance(argument, tree.Literal):
                return None
            if argument.value in program.maps:
                names.add(argument.value)
    return names


def with_big_stack(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs once more, with a big stack, what went too deep for this one.

    Args:
        run: the program's main function; if it has four arguments, `Execution` is the fourth.
    """

    def guarded(*args: Any) -> Any:
        counters = args[3].counters if len(args) > 3 else {}
        before = dict(counters)
        try:
            return run(*args)
        except _StackExhausted:
            pass
        counters.clear()
        counters.update(before)
        return _run_on_big_stack(run, args)

    return guarded


def _run_on_big_stack(run: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    result: list[Any] = []
    errors: list[BaseException] = []

    def target() -> None:
        _big_stack.yes = True
        try:
            result.append(run(*args))
        except BaseException as e:
            errors.append(e)

    # Both settings are the process's; they count for what begins while they hold.
    with _lock:
        limit, size = sys.getrecursionlimit(), threading.stack_size(_BIG_STACK_BYTES)
        sys.setrecursionlimit(_BIG_STACK_FRAMES)
        try:
            thread = threading.Thread(target=target, name="deep mapping")
            thread.start()
            threading.stack_size(size)
            thread.join()
        finally:
            sys.setrecursionlimit(limit)
    if errors:
        raise errors[0]
    return result[0]
