"""HTML reduced to text; each expectation was asked of bluemonday, as Connect uses it."""
# ruff: noqa: E501 - tables of whole texts

import json

import pytest

from streamer.bloblang import BloblangError, compile_mapping
from tests.bloblang.running import run


@pytest.mark.parametrize(
    ("given", "preserve", "text"),
    [
        (
            '<p>Welcome &amp; it\'s <b>"ok"</b> &nbsp; 5 < 6 > 4 & x</p>',
            [],
            "Welcome &amp; it&#39;s &#34;ok&#34; \u00a0 5 &lt; 6 &gt; 4 &amp; x",
        ),
        (
            "<p>Welcome <B class='x'>ok</b><br/> <b/>unclosed <b>x",
            ["b"],
            "Welcome <b>ok</b> <b/>unclosed <b>x",
        ),
        ("<a href='x'>l</a><img src=x><br><br/><a>q</a>", ["a", "img", "br"], "l<br><br/>q"),
        ("x<script>alert(1)</script>y<style>b{}</style>z", ["script", "style"], "xyz"),
        ("x<!-- c --><!DOCTYPE html><?php echo ?>y<![CDATA[z]]>", [], "xy"),
        (
            "x<iframe>q</iframe><title>t</title><textarea>a<b>x</b></textarea>",
            [],
            "xa&lt;b&gt;x&lt;/b&gt;",
        ),
        ("<iframe><b>x</b></iframe><object><b>y</b></object>", ["b"], ""),
        ("</p>x</>y<>z<1>", [], "xy&lt;&gt;z&lt;1&gt;"),
        ("a<b c='", [], "a"),
        ("a< b>c", [], "a&lt; b&gt;c"),
        ("<b>x</b>", ["B"], "<b>x</b>"),
        ("<div><p>a</div></p>", ["div"], "<div>a</div>"),
        ("<b title='>'>x</b>", ["b"], "<b>x</b>"),
        ("&lt;script&gt; &copy; &notit; &#x41; é ☃", [], "&lt;script&gt; © ¬it; A é ☃"),
        ("a</script>b<style/>c", [], "abc"),
        ("x<plaintext></b><i>", ["b"], "x&lt;/b&gt;&lt;i&gt;"),
        ("a\r\nb\rc", [], "a\nb\nc"),
        ("\r", [], "\r"),
        ("", [], ""),
    ],
)
def test_tags_go_and_what_is_to_stay_stays(given, preserve, text):
    mapping = f"root = this.t.strip_html({json.dumps(preserve)})"
    assert run(mapping, json.dumps({"t": given})) == text


def test_no_attribute_and_no_other_tag_ever_goes_out():
    given = "<b onclick=x>1</b><b/onclick=x>2<b\n<i>3</b ><IMG SRC=x onerror=y><svg/onload=z>"
    assert (
        run('root = this.t.strip_html(["b"])', json.dumps({"t": given})) == "<b>1</b><b>2<b>3</b>"
    )


def test_an_element_s_name_must_be_a_text():
    with pytest.raises(BloblangError, match="invalid arg at index 1: expected string, got int64"):
        compile_mapping('root = this.strip_html(["b", 5])')


def test_what_is_no_array_preserves_nothing():
    assert run('root = this.t.strip_html("b")', '{"t":"<b>x</b>"}') == "x"


@pytest.mark.parametrize(
    "part", ["<", "<a ", "<!--", '<a b="', "</", "&", "<b>", "<textarea>", "<a b=", "<!"]
)
def test_the_time_grows_with_the_length_only(part):
    # A quadratic reader would need minutes for this.
    run("root = this.t.strip_html()", json.dumps({"t": part * 50_000}))
