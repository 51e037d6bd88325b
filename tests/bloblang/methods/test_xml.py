"""XML; expectations without a note were asked of Connect's libraries."""
# ruff: noqa: E501 - tables of whole documents

import json

import pytest

from tests.bloblang.running import run

SYNTAX = "xml.Decoder.Token() - XML syntax error on line"


def parsed(text, cast="false"):
    return run(f"root.v = this.t.parse_xml({cast})", json.dumps({"t": text}))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<r><t>x</t></r>", {"r": {"t": "x"}}),
        ("<a/>", {"a": ""}),
        ("<a></a>", {"a": ""}),
        ("<a x='1'/>", {"a": {"-x": "1"}}),
        ("<a x='1'>t</a>", {"a": {"-x": "1", "#text": "t"}}),
        ("<a><b></b><b/><b>1</b><b x='1'/></a>", {"a": {"b": ["", "", "1", {"-x": "1"}]}}),
        ("<a>x<b/>y</a>", {"a": {"#text": "x", "b": ""}}),
        ("<a>x<b>1</b>y<b>2</b>z</a>", {"a": {"#text": "x", "b": ["1", "2"]}}),
        ("<a><b k='1'>x<c/>y</b></a>", {"a": {"b": {"#text": "y", "-k": "1", "c": ""}}}),
        ("<a>x<!-- c -->y</a>", {"a": "y"}),
        ("<a>p<![CDATA[<x>]]>q</a>", {"a": "q"}),
        ("<a><![CDATA[<x>&amp;]]></a>", {"a": "<x>&amp;"}),
        ("<a>  \n x y \t</a>", {"a": "x y"}),
        ("<a>x\r\ny\rz</a>", {"a": "x\ny\nz"}),
        ("<a k='1' k='2'><k/></a>", {"a": {"-k": "2", "k": ""}}),
        (
            "<n:a xmlns:n='u' n:k='v' xmlns='d'><n:b/><b/></n:a>",
            {"a": {"-k": "v", "-n": "u", "-xmlns": "d", "b": ["", ""]}},
        ),
        ("<é>x</é>", {"é": "x"}),
        ("\ufeff <a>1</a><b>2</b>", {"a": "1"}),
        ("<a x='1'/>trailing <b>", {"a": {"-x": "1"}}),
        ("<a><?x y?>k</a>", {"a": "k"}),
        (
            '<!DOCTYPE a [<!ENTITY x "y"> <!-- > -->]><a>&x;&amp;&#65;&#x42;&bogus; & b</a>',
            {"a": "&x;&AB&bogus; & b"},
        ),
        ("<a>&#xD800;</a>", {"a": "\ufffd"}),
        ("<a x=1 y/>", {"a": {"-x": "1", "-y": "y"}}),
        ("<a b='&lt;&quot;&nope;'/>", {"a": {"-b": '<"&nope;'}}),
        ("<a></b>", {"a": ""}),
        ("<a><b>x</a>", {"a": {"b": "x"}}),
        ("<a><b>x</c></a>", {"a": {"b": "x"}}),
        ("<?xml version='1.0' encoding='ISO-8859-1'?><a>é</a>", {"a": "Ã©"}),
        ("<?xml version='1.0' encoding='UTF-8'?><a>é</a>", {"a": "é"}),
    ],
)
def test_a_document_has_its_value(text, value):
    assert json.loads(parsed(text)) == {"v": value}


def test_bytes_are_read_in_the_encoding_that_they_declare():
    raw = "<?xml version='1.0' encoding='windows-1252'?><a>5 €</a>".encode("cp1252").hex()
    assert run('root = this.t.decode("hex").parse_xml()', f'{{"t":"{raw}"}}') == '{"a":"5 €"}'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("1.50", 1.5), ("1e3", 1000), ("-0x10", "-0x10"), ("-0x10p0", -16), (".5", 0.5), ("+5", 5), ("007", 7),
        ("true", True), ("False", False), ("T", True), ("f", False), ("tRue", "tRue"), ("yes", "yes"),
        ("NaN", "NaN"), ("inf", "inf"), ("1_000", 1000), ("_1", "_1"), ("1e400", "1e400"), ("", ""),
    ],
)  # fmt: skip
def test_texts_are_cast_when_asked_to(text, value):
    document = f"<a k='{text}'><b>{text}</b></a>"
    assert json.loads(parsed(document, "cast: true"))["v"] == {"a": {"-k": value, "b": value}}
    assert json.loads(parsed(document))["v"] == {"a": {"-k": text, "b": text}}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "EOF"),
        ("hello", "EOF"),
        ("<a>", f"{SYNTAX} 1: unexpected EOF"),
        ("<a>\n<", f"{SYNTAX} 2: unexpected EOF"),
        ("<a>x</a", f"{SYNTAX} 1: unexpected EOF"),
        ("</a>", f"{SYNTAX} 1: unexpected end element </a>"),
        ("<n:a></a>", f'{SYNTAX} 1: element <a> in space n closed by </a> in space ""'),
        ("<a b='<'/>", f"{SYNTAX} 1: unescaped < inside quoted string"),
        ("<a>]]></a>", f"{SYNTAX} 1: unescaped ]]> not in CDATA section"),
        ("<a>\u0001</a>", f"{SYNTAX} 1: illegal character code U+0001"),
        ("<a>&#0;</a>", f"{SYNTAX} 1: illegal character code U+0000"),
        ("<a><1/></a>", f"{SYNTAX} 1: invalid XML name: 1"),
        ("<a:b:c/>", f"{SYNTAX} 1: expected element name after <"),
        ("<a\n\n b='1' 1='2'/>", f"{SYNTAX} 3: invalid XML name: 1"),
        ("<a #t='1'/>", f"{SYNTAX} 1: expected attribute name in element"),
        ("<a><!-- x -- y --></a>", f'{SYNTAX} 1: invalid sequence "--" not allowed in comments'),
        ("<a><![CDATA[x</a>", f"{SYNTAX} 1: unexpected EOF in CDATA section"),
        ("<a><![CDAT[x]]></a>", f"{SYNTAX} 1: invalid <![ sequence"),
        ("<a><? x?></a>", f"{SYNTAX} 1: expected target name after <?"),
        (
            "<?xml version='1.1'?><a/>",
            'xml.Decoder.Token() - xml: unsupported version "1.1"; only version 1.0 is supported',
        ),
        (
            "<?xml version='1.0' encoding='nope'?><a/>",
            'xml.Decoder.Token() - xml: opening charset "nope": unsupported charset: "nope"',
        ),
    ],
)
def test_what_is_no_document_is_an_error(text, error):
    assert parsed(text) == f'Error("failed assignment (line 1): parsing value as XML: {error}")'


def test_a_number_is_no_document():
    found = run("root = this.a.parse_xml()", '{"a":5}')
    assert found == 'Error("failed assignment (line 1): expected bytes value, got number (5)")'


def test_entities_that_a_document_declares_are_not_expanded():
    bomb = '<!DOCTYPE a [<!ENTITY b "xxxxxxxxxx"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>'
    assert parsed(bomb) == '{"v":{"a":"&c;"}}'
    outside = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]><a>&b;</a>'
    assert parsed(outside) == '{"v":{"a":"&b;"}}'


@pytest.mark.parametrize(
    "part", ["<a>", "<a ", "<!--", '<a b="', "&", "<![CDATA[", "<!", "<?a ", "<a/", "]]"]
)
def test_the_time_grows_with_the_length_only(part):
    # A quadratic reader would need minutes for this.
    assert parsed("<r>" + part * 50_000).startswith("Error")


@pytest.mark.parametrize(
    ("document", "arguments", "text"),
    [
        ({"a": {"b": {"c": "x"}}}, "", "<a>\n    <b>\n        <c>x</c>\n    </b>\n</a>"),
        ({"a": {"b": {"c": "x"}}}, "no_indent: true", "<a><b><c>x</c></b></a>"),
        ({"a": {"b": {"c": 1}}}, 'indent: "\\t"', "<a>\n\t<b>\n\t\t<c>1</c>\n\t</b>\n</a>"),
        ({"a": {"b": 1}}, 'indent: ""', "<a>\n<b>1</b>\n</a>"),
        ({"a": {"b": 1}}, '"  ", false, "z"', "<z>\n  <a>\n    <b>1</b>\n  </a>\n</z>"),
        ({"a": 1}, 'root_tag: "r", no_indent: true', "<a>1</a>"),
        ({"a": 1, "b": 2}, "", "<doc>\n    <a>1</a>\n    <b>2</b>\n</doc>"),
        ({}, "", "<doc/>"),
        ({"a": {"-x": "1", "#text": "t"}}, "", '<a x="1">t</a>'),
        ({"a": {"-y": 2, "-x": "1", "-z": True}}, "", '<a x="1" y="2" z="true"/>'),
        ({"a": {"#text": "t", "b": 1}}, "", "<a>t\n    <b>1</b>\n</a>"),
        ({"a": {"-": 1}}, "", "<a>\n    <->1</->\n</a>"),
        ({"a": {"b": None, "c": "", "d": {}}}, "no_indent: true", "<a><b/><c/><d/></a>"),
        ({"a": [1, 2]}, "no_indent: true", "<doc><a>1</a><a>2</a></doc>"),
        ({"a": [{"b": 1}, {"b": 2}]}, "no_indent: true", "<a><b>1</b></a><a><b>2</b></a>"),
        ({"a": [{"b": 1}]}, "", "<doc>\n    <a>\n        <b>1</b>\n    </a>\n</doc>"),
        (
            {"a": {"e": [1, [2, 3]]}},
            "",
            "<a>\n    <e>1</e>\n        <e>2</e>\n        <e>3</e>\n</a>",
        ),
        ({"a": {"b": [], "c": 1}}, "", "<a>\n    <b/>    <c>1</c>\n</a>"),
        ({"a": {"-x": "<&>\"'"}}, "", '<a x="<&>"\'"/>'),
        ({"a": "<&>"}, "", "<a><&></a>"),
        (
            {"a": [1.5, 12345678.5, True]},
            "no_indent: true",
            "<doc><a>1.5</a><a>12345678.5</a><a>true</a></doc>",
        ),
    ],
)
def test_an_object_is_written(document, arguments, text):
    assert run(f"root = this.format_xml({arguments})", json.dumps(document)) == text


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"a": {"-x": [1]}}, "invalid attribute value for: -x:<[]interface {}>"),
        ({"a": {"-x": None}}, "invalid attribute value for: -x:<<nil>>"),
        ([1], "expected object value, got array"),
        ("x", 'expected object value, got string ("x")'),
    ],
)
def test_what_cannot_be_written_is_an_error(value, error):
    found = run("root = this.v.format_xml()", json.dumps({"v": value}))
    assert found == f'Error("failed assignment (line 1): {error}")'


def test_what_is_written_can_be_read():
    document = '{"r":{"-id":"1","i":[{"#text":"a","-k":"v"},"b",""],"o":{"p":"q"}}}'
    assert run("root = this.format_xml().parse_xml()", document) == document
