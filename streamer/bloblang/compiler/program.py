"""A program compiled: generated source turned into Python functions that share constants."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from streamer.bloblang import diagnostics, tree
from streamer.bloblang.compiler.code import Code, Scope
from streamer.bloblang.compiler.expressions import emit
from streamer.bloblang.compiler.options import ALL, Optimisations
from streamer.bloblang.compiler.recursion import Depth, in_order, with_room
from streamer.bloblang.compiler.sites import Failed, Site
from streamer.bloblang.compiler.statements import emit_function
from streamer.bloblang.errors import BloblangError, UnplacedError
from streamer.bloblang.runtime.objects import UNSET
from streamer.bloblang.runtime.operations import EXACT
from streamer.limits import used_limits
from streamer.message import UNPARSED
from streamer.time_limit import TimeLimitError, within_time
from streamer.timestamps import Timestamp
from streamer.value import DELETED, INT64_MAX, INT64_MIN, NOTHING

_numbers = itertools.count(1)

# What the functions of one program are given: everything, or only the document.
FULL = "B, I, M, X, meta"
DOCUMENT = "doc"


class Compiled:
    """One generated module.

    Attributes:
        source: its source.
        constants: what its names stand for.
        sites: what its lines stand for, by 1-based line number.
        table: what its lines stand for.
        looks_at_batch: whether it looks at other messages of the batch, which is its first argument
            then, so that it has the time of all of them.
    """

    def __init__(self, code: Code, name: str, table: dict[str, Mapping[int, Site]]) -> None:
        self.source = code.source()
        self.sites: Mapping[int, Site] = code.sites
        self.table = table
        table[name] = code.sites
        try:
            compiled = compile(self.source, name, "exec", dont_inherit=True)
        except (SyntaxError, RecursionError, MemoryError) as e:
            raise BloblangError(1, 1, f"the mapping is nested too deeply ({e})") from None
        exec(compiled, code.constants)
        self.constants = code.constants
        self.looks_at_batch = False
        self._run: Callable[..., Any] = code.constants["run"]
        self._run_bounded: Callable[..., Any] = partial(self._within_limit, self._run)

    @property
    def run(self) -> Callable[..., Any]:
        """Its main function, which keeps the limit of time that holds now.

        It raises any exception when the code fails.
        """
        return self._run_bounded if used_limits().time else self._run

    def give_room(self) -> None:
        """Let the main function run again with a big stack where named maps go too deep."""
        self._run, self._run_bounded = with_room(self._run), with_room(self._run_bounded)

    def _within_limit(self, run: Callable[..., Any], *given: Any) -> Any:
        count = max(len(given[0]), 1) if self.looks_at_batch else 1
        try:
            return within_time(run, used_limits().time * count, *given)
        except TimeLimitError as error:
            raise UnplacedError(str(error)).with_traceback(error.__traceback__) from None


def start(
    identity: str, options: Optimisations = ALL
) -> tuple[Code, str, dict[str, Mapping[int, Site]]]:
    """Return empty code, a name that no other code has, and the table that its sites go into."""
    table: dict[str, Mapping[int, Site]] = {}

    def explain(error: BaseException) -> str:
        return diagnostics.explain(error, table).text

    code = Code(
        {
            "DELETED": DELETED,
            "NOTHING": NOTHING,
            "UNSET": UNSET,
            "UNPARSED": UNPARSED,
            "Timestamp": Timestamp,
            "INT64_MIN": INT64_MIN,
            "INT64_MAX": INT64_MAX,
            "EXACT": EXACT,
            "explain": explain,
            "__builtins__": _BUILTINS,
        },
        options,
    )
    code.identity = identity
    return code, f"<bloblang {next(_numbers)}>", table


# All that generated code may call by name; what a mapping can reach goes no further.
_BUILTINS: dict[str, Any] = {
    "type": type,
    "dict": dict,
    "list": list,
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "len": len,
    "iter": iter,
    "enumerate": enumerate,
    "Exception": Exception,
}


def compile_program(
    program: tree.Program,
    identity: str,
    *,
    document_only: bool = False,
    onto: bool = False,
    beside: bool = False,
    options: Optimisations = ALL,
) -> Compiled:
    """Compile a mapping to `run(B, I, M, X, meta) -> (root, meta)`.

    Args:
        program: the resolved mapping.
        identity: a text that tells this mapping from others, for its counters.
        document_only: compile to `run(doc) -> root` instead.
        onto: start with the message's document as root (`run(…, root)`).
        beside: start with the document of another message as root, and its metadata as `meta`.
        options: which optimisations are made.
    """
    code, name, table = start(identity, options)
    given = DOCUMENT if document_only else FULL
    code.given, code.onto = given, onto
    document = "doc" if document_only else None
    code.named_maps = {key: f"map{i}" for i, key in enumerate(program.maps)}
    order = in_order(program)
    counted = order is None
    for key in program.maps if order is None else order:
        named, function = program.maps[key], code.named_maps[key]
        _emit_map(code, function + "_body" * counted, named, given, document)
        if counted:
            _emit_counted(code, function, key, given)
        else:
            code.copies = 0
            code.reads("root")
            code.made[key] = max(code.copies, 1)
    scope = Scope(document=document)
    code.untouched, code.owned, code.copied = not (onto or beside), set(), False
    parameter = ", root" if onto or beside else ", root=NOTHING"
    end = "return root" if document_only else "return root, meta"
    # A message that is changed itself is seen changed: D is its document as long as L holds.
    begin = ("D = root", "L = root is not NOTHING") if onto else ()
    code.linked = onto
    head = f"run({given}{parameter})"
    emit_function(code, head, program.statements, scope, end, begin)
    compiled = Compiled(code, name, table)
    maps = code.constants.get("MAPS", {})
    maps.update({key: code.constants[made] for key, made in code.named_maps.items()})
    if counted:
        compiled.give_room()
    return compiled


def _emit_counted(code: Code, function: str, name: str, given: str) -> None:
    """Emit a map's function that counts how many are open while its body runs."""
    depth = code.constants.setdefault("depth", Depth())
    assert isinstance(depth, Depth)
    code.lines += [
        f"def {function}(T, {given}):",
        f" depth.enter({name!r})",
        " try:",
        f"  return {function}_body(T, {given})",
        " finally:",
        "  depth.leave()",
    ]


def _emit_map(
    code: Code, function: str, named: tree.NamedMap, given: str, document: str | None
) -> None:
    code.untouched, code.owned, code.copied = True, set(), False
    before = len(code.lines)
    scope = Scope(this="T", document=document, steps=(Failed(0),))
    emit_function(code, f"{function}(T, {given}, root=NOTHING)", named.body, scope, "return root")
    _number_lines(code, before + 1, named.place.line - 1)


def _number_lines(code: Code, begin: int, first: int) -> None:
    """Put the line within the map into the steps of the map's lines, which begin at a line."""
    for number in range(begin, len(code.lines) + 1):
        site = code.sites[number]
        if site.steps and site.steps[-1] == Failed(0):
            steps = (*site.steps[:-1], Failed(site.line - first))
            code.sites[number] = Site(site.line, steps)


def compile_query(node: tree.Node, identity: str, *, document_only: bool = False) -> Compiled:
    """Compile one expression to `run(B, I, M, X, meta) -> value`, or `run(doc) -> value`."""
    code, name, table = start(identity)
    code.given = DOCUMENT if document_only else FULL
    code.scope = Scope(document="doc" if document_only else None)
    code.line = 1
    code.depth = 0
    code.alone = True
    with code.block(f"def run({code.given}):"):
        code.emit(f"return {emit(code, node).code}")
    code.put_beside()
    return Compiled(code, name, table)
