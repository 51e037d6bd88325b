"""Expressions other than calls and branches: paths, literals, variables, operators, lambdas."""

from __future__ import annotations

from streamer.bloblang import tree
from streamer.bloblang.annotations import annotation
from streamer.bloblang.compiler import arithmetic, branches, calls
from streamer.bloblang.compiler.code import Code, Value
from streamer.bloblang.compiler.sites import Context, From, Prefix, PrefixKey
from streamer.bloblang.runtime import document, objects, operations, paths
from streamer.bloblang.runtime.paths import dot_path
from streamer.value import DELETED, NOTHING

# Compiling takes time in proportion to the mapping's length: what is noted stays small.
_MOST_LOADED = 64
_KINDS = {str: "str", bool: "bool", int: "int", float: "float", dict: "dict", list: "list"}


def emit(code: Code, node: tree.Node) -> Value:
    """Emit an expression and return where its value is."""
    if code.crowded():
        return _apart(code, node)
    spine: list[tree.Node] = []
    while (below := _left(node)) is not None:
        spine.append(node)
        node = below
    value = _leaf(code, node)
    for upper in reversed(spine):
        value = _upper(code, upper, value)
    return value


def _apart(code: Code, node: tree.Node) -> Value:
    """Emit an expression as a function of its own, where Python starts to count blocks anew."""
    function = code.name("g")
    with code.block(f"def {function}():"):
        code.scope = code.scope.inside(steps=())
        value = emit(code, node)
        code.emit(f"return {value.code}")
    return code.store(f"{function}()", special=value.special, kind=value.kind)


def _left(node: tree.Node) -> tree.Node | None:
    """Return what must be computed first; a method may want to do that by itself."""
    if isinstance(node, tree.Method):
        return None if calls.takes_target(node) else node.target
    if isinstance(node, tree.Get | tree.MapInto):
        return node.target
    return node.left if isinstance(node, tree.Binary) else None


def _leaf(code: Code, node: tree.Node) -> Value:
    match node:
        case tree.Literal():
            return literal(code, node)
        case tree.Path(base=base, path=path):
            return _path(code, base, path)
        case tree.Method():
            return calls.method_with_target(code, node, emit)
        case tree.Call():
            return calls.function(code, node, emit)
        case tree.Variable(name=name):
            return _variable(code, name)
        case tree.Metadata(key=key):
            return _metadata(code, key)
        case tree.Not(operand=operand):
            return _not(code, operand)
        case tree.Chain():
            return branches.chain(code, node, emit)
        case tree.If():
            return branches.if_expression(code, node, emit)
        case tree.Match():
            return branches.match(code, node, emit)
        case tree.Lambda(name=name, body=body):
            return lambda_body(code, name, body)
        case tree.Array(items=items):
            return _array(code, items)
        case tree.Object(pairs=pairs):
            return _object(code, pairs)
        case tree.Folded(number=number, special=special):
            return code.store(f"B.fold({number})", special=special)
    raise AssertionError(node)


def _upper(code: Code, node: tree.Node, left: Value) -> Value:
    match node:
        case tree.Get(path=path):
            return walk(code, code.settle(left).code, path)
        case tree.Binary():
            return _binary(code, node, left)
        case tree.MapInto(query=query):
            return into(code, code.settle(left), query)
        case tree.Method():
            return calls.method(code, node, left, emit)
    raise AssertionError(node)


def literal(code: Code, node: tree.Literal) -> Value:
    """Return a literal: small ones are written out, others are constants."""
    value = node.value
    if value is DELETED or value is NOTHING:
        return Value("DELETED" if value is DELETED else "NOTHING", special=True)
    written = Value.of(value)
    return written or Value(code.constant(value), kind=_KINDS.get(type(value), ""), literal=value)


def document_of(code: Code, path: tuple[str, ...] = ()) -> str:
    """Return the variable with the message's own document, fetched if need be."""
    if code.linked:
        fetch = code.constant(document.of_message, "document")
        return code.changing(f"{fetch}(M)", Context(dot_path(path)))
    if code.scope.document is None:
        name = code.name("d")
        fetch = code.constant(document.of_message, "document")
        if code.options.inline:
            code.emit(f"{name} = M._doc")
            text = f"if {name} is UNPARSED: {name} = {fetch}(M)"
        else:
            text = f"{name} = {fetch}(M)"
        code.emit(text, Context(dot_path(path)))
        code.scope.document = name
    return code.scope.document


def walk(code: Code, name: str, path: tuple[str, ...]) -> Value:
    """Return what a path leads to from a variable; null when nothing is there."""
    if "*" in path:
        search = code.constant(paths.search, "search")
        return Value(f"{search}({name}, {code.constant(path)})", atom=False)
    special = name in code.doubtful  # then so is what lies in it
    if not name.isidentifier():  # a number, which no dot may follow
        name = code.store(name).code
    if not code.options.inline:
        for part in path:
            name = code.store(f"{code.constant(paths.step, 'step')}({name}, {part!r})").code
        return Value(name, special=special)
    if name in (code.scope.document, "T") and not code.linked:
        return _kept_walk(code, name, path)
    for part in path[:-1]:
        name = code.store(_step(code, name, part)).code
    text = f"({_step(code, name, path[-1])})" if path else name
    return Value(text, atom=not path, special=special)


def _step(code: Code, name: str, part: str) -> str:
    step = code.constant(paths.step, "step")
    return f"{name}.get({part!r}) if type({name}) is dict else {step}({name}, {part!r})"


def _kept_walk(code: Code, name: str, path: tuple[str, ...]) -> Value:
    """Walk what stays as it is while the mapping runs, so nothing is looked up twice."""
    loaded = code.scope.loaded
    for at, part in enumerate(path):
        known = loaded.get((name, part))
        if known is None:
            text = _step(code, name, part) if at else f"{_getter(code, name)}({part!r})"
            known = code.store(text).code
            if len(loaded) < _MOST_LOADED:
                loaded[name, part] = known
        name = known
    return Value(name)


def _getter(code: Code, name: str) -> str:
    """Return a variable with a function that looks keys up in what another variable holds."""
    loaded = code.scope.loaded
    getter = loaded.get((name, None))
    if getter is None:
        getter = loaded[name, None] = code.name("get")
        other = code.constant(paths.getter, "getter")
        code.emit(f"{getter} = {name}.get if type({name}) is dict else {other}({name})")
    return getter


def _path(code: Code, base: str, path: tuple[str, ...]) -> Value:
    scope = code.scope
    code.reads(f"root.{path[0]}" if base == "root" and path else base)
    if base == "this":
        name = scope.this if scope.this is not None else document_of(code, path)
        return walk(code, name, path)
    if base != "root":
        return walk(code, scope.named[base], path)
    if code.alone:
        return code.lacking("unable to reference `root` from this context")
    # What is read from root may go anywhere, so it may not be changed in place any more.
    code.owned = {known for known in code.owned if known[: len(path)] != path}
    code.copied = code.copied and bool(path)
    if path:
        return walk(code, code.root, path)
    return code.store(code.root, special=True)


def _variable(code: Code, name: str) -> Value:
    variable = code.variables.get(name)
    code.reads(f"${name}")
    if code.alone:
        return code.lacking("variables were undefined")
    if variable is None:
        undefined = code.constant(objects.undefined, "undefined")
        return code.store(f"{undefined}({name!r})")
    if name not in code.assigned:
        undefined = code.constant(objects.undefined, "undefined")
        code.emit(f"if {variable} is UNSET: {undefined}({name!r})")
    return Value(variable, special=name in code.holding)


def _metadata(code: Code, key: str) -> Value:
    code.reads("@")
    if key:
        return Value(f"{code.meta}.get({key!r})", atom=False)
    return Value(f"dict({code.meta})", atom=False, kind="dict")


def _not(code: Code, operand: tree.Node) -> Value:
    value = code.settle(emit(code, operand))
    if value.kind == "bool":
        return Value(f"(not {value.code})", atom=False, kind="bool")
    negate = code.constant(objects.negate, "negate")
    text = f"not {value.code} if type({value.code}) is bool else {negate}({value.code})"
    return code.store(text, From(annotation(operand)), kind="bool")


def _binary(code: Code, node: tree.Binary, left: Value) -> Value:
    if not isinstance(node.right, tree.Literal | tree.Path):
        left = code.settle(left)  # evaluated before the right side, whatever that does
    right = emit(code, node.right)
    return arithmetic.binary(code, node, code.settle(left), code.settle(right))


def into(code: Code, target: Value, query: tree.Node) -> Value:
    """Emit a query with `this` set to a value."""
    if not target.code.isidentifier() or target.code == "None":
        target = code.store(target.code, special=target.special, kind=target.kind)
    with code.multiplied(), code.within(this=target.code, previous=code.scope.this):
        return code.settle(emit(code, query))


def lambda_body(code: Code, name: str, body: tree.Node) -> Value:
    """Emit a lambda's body: its context gets a name, and `this` is what it was before."""
    scope = code.scope
    if scope.this is not None:
        this = scope.this
    else:
        with code.steps(Prefix(f"failed to capture context {name}: ")):
            this = document_of(code)
    named = scope.named if name == "_" else {**scope.named, name: this}
    with code.within(this=scope.previous, previous=None, named=named):
        return emit(code, body)


def _array(code: Code, items: list[tree.Node]) -> Value:
    values = [_kept(code, item) for item in items]
    text = f"[{', '.join(value.code for value in values)}]"
    if any(value.special for value in values):
        text = f"[v for v in {text} if v is not DELETED and v is not NOTHING]"
    return Value(text, atom=False, kind="list")


def _kept(code: Code, node: tree.Node) -> Value:
    """Emit an item whose value is read once, but after the items behind it were evaluated."""
    return code.settle(emit(code, node))


def _object(code: Code, pairs: list[tuple[tree.Node, tree.Node]]) -> Value:
    entries: list[tuple[str, Value]] = []
    for key, node in pairs:
        if isinstance(key, tree.Literal):
            name = repr(key.value)
            step: Prefix | PrefixKey = Prefix(f"failed to resolve '{key.value}' value: ")
        else:
            with code.steps(Prefix("failed to resolve key: ")):
                found = code.settle(emit(code, key))
            check = code.constant(objects.key, "key")
            of_document = isinstance(key, tree.Path)
            name = code.store(f"{check}({found.code}, {of_document})").code
            step = PrefixKey("failed to resolve '{}' value: ", name)
        with code.steps(step):
            entries.append((name, emit(code, node)))
            if not _pure(node):
                entries[-1] = (name, code.settle(entries[-1][1]))
    if any(value.special for _, value in entries):
        # One by one: what gives nothing does not take away what its key had before.
        listed = "".join(f"({name}, {value.code}), " for name, value in entries)
        text = f"{{k: v for k, v in ({listed}) if v is not DELETED and v is not NOTHING}}"
    else:
        text = "{" + ", ".join(f"{name}: {value.code}" for name, value in entries) + "}"
    return Value(text, atom=False, kind="dict")


def _pure(node: tree.Node) -> bool:
    """Whether reading a value later makes no difference."""
    return isinstance(node, tree.Literal | tree.Path | tree.Metadata | tree.Variable)


__all__ = ["document_of", "emit", "into", "lambda_body", "operations", "walk"]
