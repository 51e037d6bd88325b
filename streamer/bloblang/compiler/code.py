"""The source being generated: lines, what each stands for, constants, and what is in scope."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from streamer.bloblang import tree
from streamer.bloblang.compiler.options import ALL, Optimisations
from streamer.bloblang.compiler.sites import Site, Step
from streamer.bloblang.errors import BloblangError
from streamer.bloblang.runtime.objects import lacking
from streamer.bloblang.runtime.weighing import weigh

# Python takes 20 loops and `try` in each other within one function, and 100 levels of indentation.
_BLOCKS: Final = {"try:": 1, "except": 2, "for": 1, "while": 1}
_CROWDED: Final = 12
_FETCHED: Final = ("document", "documents", "variables")
_INDENTED: Final = 96

UNKNOWN: Final = object()
_WRITTEN: Final = {type(None): "", bool: "bool", int: "int", float: "float", str: "str"}
_SHORT: Final = 60
HEAVY: Final = 1 << 12
"""A value that may consist of so many copies of another one is looked at before it is used."""
_MOST_COPIES: Final = 1 << 40


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
    def known(self) -> bool:
        """Whether the compiler knows the value itself."""
        return self.literal is not UNKNOWN

    @classmethod
    def of(cls, value: Any) -> Value | None:
        """Return a value that is written out in the source; None when it is not a small one."""
        kind = _WRITTEN.get(type(value))
        if kind is None or (kind == "float" and not math.isfinite(value)):
            return None
        if kind == "str" and len(value) > _SHORT:
            return None
        return cls(repr(value), kind=kind, literal=value)

    def is_true(self) -> str:
        """Return Python for whether the value is the boolean true."""
        if self.kind:
            return self.code if self.kind == "bool" else "False"
        return f"({self.code}) is True"


@dataclass(slots=True)
class Scope:
    """What an expression can see, at this place in the code.

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

    def inside(self, **changes: Any) -> Scope:
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
        assigned: variables that certainly have a value here.
        holding: variables that may hold a list with what is deleted in it.
        doubtful: generated names whose values may be `DELETED` or `NOTHING`.
        owned: paths of root that certainly hold an object that nothing else refers to; `()` is
            root itself. They are written in place.
        copied: whether root, if it is an object, is one that nothing else refers to.
        untouched: whether root certainly has no value yet.
        blocks: how many loops and `try` stand in each other here, within one Python function.
        identity: a text that tells this mapping from others.
        onto: whether the mapping changes the message itself.
        alone: whether this is an expression without a mapping, as in an interpolated string.
        linked: whether this is a place where `this` is that message, changes and all.
        given: the parameters that every function of the mapping gets and hands on.
        options: which optimisations are made.
        beside: lines of functions that come behind this one, and what they stand for.
        queries: how many functions were emitted for queries.
        comprehensions: how many comprehensions were emitted.
        copies: of how many copies of what the statement reads its value may consist, at most.
        held: likewise for root and its fields as `root` and `root.a`, for variables as `$a`, and
            for metadata as `@`; what is not in it has no copies.
        made: likewise for what named maps make of their argument.
    """

    def __init__(self, constants: dict[str, Any], options: Optimisations = ALL) -> None:
        self.options = options
        self.lines: list[str] = []
        self.sites: dict[int, Site] = {}
        self.constants = constants
        self.scope = Scope()
        self.line = 0
        self.named_maps: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        self.assigned: set[str] = set()
        self.holding: set[str] = set()
        self.doubtful: set[str] = set()
        self.owned: set[tuple[str, ...]] = set()
        self.copied = False
        self.untouched = False
        self.depth = 1
        self.blocks = 0
        self.root = "root"
        self.meta = "meta"
        self.identity = ""
        self.given = ""
        self.onto = False
        self.alone = False
        self.linked = False
        self.beside: list[tuple[str, Site]] = []
        self.queries = 0
        self.comprehensions = 0
        self.copies = 0
        self.held: dict[str, int] = {}
        self.made: dict[str, int] = {}
        self._names = 0
        self._shared: dict[int, str] = {}

    def name(self, hint: str = "t") -> str:
        """Return a fresh variable name."""
        self._names += 1
        return f"{hint}{self._names}"

    def constant(self, value: Any, hint: str = "k") -> str:
        """Return the name under which generated code sees an object."""
        name = self._shared.get(id(value))
        if name is None:
            name = f"{hint}_{len(self.constants)}"
            self.constants[name] = value
            self._shared[id(value)] = name
        return name

    def emit(self, text: str, *steps: Step) -> None:
        """Add a line; steps say what an error raised there means, before those of the scope."""
        self.lines.append(" " * self.depth + text)
        self.sites[len(self.lines)] = Site(self.line, (*steps, *self.scope.steps))

    def reads(self, name: str = "") -> None:
        """Count that something is read: root or a field of it, a variable (`$a`), or all else."""
        held = self.held
        if name == "root":
            self.copies += sum(held[key] for key in held if key.startswith("root")) or 1
        else:
            self.copies += held.get(name) or held.get("root" if name[:5] == "root." else "", 1)

    @contextmanager
    def multiplied(self) -> Iterator[None]:
        """Count what is read meanwhile for every copy of what was read before."""
        before, self.copies = self.copies, 0
        yield
        self.copies = min(max(before, 1) * max(self.copies, 1), _MOST_COPIES)

    def weighed(self, name: str, *steps: Step) -> None:
        """Look at the size of a variable's value if it may consist of very many copies."""
        if self.copies >= HEAVY:
            self.emit(f"{self.constant(weigh, 'weigh')}({name})", *steps)
            self.copies = HEAVY // 2

    def put_beside(self) -> None:
        """Add the functions that come behind the one that was emitted."""
        for line, site in self.beside:
            self.lines.append(line)
            self.sites[len(self.lines)] = site
        self.beside = []

    def store(self, text: str, *steps: Step, special: bool = False, kind: str = "") -> Value:
        """Put the result of an expression into a fresh variable."""
        name = self.name()
        self.emit(f"{name} = {text}", *steps)
        if special:
            self.doubtful.add(name)
        return Value(name, special=special, kind=kind)

    def settle(self, value: Value) -> Value:
        """Return a value that may be used more than once."""
        if value.atom:
            return value
        return self.store(value.code, special=value.special, kind=value.kind)

    @contextmanager
    def block(self, head: str, *steps: Step) -> Iterator[None]:
        """Open a Python block; what is fetched or assigned inside may not be seen after it."""
        self.emit(head, *steps)
        if self.depth > _INDENTED:
            raise BloblangError(self.line, 1, tree.TOO_DEEP)
        before, assigned = self.scope, set(self.assigned)
        owned, copied, untouched = set(self.owned), self.copied, self.untouched
        blocks = self.blocks
        word = head.partition(" ")[0]
        self.blocks = 0 if word == "def" else blocks + _BLOCKS.get(word, 0)
        self.scope = before.inside(loaded=dict(before.loaded))
        self.depth += 1
        yield
        self.depth -= 1
        self.blocks = blocks
        self.scope = before
        self.assigned &= assigned
        self.owned &= owned
        self.copied &= copied
        self.untouched &= untouched

    def crowded(self) -> bool:
        """Whether blocks stand nearly as deep in each other as Python takes in one function."""
        return self.blocks >= _CROWDED

    @contextmanager
    def within(self, **changes: Any) -> Iterator[None]:
        """Change what is visible for a while."""
        before = self.scope
        self.scope = before.inside(**changes)
        yield
        # What was fetched meanwhile stays at hand: this is no block of Python's.
        fetched = {name: getattr(self.scope, name) for name in _FETCHED}
        self.scope = before.inside(**fetched)

    @contextmanager
    def steps(self, *steps: Step) -> Iterator[None]:
        """Apply steps to errors of everything emitted for a while."""
        with self.within(steps=(*steps, *self.scope.steps)):
            yield

    def lacking(self, words: str) -> Value:
        """Return what fails because an expression without a mapping has no such thing."""
        return self.store(f"{self.constant(lacking, 'lacking')}({words!r})")

    def changing(self, fetch: str, *steps: Step) -> str:
        """Return the variable with the document of the message that is being changed.

        Args:
            fetch: Python that says why there is none.
            steps: what an error raised there means.
        """
        # What is read goes anywhere, so what is written next may not be changed in place.
        self.owned, self.copied = set(), False
        if self.scope.document is None:
            self.emit(f"if D is NOTHING: {fetch}", *steps)
            self.scope.document = "D"
        return "D"

    def original_meta(self) -> str:
        """Return Python for the metadata of the message that functions look at.

        A mapping onto a message changes that message itself, so its own changes are seen there.
        """
        if self.onto and self.scope.message == "M":
            return self.meta
        return f"{self.scope.message}.meta"

    def source(self) -> str:
        """Return the generated source."""
        return "\n".join(self.lines) + "\n"
