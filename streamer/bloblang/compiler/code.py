"""The source being generated: lines, what each stands for, constants, and what is in scope."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from streamer.bloblang import tree
from streamer.bloblang.compiler.error_sites import Site, Step
from streamer.bloblang.compiler.options import ALL_OPTIMISATIONS, Optimisations
from streamer.bloblang.errors import BloblangError
from streamer.bloblang.runtime.checks import raise_unavailable
from streamer.bloblang.runtime.size_check import check_json_size

# Python takes 20 loops and `try` in each other within one function, and 100 levels of indentation.
_BLOCK_COSTS: Final = {"try:": 1, "except": 2, "for": 1, "while": 1}
_MAX_BLOCKS: Final = 12
_CACHED_SCOPE_FIELDS: Final = ("document", "documents", "variables")
_MAX_INDENT: Final = 96

UNKNOWN: Final = object()
_LITERAL_KINDS: Final = {type(None): "", bool: "bool", int: "int", float: "float", str: "str"}
_MAX_LITERAL_CHARS: Final = 60
SIZE_CHECK_COPIES: Final = 1 << 12
"""A value that may consist of so many copies of another one is looked at before it is used."""
_MAX_COPIES: Final = 1 << 40


@dataclass(slots=True)
class Value:
    """An expression of generated code.

    Attributes:
        code: Python that gives the value; it cannot fail and has no effects.
        atom: whether it is a name or constant, which may be used more than once.
        special: whether it may be `DELETED` or `NOTHING`.
        kind: the value's type when it is known (`bool`, `str`, `dict`, …; `number` for an int or
            a plain float).
        literal: the value itself when the compiler knows it, else `UNKNOWN`.
    """

    code: str
    atom: bool = True
    special: bool = False
    kind: str = ""
    literal: Any = UNKNOWN

    @property
    def is_known(self) -> bool:
        """Whether the compiler knows the value itself."""
        return self.literal is not UNKNOWN

    @classmethod
    def from_literal(cls, value: Any) -> Value | None:
        """Return a value that is written out in the source; None when it is not a small one."""
        kind = _LITERAL_KINDS.get(type(value))
        if kind is None or (kind == "float" and not math.isfinite(value)):
            return None
        if kind == "str" and len(value) > _MAX_LITERAL_CHARS:
            return None
        return cls(repr(value), kind=kind, literal=value)

    def truth_test(self) -> str:
        """Return Python for whether the value is the boolean true."""
        if self.kind:
            return self.code if self.kind == "bool" else "False"
        return f"({self.code}) is True"


@dataclass(slots=True)
class Scope:
    """The names and values that an expression can see, at this place in the code.

    Attributes:
        this: the variable that `this` means; None for the message's document.
        previous: the `this` around it, which a lambda goes back to.
        named: named contexts and their variables.
        message: the variable of the message that functions look at.
        index: the variable of its place in the batch.
        document: the variable that holds the message's document, once it was fetched.
        documents: the variable that holds the documents of the whole batch, likewise.
        variables: the function that gives the values of all of the mapping's variables by name.
        loaded: variables that hold what is at a key of what another one holds; key None is for its
            `get`.
        steps: what to do with an error's text, from the inside out.
    """

    this: str | None = None
    previous: str | None = None
    named: dict[str, str] = field(default_factory=dict)
    message: str = "M"
    index: str = "I"
    document: str | None = None
    documents: str | None = None
    variables: str | None = None
    loaded: dict[tuple[str, str | None], str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()

    def derive(self, **changes: Any) -> Scope:
        """Return a scope that differs in some things."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return Scope(**{**fields, **changes})


class Code:
    """Generated source.

    Attributes:
        lines: the source so far.
        sites: what each generated line stands for, by 1-based line number.
        constants: objects that the source refers to by name.
        scope: what is visible at this place.
        line: the mapping's line of the statement being compiled.
        named_maps: the functions of the mapping's named maps, by name.
        variables: the generated names of the mapping's variables.
        assigned_variables: variables that certainly have a value here.
        variables_with_deleted: variables that may hold a list with what is deleted in it.
        special_names: generated names whose values may be `DELETED` or `NOTHING`.
        owned_paths: paths of root that certainly hold an object that nothing else refers to; `()`
            is root itself. They are written in place.
        is_root_is_root_copied: whether root, if it is an object, is one that nothing else refers
            to.
        is_root_unset: whether root certainly has no value yet.
        blocks: how many loops and `try` stand in each other here, within one Python function.
        identity: a text that tells this mapping from others.
        mutates: whether the mapping changes the message itself.
        is_standis_standalone: whether this is an expression without a mapping, as in an
            interpolated string.
        this_follows_root: whether this is a place where `this` is that message, changes and all.
        parameters: the parameters that every function of the mapping gets and hands on.
        options: which optimisations are made.
        hoisted_lines: lines of functions that come behind this one, and what they stand for.
        queries: how many functions were emitted for queries.
        comprehensions: how many comprehensions were emitted.
        copies: of how many copies of what the statement reads its value may consist, at most.
        copy_counts: likewise for root and its fields as `root` and `root.a`, for variables as `$a`,
            and for metadata as `@`; what is not in it has no copies.
        map_copy_counts: likewise for what named maps make of their argument.
    """

    def __init__(
        self, constants: dict[str, Any], options: Optimisations = ALL_OPTIMISATIONS
    ) -> None:
        self.options = options
        self.lines: list[str] = []
        self.sites: dict[int, Site] = {}
        self.constants = constants
        self.scope = Scope()
        self.line = 0
        self.named_maps: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        self.assigned_variables: set[str] = set()
        self.variables_with_deleted: set[str] = set()
        self.special_names: set[str] = set()
        self.owned_paths: set[tuple[str, ...]] = set()
        self.is_root_copied = False
        self.is_root_unset = False
        self.depth = 1
        self.blocks = 0
        self.root = "root"
        self.meta = "meta"
        self.identity = ""
        self.parameters = ""
        self.mutates = False
        self.is_standalone = False
        self.this_follows_root = False
        self.hoisted_lines: list[tuple[str, Site]] = []
        self.queries = 0
        self.comprehensions = 0
        self.copies = 0
        self.copy_counts: dict[str, int] = {}
        self.map_copy_counts: dict[str, int] = {}
        self._name_count = 0
        self._constant_names: dict[int, str] = {}

    def fresh_name(self, hint: str = "t") -> str:
        """Return a fresh variable name."""
        self._name_count += 1
        return f"{hint}{self._name_count}"

    def add_constant(self, value: Any, hint: str = "k") -> str:
        """Return the name under which generated code sees an object."""
        name = self._constant_names.get(id(value))
        if name is None:
            name = f"{hint}_{len(self.constants)}"
            self.constants[name] = value
            self._constant_names[id(value)] = name
        return name

    def emit(self, text: str, *steps: Step) -> None:
        """Add a line; steps say what an error raised there means, before those of the scope."""
        self.lines.append(" " * self.depth + text)
        self.sites[len(self.lines)] = Site(self.line, (*steps, *self.scope.steps))

    def count_read(self, name: str = "") -> None:
        """Count that something is read: root or a field of it, a variable (`$a`), or all else."""
        counts = self.copy_counts
        if name == "root":
            self.copies += sum(counts[key] for key in counts if key.startswith("root")) or 1
        else:
            self.copies += counts.get(name) or counts.get("root" if name[:5] == "root." else "", 1)

    @contextmanager
    def multiply_copies(self) -> Iterator[None]:
        """Count what is read meanwhile for every copy of what was read before."""
        before, self.copies = self.copies, 0
        yield
        self.copies = min(max(before, 1) * max(self.copies, 1), _MAX_COPIES)

    def emit_size_check(self, name: str, *steps: Step) -> None:
        """Check the size of a variable's value if it may consist of very many copies."""
        if self.copies >= SIZE_CHECK_COPIES:
            self.emit(f"{self.add_constant(check_json_size, 'check_json_size')}({name})", *steps)
            self.copies = SIZE_CHECK_COPIES // 2

    def emit_hoisted(self) -> None:
        """Add the functions that come behind the one that was emitted."""
        for line, site in self.hoisted_lines:
            self.lines.append(line)
            self.sites[len(self.lines)] = site
        self.hoisted_lines = []

    def store(self, text: str, *steps: Step, special: bool = False, kind: str = "") -> Value:
        """Put the result of an expression into a fresh variable."""
        name = self.fresh_name()
        self.emit(f"{name} = {text}", *steps)
        if special:
            self.special_names.add(name)
        return Value(name, special=special, kind=kind)

    def ensure_atom(self, value: Value) -> Value:
        """Return a value that may be used more than once."""
        if value.atom:
            return value
        return self.store(value.code, special=value.special, kind=value.kind)

    @contextmanager
    def block(self, head: str, *steps: Step) -> Iterator[None]:
        """Open a Python block; what is fetched or assigned inside may not be seen after it."""
        self.emit(head, *steps)
        if self.depth > _MAX_INDENT:
            raise BloblangError(self.line, 1, tree.TOO_DEEP)
        before, assigned = self.scope, set(self.assigned_variables)
        owned, copied, untouched = set(self.owned_paths), self.is_root_copied, self.is_root_unset
        blocks = self.blocks
        word = head.partition(" ")[0]
        self.blocks = 0 if word == "def" else blocks + _BLOCK_COSTS.get(word, 0)
        self.scope = before.derive(loaded=dict(before.loaded))
        self.depth += 1
        yield
        self.depth -= 1
        self.blocks = blocks
        self.scope = before
        self.assigned_variables &= assigned
        self.owned_paths &= owned
        self.is_root_copied &= copied
        self.is_root_unset &= untouched

    def is_near_block_limit(self) -> bool:
        """Whether blocks stand nearly as deep in each other as Python takes in one function."""
        return self.blocks >= _MAX_BLOCKS

    @contextmanager
    def override_scope(self, **changes: Any) -> Iterator[None]:
        """Change what is visible for a while."""
        before = self.scope
        self.scope = before.derive(**changes)
        yield
        # What was fetched meanwhile stays at hand: this is no block of Python's.
        fetched = {name: getattr(self.scope, name) for name in _CACHED_SCOPE_FIELDS}
        self.scope = before.derive(**fetched)

    @contextmanager
    def with_steps(self, *steps: Step) -> Iterator[None]:
        """Apply steps to errors of everything emitted for a while."""
        with self.override_scope(steps=(*steps, *self.scope.steps)):
            yield

    def emit_failure(self, words: str) -> Value:
        """Return what fails because an expression without a mapping has no such thing."""
        return self.store(f"{self.add_constant(raise_unavailable, 'raise_unavailable')}({words!r})")

    def emit_mutated_document(self, fetch: str, *steps: Step) -> str:
        """Return the variable with the document of the message that is being changed.

        Args:
            fetch: Python that says why there is none.
            steps: what an error raised there means.
        """
        # What is read goes anywhere, so what is written next may not be changed in place.
        self.owned_paths, self.is_root_copied = set(), False
        if self.scope.document is None:
            self.emit(f"if D is NOTHING: {fetch}", *steps)
            self.scope.document = "D"
        return "D"

    def original_meta(self) -> str:
        """Return Python for the metadata of the message that functions look at.

        A mapping onto a message changes that message itself, so its own changes are seen there.
        """
        if self.mutates and self.scope.message == "M":
            return self.meta
        return f"{self.scope.message}.meta"

    def source(self) -> str:
        """Return the generated source."""
        return "\n".join(self.lines) + "\n"
