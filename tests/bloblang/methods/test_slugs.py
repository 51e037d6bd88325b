"""Slugs as Connect makes them; each expectation was asked of gosimple/slug."""

import pytest

from tests.bloblang.running import run


@pytest.mark.parametrize(
    ("text", "lang", "slug"),
    [
        ("Hello World! Welcome", "en", "hello-world-welcome"),
        ("Café & Restaurant", "fr", "cafe-et-restaurant"),
        ("Äpfel & Öl @ über ß", "de", "aepfel-und-oel-an-ueber-ss"),
        ("ä", "DE", "ae"),
        ("ä", "deu", "ae"),
        ("a & b @ c", "zz", "a-and-b-at-c"),
        ("a & b @ c", "sv", "a-och-b-snabel-a-c"),
        ("çağ İış", "tr", "cag-iis"),
        ("ъж Щ", "bg", "azh-sht"),
        ("объект", "en", "ob-ekt"),
        ("χώρα ξύλο", "el", "chora-xylo"),
        ("affaire à 5 €", "fr", "affaire-a-5-eu"),
        ("影師嗎", "en", "ying-shi-ma"),
        ("ABC™ x≠y 😀", "en", "abc-x-y"),
        ("__a_b__ c--d 'x' “q” – e", "en", "a_b__-c-d-x-q-e"),
        ("", "en", ""),
        ("!?", "en", ""),
    ],
)
def test_a_text_has_its_slug(text, lang, slug):
    assert run(f"root = this.t.slug({lang!r})".replace("'", '"'), f'{{"t":"{text}"}}') == slug


def test_a_number_has_no_slug():
    found = run("root = this.t.slug()", '{"t":5}')
    assert found == 'Error("failed assignment (line 1): expected string value, got number (5)")'
