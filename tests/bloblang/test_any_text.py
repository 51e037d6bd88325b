"""Whatever is read as a mapping, it is one or there is an error with a place inside the text."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from streamer.bloblang import BloblangError, compile_interpolation, compile_mapping
from tests.bloblang.generating import mappings, noise, texts
from tests.examples import examples

slowly = settings(
    max_examples=examples(20, 100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def refusal(compile_it, text):
    """Return the error of a text that is refused, else None; any other exception gets through."""
    try:
        compile_it(text)
    except BloblangError as e:
        return e
    return None


def is_inside(error, text):
    lines = text.split("\n")
    return (
        1 <= error.line <= len(lines)
        and 1 <= error.column <= len(lines[error.line - 1]) + 1
        and bool(error.message)
    )


@slowly
@given(texts)
@example("")
@example("\n")
@example("\ufeffroot = this")
@example('root = "\ud800"')
@example("root.\ud800 = 1")
@example('root."\udfff" = @"\ud800"')
@example("root = \0")
@example("root = 1 # \0\u2028\x0c")
@example("root\x0c=\x0c1")
@example("root = this.\uff41")
@example("root = \u0663")
@example('root = "\\U00110000"')
@example('root = "\\ud800"')
@example('root = "\\400"')
@example("root = 0.1.2.3")
@example("root = " + "9" * 5000)
@example("root = 1." + "9" * 5000)
@example("root." + "9" * 5000 + " = 1")
@example('root = "%' + "9" * 5000 + 'd".format(1)')
def test_every_text_is_a_mapping_or_has_an_error_inside_it(text):
    error = refusal(lambda text: compile_mapping(text, impure=False), text)
    assert error is None or is_inside(error, text), (error.line, error.column, error.message)


@slowly
@given(
    st.lists(
        st.one_of(
            noise,
            texts.map(lambda text: "${!" + text + "}"),
            st.sampled_from(["${", "${!", "${{!", "}}", "}", "$", "${{! x }}", '${!json("a")}']),
        ),
        max_size=5,
    ).map("".join)
)
@example("${!")
@example("${! }")
@example("${{!")
@example("${!\ud800}")
@example("\ud800${!this}")
@example("${! throw('x') }")
def test_every_string_is_interpolated_or_has_an_error_inside_it(text):
    error = refusal(lambda text: compile_interpolation(text, impure=False), text)
    assert error is None or is_inside(error, text), (error.line, error.column, error.message)


@slowly
@given(mappings)
def test_a_mapping_made_by_the_grammar_is_refused_only_for_what_it_says(text):
    """Its words stand where they may: what is wrong can only be a call, a context, or a key."""
    error = refusal(lambda text: compile_mapping(text, impure=False), text)
    if error is not None:
        assert "unexpected" not in error.message
        # A call on a literal may be worked out at once, and name the type that it takes.
        syntax = error.message.startswith("expected") and " value, got " not in error.message
        assert not syntax, error.message


@pytest.mark.parametrize("kind", ["mapping", "interpolation"])
def test_reading_the_same_text_twice_gives_the_same_error(kind):
    compile_it = compile_mapping if kind == "mapping" else compile_interpolation
    text = "${! this.foo( }" if kind == "interpolation" else "root = this.foo("
    first, second = refusal(compile_it, text), refusal(compile_it, text)
    assert str(first) == str(second) and first is not None
