from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from streamer.connectors.javascript.runtime import ScriptRuntime, find_syntax_error
from streamer.core.errors import MessageError, StreamerError


def run(code: str, text: str = "", meta: Mapping[str, Any] | None = None) -> Any:
    return ScriptRuntime(code, ".", lambda request: {"error": "no"}).run(text, meta or {})


class TestPayload:
    def test_unchanged(self) -> None:
        result = run("benthos.v0_msg_as_string()", "a")
        assert (result.text, result.document, result.meta) == (None, None, {})

    def test_text(self) -> None:
        assert run("benthos.v0_msg_set_string(benthos.v0_msg_as_string() + '!')", "é").text == "é!"

    def test_halves_of_pairs_become_what_go_makes_of_them(self) -> None:
        assert run(r"benthos.v0_msg_set_string('a\ud800😀')").text == "a\ufffd😀"

    @pytest.mark.parametrize(
        ("value", "document"),
        [
            ("{b: 1, a: [1.5, 'x', null, true]}", {"b": 1, "a": [1.5, "x", None, True]}),
            ("{u: undefined, f: () => 1}", {}),
            ("NaN", None),
            ("'text'", "text"),
            ("new Date(0)", "1970-01-01T00:00:00.000Z"),
        ],
    )
    def test_value(self, value: str, document: Any) -> None:
        assert run(f"benthos.v0_msg_set_structured({value})").document == [document]

    def test_the_last_one_counts_and_is_seen(self) -> None:
        code = """
          benthos.v0_msg_set_structured({a: 1});
          const text = benthos.v0_msg_as_string();
          benthos.v0_msg_set_string(text + JSON.stringify(benthos.v0_msg_as_structured()));
        """
        result = run(code, "x")
        assert (result.text, result.document) == ('{"a":1}{"a":1}', None)

    def test_a_value_is_a_copy(self) -> None:
        code = """
          const thing = benthos.v0_msg_as_structured();
          thing.b = 2;
          benthos.v0_msg_set_meta("seen", benthos.v0_msg_as_structured());
        """
        assert run(code, '{"a":1}').meta == {"seen": {"a": 1}}

    def test_what_is_not_json_is_thrown_as_a_text(self) -> None:
        code = """
          try { benthos.v0_msg_as_structured() }
          catch (e) { benthos.v0_msg_set_meta("e", typeof e) }
        """
        assert run(code, "nope").meta == {"e": "string"}


class TestMetadata:
    def test_is_read_and_set(self) -> None:
        code = """
          benthos.v0_msg_set_meta("a", "hello");
          benthos.v0_msg_set_meta("b", benthos.v0_msg_get_meta("a") + benthos.v0_msg_get_meta("n"));
          benthos.v0_msg_set_meta("c", [1.5, "x"]);
        """
        assert run(code, "", {"n": 7}).meta == {"a": "hello", "b": "hello7", "c": [1.5, "x"]}

    def test_what_is_missing(self) -> None:
        code = "benthos.v0_msg_set_meta('has', benthos.v0_msg_exists_meta('toString'));"
        assert run(code).meta == {"has": False}
        with pytest.raises(MessageError, match="^key not found$"):
            run("benthos.v0_msg_get_meta('toString')")

    @pytest.mark.parametrize("name", ["__proto__", "constructor", "self"])
    def test_any_name(self, name: str) -> None:
        assert run(f"benthos.v0_msg_set_meta('{name}', 1)").meta == {name: 1}


class TestErrors:
    @pytest.mark.parametrize(
        ("code", "text"),
        [
            ("let a = 1;\n  foo.bar()", "ReferenceError: foo is not defined (line 2, column 3)"),
            ("throw 'x'", "x"),
            ("throw {a: 1}", '{"a":1}'),
            ("benthos.v0_msg_set_string(undefined)", "argument at position 0 is undefined"),
            (
                "benthos.v0_msg_as_string(); benthos.v0_msg_set_string(1, 2)",
                "have 2 arguments, but only 1 pointers to parse into",
            ),
        ],
    )
    def test_thrown(self, code: str, text: str) -> None:
        with pytest.raises(MessageError) as caught:
            run(code)
        assert str(caught.value) == text

    @pytest.mark.parametrize("code", ["a b", "if (", "return }"])
    def test_syntax(self, code: str) -> None:
        assert "failed to compile javascript code: SyntaxError" in str(find_syntax_error(code))
        with pytest.raises(StreamerError):
            run(code)

    @pytest.mark.parametrize("code", ["// a comment", "", "return 1", "`${1}`", "let a = 1"])
    def test_no_error(self, code: str) -> None:
        assert find_syntax_error(code) is None
        assert run(code, "a").text is None


class TestBounds:
    def test_time(self) -> None:
        runtime = ScriptRuntime("while (true) {}", ".", lambda request: {}, seconds=0.05)
        for _ in range(2):
            with pytest.raises(MessageError, match="interrupted"):
                runtime.run("", {})

    def test_memory(self) -> None:
        code = (
            "if (benthos.v0_msg_as_string()) { const a = []; while (true) a.push('x' + a.length) }"
        )
        runtime = ScriptRuntime(code, ".", lambda request: {}, memory=16 << 20)
        with pytest.raises(MessageError, match="out of memory"):
            runtime.run("a", {})
        assert runtime.run("", {}).text is None

    def test_depth(self) -> None:
        with pytest.raises(MessageError, match="call stack"):
            run("const f = () => f() + 1; f()")

    def test_lines_of_the_log(self) -> None:
        result = run("for (let i = 0; i < 150; i++) console.warn(i, {a: 1}, 'x')")
        assert result.lines[0] == ("WARN", '0 {"a":1} x')
        assert (len(result.lines), result.lines[-1]) == (
            101,
            ("WARN", "50 more lines were left out"),
        )

    @pytest.mark.parametrize(
        "code",
        [
            "JSON.stringify = () => '[]'; JSON.parse = () => 1;",
            "Object.prototype.request = {module: 1}; Object.prototype.error = 'x';",
            "Array.prototype.push = () => { throw 1 };",
            "globalThis.benthos = 1; globalThis.console = 1;",
        ],
    )
    def test_a_program_that_changes_what_it_finds_harms_itself_alone(self, code: str) -> None:
        runtime = ScriptRuntime(code, ".", lambda request: {})
        for _ in range(2):
            assert runtime.run("a", {"b": 1}).text is None

    def test_nothing_outside_is_there(self) -> None:
        code = """
          const found = ["process", "std", "os", "fetch", "Deno", "Worker", "__host", "print"];
          benthos.v0_msg_set_structured(found.filter(name => globalThis[name] !== undefined));
        """
        assert run(code).document == [[]]


class TestState:
    def test_declarations_are_new_and_global_properties_stay(self) -> None:
        code = """
          let here = 1;
          globalThis.count = (globalThis.count || 0) + here;
          benthos.v0_msg_set_structured(count);
        """
        runtime = ScriptRuntime(code, ".", lambda request: {})
        assert [runtime.run("", {}).document for _ in range(3)] == [[1], [2], [3]]


class TestRequests:
    def test_the_host_answers(self) -> None:
        asked: list[Any] = []

        def answer(request: Mapping[str, Any]) -> dict[str, Any]:
            asked.append(request)
            if "module" in request:
                text = "exports.f = () => 42; module.exports.g = require('./n').length"
                inner = request["module"]["name"] == "./n"
                text = "[1, 2]" if inner else text
                return {
                    "path": "/a/n.json" if inner else "/a/m.js",
                    "directory": "/a",
                    "text": text,
                }
            return {"status": 200 + len(asked), "body": "b"}

        code = """
          const m = require("./m");
          const one = benthos.v0_fetch("http://a", {h: "v"}, "PUT", "body");
          const two = benthos.v0_fetch("http://b");
          benthos.v0_msg_set_structured([m.f(), m.g, one.status, two.status, two.body]);
        """
        runtime = ScriptRuntime(code, "/base", answer)
        assert runtime.run("", {}).document == [[42, 2, 203, 204, "b"]]
        assert [one.get("module", {}).get("directory") for one in asked] == [
            "/base",
            "/a",
            None,
            None,
        ]
        assert asked[2]["fetch"] == {
            "url": "http://a",
            "headers": {"h": "v"},
            "method": "PUT",
            "body": "body",
        }
        assert asked[3]["fetch"] == {"url": "http://b", "headers": {}, "method": "GET", "body": ""}
        # Modules are loaded once.
        assert runtime.run("", {}).document == [[42, 2, 205, 206, "b"]]

    def test_an_answer_may_be_an_error(self) -> None:
        with pytest.raises(MessageError, match="^no$"):
            run("benthos.v0_fetch('http://a')")
        with pytest.raises(MessageError, match="Error: no"):
            run("require('a')")

    def test_a_program_that_catches_the_end_of_its_run(self) -> None:
        code = "try { benthos.v0_fetch('http://a') } catch (e) { benthos.v0_msg_set_meta('e', e) }"
        assert run(code).meta == {"e": "no"}

    def test_their_number_is_bounded(self) -> None:
        with pytest.raises(MessageError, match="more than 100 things"):
            ScriptRuntime(
                "while (true) benthos.v0_fetch('a')", ".", lambda request: {"status": 1, "body": ""}
            ).run("", {})

    def test_console_is_a_module(self) -> None:
        assert run("require('console').error('a')").lines == (("ERROR", "a"),)

    def test_metadata_of_any_type(self) -> None:
        assert run("benthos.v0_msg_set_meta('b', benthos.v0_msg_get_meta('a'))", "", {"a": b"x"})
