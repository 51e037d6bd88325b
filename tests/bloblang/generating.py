"""Texts and documents for property tests: valid mappings, broken ones, noise, any JSON value."""

import json
from pathlib import Path

from hypothesis import strategies as st

from streamer.bloblang.catalog import FUNCTIONS, METHODS

_DATA = Path(__file__).parent / "data" / "documented_examples.jsonl"
EXAMPLES = [json.loads(line) for line in _DATA.open()]
DOCUMENTED = sorted({example["mapping"] for example in EXAMPLES})

# Letters that trip readers: controls, NUL, line and paragraph separators, BOM, astral, combining,
# digits and letters that Python would fold into ASCII, and halves of surrogate pairs.
ODD = "\0\1\x0b\x0c\x1c\x7f\x85\u2028\u2029\ufeff\U0001f600\u0301\u0663\uff41\u017f\ud800\udfff"
TOKENS = [
    *"()[]{}.,:;=!-+*/%<>|&@$#\"'\\_~^`?",
    *("==", "!=", ">=", "<=", "&&", "||", "=>", "->", '"""', "${!", "${{!", "}}", "\r\n", "\n"),
    *("root", "this", "meta", "let x = ", "map m {", "import ", "if ", " else if ", " else "),
    *("match ", "_ => ", "x -> ", "true", "false", "null", "deleted()", "nothing()", "$x", "@a"),
    *(".a", ".0", '."b c"', '"\\u0041\\x41\\101"', '"\\q"', "9223372036854775808", "1.5", "1e5"),
    *(
        "root = ",
        "root.a = ",
        " = ",
        " ",
        "\t",
        "# c\n",
        ".catch(",
        ".or(",
        ".map_each(",
        ".(x -> ",
    ),
    *(f"{name}(" for name in FUNCTIONS),
    *(f".{name}(" for name in METHODS),
    *ODD,
]

# What would disturb things outside, or take the time it is told to take.
_NOT_RUN = {"file", "file_rel", "env", "hostname", "throw"}

noise = st.text(st.characters(), max_size=80) | st.text(st.sampled_from(ODD + 'a .="(){}\n'))
decoded = st.binary(max_size=80).flatmap(
    lambda raw: st.sampled_from(("replace", "surrogateescape", "ignore")).map(
        lambda errors: raw.decode(errors=errors)
    )
)
soup = st.lists(st.sampled_from(TOKENS), max_size=30).map("".join)

_words = st.sampled_from(["a", "b", "c", "0", "foo_bar", "x1"])
_strings = st.one_of(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=8).map(json.dumps),
    st.sampled_from(['"a"', '"a.b"', '"%v"', '"2006-01-02"', '"[a-z]+"', '"base64"', '"""x"y"""']),
)
_numbers = st.one_of(
    st.integers(0, 20).map(str),
    st.sampled_from(["9223372036854775807", "4294967296", "0.5", "1000000.25"]),
)


_CALLED = sorted(set(FUNCTIONS) - _NOT_RUN)
_METHODS = sorted(METHODS)
_KEYS = _strings.filter(lambda text: not text.startswith('"""'))
_SIGNS = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "|"]
_ATOMS = st.one_of(
    _words.map(lambda name: f"this.{name}"),
    _words.filter(lambda name: not name[0].isdigit()),
    st.sampled_from(["this", "root", "@", "@a", "$v", "true", "false", "null", "content()"]),
    st.sampled_from(["deleted()", "nothing()", 'throw("no")', "[]", "{}", "[3, 1, 2]"]),
    _strings,
    _numbers,
)


@st.composite
def expressions(draw, depth=3):
    """An expression; calls have about as many arguments as declared, of whatever type."""

    def inner():
        return draw(expressions(depth - 1))

    def call(table, names):
        name = draw(st.sampled_from(names))
        most = len(table[name].params) or 2 * table[name].variadic
        given = draw(st.integers(max(most - 1, 0), most))
        return f"{name}({', '.join(inner() for _ in range(given))})"

    def several(form):
        return "".join(form() for _ in range(draw(st.integers(0, 3))))

    forms = (
        lambda: draw(_ATOMS),
        lambda: call(FUNCTIONS, _CALLED),
        lambda: f"{inner()}.{call(METHODS, _METHODS)}",
        lambda: f"{inner()}.{call(METHODS, _METHODS)}",
        lambda: f"{inner()} {draw(st.sampled_from(_SIGNS))} {inner()}",
        lambda: f"({inner()})",
        lambda: draw(st.sampled_from("!-")) + inner().lstrip("!-"),
        lambda: "[" + several(lambda: inner() + ", ") + "]",
        lambda: "{" + several(lambda: f"{draw(_KEYS)}: {inner()}, ") + "}",
        lambda: f"if {inner()} {{ {inner()} }} else {{ {inner()} }}",
        lambda: f"match {inner()} {{ {several(lambda: f'{inner()} => {inner()}, ')}_ => 1 }}",
        lambda: f"{inner()}.(x{depth} -> {inner()})",
        lambda: f"{inner()}.map_each(x{depth} -> {inner()})",
        lambda: f"{inner()}.{draw(_words)}",
    )
    return draw(st.sampled_from(forms if depth else forms[:1]))()


_plain = st.one_of(
    st.tuples(st.lists(_words, max_size=3), expressions()).map(
        lambda p: f"root{''.join('.' + word for word in p[0])} = {p[1]}"
    ),
    expressions().map(lambda x: f"let v = {x}"),
    expressions().map(lambda x: f"meta a = {x}"),
)
statements = _plain | st.tuples(expressions(), _plain, _plain).map(
    lambda p: f"if {p[0]} {{\n  {p[1]}\n}} else {{\n  {p[2]}\n}}"
)
mappings = st.lists(statements, min_size=1, max_size=4).map("\n".join)


_WHOLE = st.sampled_from(DOCUMENTED) | mappings


@st.composite
def mutated(draw, texts=_WHOLE):
    """A mapping with some things cut out, put in, doubled, or exchanged."""
    text = draw(texts)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        put = draw(
            st.one_of(
                st.just(""),
                st.sampled_from(TOKENS),
                st.sampled_from(ODD),
                st.just(text[start:end] * 2),
                st.just(text[:start]),
            )
        )
        text = text[:start] + put + text[end:]
    return text


texts = st.one_of(noise, decoded, soup, mappings, mutated())

_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 64) - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=12),
    st.sampled_from(
        ["", "5", "-1.5e300", "2020-08-14T05:54:23Z", '{"a":1}', "a,b\n1,2", "<a>b</a>"]
    ),
    st.sampled_from(["PT1H", "1h", "a=1", "https://u:p@h:1/x?y=z#f", "YWJj", "%41", "a: [1]"]),
)
_keys = st.sampled_from(["a", "b", "c", "foo_bar", "x1", "", "a.b", "0"]) | st.text(max_size=3)
documents = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=12,
)
payloads = st.one_of(
    documents.map(lambda document: json.dumps(document).encode()),
    st.binary(max_size=30),
    st.sampled_from([b"", b" ", b"{", b'{"a":1e400}', b'{"a":"\\ud800"}', b"\xff", b"-0", b"1.50"]),
)
