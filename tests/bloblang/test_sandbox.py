"""What the compiler writes holds nothing of the user's but constants, and reaches nothing else."""

import ast
import builtins
import re
import types

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.bloblang import BloblangError, compile_interpolation, compile_mapping
from streamer.bloblang.catalog import FUNCTIONS, METHODS
from streamer.bloblang.compiler import program as compiler
from streamer.bloblang.compiler.options import NO_OPTIMISATIONS
from streamer.bloblang.compiler.program import CompiledCode, compile_program
from streamer.bloblang.functions import environment
from tests.bloblang.generating import mutated
from tests.bloblang.running import run

NODES = {
    *("Module", "FunctionDef", "arguments", "arg", "Return", "Assign", "Expr", "Pass", "Break"),
    *("For", "While", "If", "Try", "ExceptHandler", "IfExp", "NamedExpr", "Compare", "BoolOp"),
    *("BinOp", "UnaryOp", "Call", "Attribute", "Subscript", "Slice", "Name", "Constant", "List"),
    *("Tuple", "Dict", "Set", "ListComp", "DictComp", "GeneratorExp", "comprehension", "Load"),
    *("Store", "And", "Or", "Not", "USub", "Add", "Sub", "Mult", "Div", "Mod", "FloorDiv", "Eq"),
    *("NotEq", "Lt", "LtE", "Gt", "GtE", "Is", "IsNot", "In", "NotIn", "keyword"),
}
ATTRIBUTES = {
    *("append", "copy", "error", "get", "isascii", "isdecimal", "items", "lower", "meta", "ns"),
    *("pop", "raw", "replace", "split", "startswith", "endswith", "strip", "removeprefix"),
    *("removesuffix", "upper", "enter", "leave", "doc", "_doc", "is_integer", "keys", "values"),
    "extend",
}
BUILTINS = {
    *("type", "dict", "list", "str", "int", "float", "bool", "bytes", "len", "iter", "enumerate"),
    *("Exception", "zip", "range", "isinstance", "tuple", "map", "next", "all", "any"),
}
LOCAL = re.compile(r"[a-zA-Z]+_?[0-9]*_?|map[0-9]+_body|[0-9a-zA-Z]+_[0-9]+_?")

# Names that mean something to Python, to the generated code, or that Python folds into such.
HOSTILE = [
    *("__class__", "__builtins__", "__globals__", "__import__", "__reduce__", "__init__", "_raw"),
    *("class", "None", "True", "lambda", "import", "def", "root", "this", "meta", "run", "B", "I"),
    *("M", "X", "T", "d1", "t1", "v1", "e1", "k_1", "map0", "var0", "DELETED", "UNSET", "MAPS"),
    *("explain", "depth", "type", "len", "Exception", "step_1", "doc", "it1", "keys1", "f1", "g1"),
]
QUOTED = [
    *HOSTILE,
    *(
        "\uff3f\uff3fclass\uff3f\uff3f",
        "\uff44\uff4f\uff43",
        "ſtr",
        "\u2028import os",
        "\x0c1",
        "\\",
    ),
    *("'", '"', "'''", '"""', "\\'", "{", "}", "{0}", "{v}", "{__class__}", "{0.__class__}", "%s"),
    *(
        "'+__import__('os').system('true')+'",
        '"]; import os #',
        "\n import os\n",
        "\r\n",
        "#",
        "\0",
    ),
    *("a\\\nb", "\\N{DIGIT ONE}", "\\x41", '${! env("HOME") }', "~1", "~0", "-", "*", "\U0001f600"),
]
PLACES = [
    "root = this.{name}",
    "root = {name}",
    "root.{name} = 1",
    "root.a.{name}.b = this.{name}",
    "root = ${name}",
    "let {name} = 1\nroot.a = ${name}",
    "root = @{name}",
    "meta {name} = this.{name}",
    "map {name} {{ root = this.{name} }}\nroot = this.apply({quoted})",
    "root = this.({name} -> {name}.{name})",
    "root = this.map_each({name} -> {name})",
    "root = this.fold(0, {name} -> {name}.tally)",
    "root = this.{name}()",
    "root = {name}()",
    "root = this.{name}(this)",
    "root = count({name}: 1)",
    "root = match this {{ {name} => {name}, _ => 1 }}",
    "if this.{name} == {quoted} {{ root = 1 }} # {name}",
    "root = {{{quoted}: {quoted}}}",
    "root = {{{quoted}: this.{name}}}",
    "root = {quoted}.format({quoted})",
    "root = this.get({quoted})",
    "root = json({quoted})",
    "root = meta({quoted})",
    "root = this.a.exists({quoted})",
    "root = this.a.replace_all({quoted}, {quoted})",
    "root = this.a.split({quoted})",
    "root = this.a.contains({quoted})",
    "root = this.a + {quoted}",
    "root = this.a == {quoted}",
    "root = match this.a {{ {quoted} => 1 }}",
    "root = this.a | {quoted}",
    "root = this.catch({quoted})",
    "root = throw({quoted}).catch(this)",
    "root = this.apply({quoted})",
    "root = var({quoted})",
    "root = counter(set: {quoted})",
    "root = this.map_each(x -> throw({quoted})).catch(this + {quoted})",
    'root = """{raw}"""',
]


def quoted(text):
    return '"' + "".join(f"\\U{ord(c):08x}" if c not in "abc" else c for c in text) + '"'


def everything_compiled(text):
    """Return the generated modules of a mapping in all its forms."""
    mapping = compile_mapping(text, impure=False)
    program = mapping.program
    forms = [{}, {"mutates": True, "options": NO_OPTIMISATIONS}]
    if mapping.uses.only_document:
        forms.append({"document_only": True})
    return [compile_program(program, "x", **form) for form in forms]


def complaints(compiled: CompiledCode):
    """Say what is in the source that should not be there."""
    tree = ast.parse(compiled.source)
    known = compiled_globals(compiled)
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and type(n.ctx) is ast.Store}
    bound |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    bound |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    bound |= {n.name for n in ast.walk(tree) if isinstance(n, ast.ExceptHandler) and n.name}
    for node in ast.walk(tree):
        kind = type(node).__name__
        if kind not in NODES:
            yield f"a {kind}"
        if isinstance(node, ast.Attribute) and node.attr not in ATTRIBUTES:
            yield f"the attribute {node.attr}"
        if isinstance(node, ast.Name) and node.id not in bound | known | BUILTINS:
            yield f"the name {node.id}"
        if isinstance(node, ast.Constant) and type(node.value) not in (
            *(str, int, float, bool, bytes, types.NoneType),
        ):
            yield f"the constant {node.value!r}"
    for name in bound:
        if not LOCAL.fullmatch(name) or name.startswith("__"):
            yield f"the local {name}"


def compiled_globals(compiled):
    run = compiled.run
    if "__wrapped__" in vars(run) or run.__closure__:
        cells = [cell.cell_contents for cell in run.__closure__ or ()]
        run = next(f for f in cells if isinstance(f, types.FunctionType))
    return set(run.__globals__)


def check(text):
    try:
        modules = everything_compiled(text)
    except BloblangError:
        return False
    for compiled in modules:
        assert not list(complaints(compiled)), compiled.source
    return True


@pytest.mark.parametrize("place", PLACES)
def test_names_and_texts_become_constants(place):
    taken = 0
    for name in QUOTED if "{name}" in place else QUOTED[len(HOSTILE) :]:
        word = name if re.fullmatch(r"[A-Za-z0-9_]+", name) else quoted(name)
        raw = name.replace('"""', "")
        taken += check(place.format(name=word, quoted=quoted(name), raw=raw))
    assert taken or "({name}: 1)" in place or "{name}(" in place, "nothing was compiled at all"


@pytest.mark.parametrize("kind", [FUNCTIONS, METHODS], ids=["functions", "methods"])
def test_the_source_of_each_documented_example_keeps_to_the_list(kind):
    taken = [check(one.mapping) for each in kind.values() for one in each.examples]
    assert sum(taken) > len(taken) / 2


@settings(deadline=None)
@given(mutated())
def test_the_source_of_any_mapping_keeps_to_the_list(text):
    check(text)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=20), st.sampled_from(PLACES))
def test_any_text_becomes_a_constant(text, place):
    check(place.format(name=quoted(text), quoted=quoted(text), raw=text))


@settings(deadline=None)
@given(st.text(max_size=20))
def test_a_text_comes_back_as_it_went_in(text):
    assert run(f"root.a = {quoted(text)}\nroot = root.a") == text
    assert run(f"root.{quoted(text)} = 1\nroot = root.keys().index(0)") == text
    assert run(f"let {quoted(text)} = {quoted(text)}\nroot = var({quoted(text)})") == text


def test_generated_code_sees_no_builtins_but_the_listed():
    compiled = everything_compiled("root = this.a.map_each(x -> x + 1)")[0]
    seen = compiled.run.__globals__["__builtins__"]
    assert set(seen) <= BUILTINS
    dangerous = {"eval", "exec", "open", "getattr", "setattr", "vars", "globals", "__import__"}
    assert not dangerous & set(seen)
    assert set(seen) == set(compiler._BUILTINS) and "open" in vars(builtins)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_document_has_no_attributes(name):
    assert run(f"root = this.{name}", '{"a":1}') == "null"
    assert run(f"root = [1].{name}", "{}") == "null"
    assert run(f'root = "a".{name}', "{}") == "null"
    assert run(f"root = content().{name}", "{}") == "null"
    assert run(f'root = "2020-01-01T00:00:00Z".ts_parse("2006-01-02T15:04:05Z").{name}') == "null"


@pytest.mark.parametrize("name", ["__class__", "_get", "__str__", "upper", "format_map", "Get"])
def test_only_listed_functions_and_methods_are_called(name):
    for text in (f"root = this.{name}()", f"root = {name}()"):
        with pytest.raises(BloblangError):
            compile_mapping(text)


def test_a_format_reaches_no_attributes():
    for text in ("{0.__class__}", "{}", "%(a)s", "%!s", "{this}"):
        shown = run(f"root = {quoted(text)}.format(this)", '{"a":1}')
        assert "class" not in shown.replace(text, "") and "object at" not in shown


def test_a_text_of_an_error_is_no_format():
    text = 'root = this.map_each(x -> throw("{0.__class__} {}"))'
    assert "{0.__class__} {}" in run(text, "[1]")
    text = 'root = {"{0.__class__}": this.a.uppercase()}'
    assert "'{0.__class__}'" in run(text, '{"a":1}')


IMPURE = sorted(
    declaration.name
    for declaration in (*FUNCTIONS.values(), *METHODS.values())
    if declaration.run.__module__ == environment.__name__ and "impure" in declaration.uses
)


@pytest.mark.parametrize("name", IMPURE)
def test_what_looks_outside_can_be_switched_off(name, tmp_path, monkeypatch):
    (tmp_path / "secret").write_text("secret")
    monkeypatch.setenv("SECRET", "secret")
    given = {"env": '"SECRET"', "hostname": ""}.get(name, quoted(str(tmp_path / "secret")))
    for call in (
        f"{name}({given})",
        f"null.catch({name}({given}))",
        f"[1].map_each({name}({given}))",
    ):
        compile_mapping(f"root = {call}", impure=True)
        with pytest.raises(BloblangError, match="switched off"):
            compile_mapping(f"root = {call}", impure=False)
        with pytest.raises(BloblangError, match="switched off"):
            compile_interpolation("${! " + call + " }", impure=False)


def test_names_computed_as_it_runs_reach_nothing_that_is_switched_off(monkeypatch):
    monkeypatch.setenv("SECRET", "secret")
    for text in ('root = "env".apply("env")', 'root = var("env")', "root = this.apply(this.a)"):
        mapping = compile_mapping(text, impure=False)
        assert not mapping.uses.impure
        assert "secret" not in run(text, '{"a":"env"}')


def test_only_the_environment_module_and_imports_open_files():
    """Files, processes and sockets are named in no other module that mappings reach."""
    import pathlib

    import streamer.bloblang

    package = pathlib.Path(streamer.bloblang.__file__).parent
    opening = re.compile(
        r"(?<![\w.])(?<!def )open\(|\bsubprocess\b|\bsocket\b|os\.(?:environ|system|popen|exec)|"
        r"urllib\.request|urlopen|\bpickle\b|\beval\(|__import__|importlib\.import_module\((?!\")"
    )
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if opening.search(path.read_text())
    }
    # parser_tables.py pickles lark's tables when the project is built, never what a user gives.
    # regex.py has Python read a dict display whose keys are quoted names of groups.
    assert found <= {
        "environment.py",
        "functions/environment.py",
        "parser_tables.py",
        "runtime/regex.py",
    }


def test_the_name_of_a_group_is_nothing_but_a_text():
    text = 'root = this.a.re_find_object("^(?P<__import__>a)(?P<groups>b)")'
    assert run(text, '{"a":"ab"}') == '{"0":"ab","__import__":"a","groups":"b"}'
    assert "error parsing regexp" in run("root = this.re_match(this)", '"(?P<a\': 1}>b)"')
