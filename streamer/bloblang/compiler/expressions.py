"""Expressions other than calls and branches: paths, literals, variables, operators, lambdas."""

from __future__ import annotations

from streamer.bloblang import tree
from streamer.bloblang.annotations import describe_expression
from streamer.bloblang.compiler import arithmetic, branches, calls
from streamer.bloblang.compiler.code import Code, Value
from streamer.bloblang.compiler.error_sites import Context, Prefix, PrefixKey, ValueOrigin
from streamer.bloblang.golib import operations
from streamer.bloblang.runtime import checks, document, paths
from streamer.bloblang.runtime.paths import join_path
from streamer.core.value import DELETED, NOTHING

# Compiling takes time in proportion to the mapping's length: what is noted stays small.
_MAX_LOADED_KEYS = 64
_LITERAL_KINDS = {str: "str", bool: "bool", int: "int", float: "float", dict: "dict", list: "list"}


def emit(code: Code, node: tree.Node) -> Value:
    """Emit an expression and return where its value is."""
    if code.is_near_block_limit():
        return _emit_as_function(code, node)
    spine: list[tree.Node] = []
    while (below := _left_operand(node)) is not None:
        spine.append(node)
        node = below
    value = _emit_leaf(code, node)
    for upper in reversed(spine):
        value = _emit_upper(code, upper, value)
    return value


def _emit_as_function(code: Code, node: tree.Node) -> Value:
    """Emit an expression as a function of its own, where Python starts to count blocks anew."""
    function = code.fresh_name("g")
    with code.block(f"def {function}():"):
        code.scope = code.scope.derive(steps=())
        value = emit(code, node)
        code.emit(f"return {value.code}")
    return code.store(f"{function}()", special=value.special, kind=value.kind)


def _left_operand(node: tree.Node) -> tree.Node | None:
    """Return what must be computed first; a method may want to do that by itself."""
    taken = isinstance(node, tree.Method) and calls.takes_target(node)
    return None if taken else tree.left_operand(node)


def _emit_leaf(code: Code, node: tree.Node) -> Value:
    match node:
        case tree.Literal():
            return emit_literal(code, node)
        case tree.Path(base=base, path=path):
            return _emit_path(code, base, path)
        case tree.Method():
            return calls.emit_method_with_target(code, node, emit)
        case tree.Call():
            return calls.emit_call(code, node, emit)
        case tree.Variable(name=name):
            return _emit_variable(code, name)
        case tree.Metadata(key=key):
            return _emit_metadata(code, key)
        case tree.Not(operand=operand):
            return _emit_not(code, operand)
        case tree.Chain():
            return branches.emit_chain(code, node, emit)
        case tree.If():
            return branches.emit_if(code, node, emit)
        case tree.Match():
            return branches.emit_match(code, node, emit)
        case tree.Lambda(name=name, body=body):
            return emit_lambda(code, name, body)
        case tree.Array(items=items):
            return _emit_array(code, items)
        case tree.Object(pairs=pairs):
            return _emit_object(code, pairs)
        case tree.AggregateValue(number=number, special=special):
            return code.store(f"B.aggregate_value({number})", special=special)
    raise AssertionError(node)


def _emit_upper(code: Code, node: tree.Node, left: Value) -> Value:
    match node:
        case tree.Get(path=path):
            return emit_lookup(code, code.ensure_atom(left).code, path)
        case tree.Binary():
            return _emit_binary(code, node, left)
        case tree.MapInto(query=query):
            return emit_into(code, code.ensure_atom(left), query)
        case tree.Method():
            return calls.emit_method(code, node, left, emit)
    raise AssertionError(node)


def emit_literal(code: Code, node: tree.Literal) -> Value:
    """Return a literal: small ones are written out, others are constants."""
    value = node.value
    if value is DELETED or value is NOTHING:
        return Value("DELETED" if value is DELETED else "NOTHING", special=True)
    written = Value.from_literal(value)
    return written or Value(
        code.add_constant(value), kind=_LITERAL_KINDS.get(type(value), ""), literal=value
    )


def emit_document(code: Code, path: tuple[str, ...] = ()) -> str:
    """Return the variable with the message's own document, fetched if need be."""
    if code.this_follows_root:
        fetch = code.add_constant(document.get_document, "document")
        return code.emit_mutated_document(f"{fetch}(M)", Context(join_path(path)))
    if code.scope.document is None:
        name = code.fresh_name("d")
        fetch = code.add_constant(document.get_document, "document")
        if code.options.inline:
            code.emit(f"{name} = M._doc")
            text = f"if {name} is UNPARSED: {name} = {fetch}(M)"
        else:
            text = f"{name} = {fetch}(M)"
        code.emit(text, Context(join_path(path)))
        code.scope.document = name
    return code.scope.document


def emit_lookup(code: Code, name: str, path: tuple[str, ...]) -> Value:
    """Return what a path leads to from a variable; null when nothing is there."""
    if "*" in path:
        search = code.add_constant(paths.find_or_null, "search")
        return Value(f"{search}({name}, {code.add_constant(path)})", atom=False)
    special = name in code.special_names  # then so is what lies in it
    if not name.isidentifier():  # a number, which no dot may follow
        name = code.store(name).code
    if not code.options.inline:
        for part in path:
            name = code.store(
                f"{code.add_constant(paths.find_step, 'step')}({name}, {part!r})"
            ).code
        return Value(name, special=special)
    if name in (code.scope.document, "T") and not code.this_follows_root:
        return _emit_cached_lookup(code, name, path)
    for part in path[:-1]:
        name = code.store(_step_code(code, name, part)).code
    text = f"({_step_code(code, name, path[-1])})" if path else name
    return Value(text, atom=not path, special=special)


def _step_code(code: Code, name: str, part: str) -> str:
    step = code.add_constant(paths.find_step, "step")
    return f"{name}.get({part!r}) if type({name}) is dict else {step}({name}, {part!r})"


def _emit_cached_lookup(code: Code, name: str, path: tuple[str, ...]) -> Value:
    """Walk what stays as it is while the mapping runs, so nothing is looked up twice."""
    loaded = code.scope.loaded
    for at, part in enumerate(path):
        known = loaded.get((name, part))
        if known is None:
            text = _step_code(code, name, part) if at else f"{_emit_getter(code, name)}({part!r})"
            known = code.store(text).code
            if len(loaded) < _MAX_LOADED_KEYS:
                loaded[name, part] = known
        name = known
    return Value(name)


def _emit_getter(code: Code, name: str) -> str:
    """Return a variable with a function that looks keys up in what another variable holds."""
    loaded = code.scope.loaded
    getter = loaded.get((name, None))
    if getter is None:
        getter = loaded[name, None] = code.fresh_name("get")
        other = code.add_constant(paths.make_getter, "getter")
        code.emit(f"{getter} = {name}.get if type({name}) is dict else {other}({name})")
    return getter


def _emit_path(code: Code, base: str, path: tuple[str, ...]) -> Value:
    scope = code.scope
    code.count_read(f"root.{path[0]}" if base == "root" and path else base)
    if base == "this":
        name = scope.this if scope.this is not None else emit_document(code, path)
        return emit_lookup(code, name, path)
    if base != "root":
        return emit_lookup(code, scope.named[base], path)
    if code.is_standalone:
        return code.emit_failure("unable to reference `root` from this context")
    # What is read from root may go anywhere, so it may not be changed in place any more.
    code.owned_paths = {known for known in code.owned_paths if known[: len(path)] != path}
    code.is_root_copied = code.is_root_copied and bool(path)
    if path:
        return emit_lookup(code, code.root, path)
    return code.store(code.root, special=True)


def _emit_variable(code: Code, name: str) -> Value:
    variable = code.variables.get(name)
    code.count_read(f"${name}")
    if code.is_standalone:
        return code.emit_failure("variables were undefined")
    if variable is None:
        undefined = code.add_constant(checks.raise_undefined, "undefined")
        return code.store(f"{undefined}({name!r})")
    if name not in code.assigned_variables:
        undefined = code.add_constant(checks.raise_undefined, "undefined")
        code.emit(f"if {variable} is UNSET: {undefined}({name!r})")
    return Value(variable, special=name in code.variables_with_deleted)


def _emit_metadata(code: Code, key: str) -> Value:
    code.count_read("@")
    if key:
        return Value(f"{code.meta}.get({key!r})", atom=False)
    return Value(f"dict({code.meta})", atom=False, kind="dict")


def _emit_not(code: Code, operand: tree.Node) -> Value:
    value = code.ensure_atom(emit(code, operand))
    if value.kind == "bool":
        return Value(f"(not {value.code})", atom=False, kind="bool")
    negate = code.add_constant(checks.negate, "negate")
    text = f"not {value.code} if type({value.code}) is bool else {negate}({value.code})"
    return code.store(text, ValueOrigin(describe_expression(operand)), kind="bool")


def _emit_binary(code: Code, node: tree.Binary, left: Value) -> Value:
    if not isinstance(node.right, tree.Literal | tree.Path):
        left = code.ensure_atom(left)  # evaluated before the right side, whatever that does
    right = emit(code, node.right)
    return arithmetic.emit_binary(code, node, code.ensure_atom(left), code.ensure_atom(right))


def emit_into(code: Code, target: Value, query: tree.Node) -> Value:
    """Emit a query with `this` set to a value."""
    if not target.code.isidentifier() or target.code == "None":
        target = code.store(target.code, special=target.special, kind=target.kind)
    with code.multiply_copies(), code.override_scope(this=target.code, previous=code.scope.this):
        return code.ensure_atom(emit(code, query))


def emit_lambda(code: Code, name: str, body: tree.Node) -> Value:
    """Emit a lambda's body: its context gets a name, and `this` is what it was before."""
    scope = code.scope
    if scope.this is not None:
        this = scope.this
    else:
        with code.with_steps(Prefix(f"failed to capture context {name}: ")):
            this = emit_document(code)
    named = scope.named if name == "_" else {**scope.named, name: this}
    with code.override_scope(this=scope.previous, previous=None, named=named):
        return emit(code, body)


def _emit_array(code: Code, items: list[tree.Node]) -> Value:
    values = [_emit_item(code, item) for item in items]
    text = f"[{', '.join(value.code for value in values)}]"
    if any(value.special for value in values):
        text = f"[v for v in {text} if v is not DELETED and v is not NOTHING]"
    return Value(text, atom=False, kind="list")


def _emit_item(code: Code, node: tree.Node) -> Value:
    """Emit an item whose value is read once, but after the items behind it were evaluated."""
    return code.ensure_atom(emit(code, node))


def _emit_object(code: Code, pairs: list[tuple[tree.Node, tree.Node]]) -> Value:
    entries: list[tuple[str, Value]] = []
    for key, node in pairs:
        if isinstance(key, tree.Literal):
            name = repr(key.value)
            step: Prefix | PrefixKey = Prefix(f"failed to resolve '{key.value}' value: ")
        else:
            with code.with_steps(Prefix("failed to resolve key: ")):
                key_value = code.ensure_atom(emit(code, key))
            check = code.add_constant(checks.check_key, "key")
            of_document = isinstance(key, tree.Path)
            name = code.store(f"{check}({key_value.code}, {of_document})").code
            step = PrefixKey("failed to resolve '{}' value: ", name)
        with code.with_steps(step):
            entries.append((name, emit(code, node)))
            if not _is_pure(node):
                entries[-1] = (name, code.ensure_atom(entries[-1][1]))
    if any(value.special for _, value in entries):
        # One by one: what gives nothing does not take away what its key had before.
        listed = "".join(f"({name}, {value.code}), " for name, value in entries)
        text = f"{{k: v for k, v in ({listed}) if v is not DELETED and v is not NOTHING}}"
    else:
        text = "{" + ", ".join(f"{name}: {value.code}" for name, value in entries) + "}"
    return Value(text, atom=False, kind="dict")


def _is_pure(node: tree.Node) -> bool:
    """Whether reading a value later makes no difference."""
    return isinstance(node, tree.Literal | tree.Path | tree.Metadata | tree.Variable)


__all__ = ["emit_document", "emit", "emit_into", "emit_lambda", "operations", "emit_lookup"]
