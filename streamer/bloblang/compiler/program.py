"""A program compiled: generated source turned into Python functions that share constants."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from streamer.bloblang import diagnostics, tree
from streamer.bloblang.compiler.code import Code, Scope
from streamer.bloblang.compiler.error_sites import FailedAssignment, Site
from streamer.bloblang.compiler.expressions import emit
from streamer.bloblang.compiler.options import ALL_OPTIMISATIONS, Optimisations
from streamer.bloblang.compiler.recursion import MapDepth, sort_maps, with_big_stack
from streamer.bloblang.compiler.statements import emit_function
from streamer.bloblang.errors import BloblangError, UnplacedError
from streamer.bloblang.golib.operations import EXACT
from streamer.bloblang.runtime.checks import UNSET
from streamer.core.limits import current_limits
from streamer.core.message import UNPARSED
from streamer.core.time_limit import TimeLimitError, run_within_time
from streamer.core.timestamps import Timestamp
from streamer.core.value import DELETED, INT64_MAX, INT64_MIN, NOTHING

_code_numbers = itertools.count(1)

# What the functions of one program are given: everything, or only the document.
FULL_PARAMETERS = "B, I, M, X, meta"
DOCUMENT_PARAMETERS = "doc"


class CompiledCode:
    """One generated module.

    Attributes:
        source: its source.
        constants: what its names stand for.
        sites: what its lines stand for, by 1-based line number.
        table: what its lines stand for.
        reads_batch: whether it looks at other messages of the batch, which is its first argument
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
        self.reads_batch = False
        self._run: Callable[..., Any] = code.constants["run"]
        self._run_bounded: Callable[..., Any] = partial(self._within_limit, self._run)

    @property
    def run(self) -> Callable[..., Any]:
        """Its main function, which keeps the limit of time that holds now.

        It raises any exception when the code fails.
        """
        return self._run_bounded if current_limits().time else self._run

    def use_big_stack(self) -> None:
        """Let the main function run again with a big stack where named maps go too deep."""
        self._run, self._run_bounded = with_big_stack(self._run), with_big_stack(self._run_bounded)

    def _within_limit(self, run: Callable[..., Any], *given: Any) -> Any:
        count = max(len(given[0]), 1) if self.reads_batch else 1
        try:
            return run_within_time(run, current_limits().time * count, *given)
        except TimeLimitError as error:
            raise UnplacedError(str(error)).with_traceback(error.__traceback__) from None


def start_code(
    identity: str, options: Optimisations = ALL_OPTIMISATIONS
) -> tuple[Code, str, dict[str, Mapping[int, Site]]]:
    """Return empty code, a name that no other code has, and the table that its sites go into."""
    table: dict[str, Mapping[int, Site]] = {}

    def explain(error: BaseException) -> str:
        return diagnostics.explain_error(error, table).text

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
    return code, f"<bloblang {next(_code_numbers)}>", table


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
    mutates: bool = False,
    onto_target: bool = False,
    options: Optimisations = ALL_OPTIMISATIONS,
) -> CompiledCode:
    """Compile a mapping to `run(B, I, M, X, meta) -> (root, meta)`.

    Args:
        program: the resolved mapping.
        identity: a text that tells this mapping from others, for its counters.
        document_only: compile to `run(doc) -> root` instead.
        mutates: start with the message's document as root (`run(…, root)`).
        onto_target: start with the document of another message as root, and its metadata as `meta`.
        options: which optimisations are made.
    """
    code, name, table = start_code(identity, options)
    parameters = DOCUMENT_PARAMETERS if document_only else FULL_PARAMETERS
    code.parameters, code.mutates = parameters, mutates
    document = "doc" if document_only else None
    code.named_maps = {key: f"map{i}" for i, key in enumerate(program.maps)}
    order = sort_maps(program)
    counted = order is None
    for key in program.maps if order is None else order:
        named, function = program.maps[key], code.named_maps[key]
        _emit_map(code, function + "_body" * counted, named, parameters, document)
        if counted:
            _emit_depth_counter(code, function, key, parameters)
        else:
            code.copies = 0
            code.count_read("root")
            code.map_copy_counts[key] = max(code.copies, 1)
    scope = Scope(document=document)
    code.is_root_unset, code.owned_paths, code.is_root_copied = (
        not (mutates or onto_target),
        set(),
        False,
    )
    parameter = ", root" if mutates or onto_target else ", root=NOTHING"
    end = "return root" if document_only else "return root, meta"
    # A message that is changed itself is seen changed: D is its document as long as L holds.
    begin = ("D = root", "L = root is not NOTHING") if mutates else ()
    code.this_follows_root = mutates
    head = f"run({parameters}{parameter})"
    emit_function(code, head, program.statements, scope, end, begin)
    compiled = CompiledCode(code, name, table)
    maps = code.constants.get("MAPS", {})
    maps.update(
        {key: code.constants[function_name] for key, function_name in code.named_maps.items()}
    )
    if counted:
        compiled.use_big_stack()
    return compiled


def _emit_depth_counter(code: Code, function: str, name: str, parameters: str) -> None:
    """Emit a map's function that counts how many are open while its body runs."""
    depth = code.constants.setdefault("depth", MapDepth())
    assert isinstance(depth, MapDepth)
    code.lines += [
        f"def {function}(T, {parameters}):",
        f" depth.enter({name!r})",
        " try:",
        f"  return {function}_body(T, {parameters})",
        " finally:",
        "  depth.leave()",
    ]


def _emit_map(
    code: Code, function: str, named: tree.NamedMap, parameters: str, document: str | None
) -> None:
    code.is_root_unset, code.owned_paths, code.is_root_copied = True, set(), False
    before = len(code.lines)
    scope = Scope(this="T", document=document, steps=(FailedAssignment(0),))
    emit_function(
        code, f"{function}(T, {parameters}, root=NOTHING)", named.body, scope, "return root"
    )
    _number_lines(code, before + 1, named.place.line - 1)


def _number_lines(code: Code, begin: int, first: int) -> None:
    """Put the line within the map into the steps of the map's lines, which begin at a line."""
    for number in range(begin, len(code.lines) + 1):
        site = code.sites[number]
        if site.steps and site.steps[-1] == FailedAssignment(0):
            steps = (*site.steps[:-1], FailedAssignment(site.line - first))
            code.sites[number] = Site(site.line, steps)


def compile_query(node: tree.Node, identity: str, *, document_only: bool = False) -> CompiledCode:
    """Compile one expression to `run(B, I, M, X, meta) -> value`, or `run(doc) -> value`."""
    code, name, table = start_code(identity)
    code.parameters = DOCUMENT_PARAMETERS if document_only else FULL_PARAMETERS
    code.scope = Scope(document="doc" if document_only else None)
    code.line = 1
    code.depth = 0
    code.is_standalone = True
    with code.block(f"def run({code.parameters}):"):
        code.emit(f"return {emit(code, node).code}")
    code.emit_hoisted()
    return CompiledCode(code, name, table)
