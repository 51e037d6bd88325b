"""The page on the console shows the pictures that the script takes, all of them, in both themes."""

from __future__ import annotations

from tests.service.console.pictures import AUTHORED, DOCS, SHOWN, named_on_the_page

PNG = b"\x89PNG\r\n\x1a\n"
LARGEST = 400_000


def test_each_picture_of_the_script_is_there_and_on_the_page() -> None:
    pictures = {one.name: one.theme for one in (*AUTHORED, *SHOWN)}
    assert sorted(named_on_the_page()) == sorted(pictures)
    assert set(pictures.values()) == {"light", "dark"}
    for name in pictures:
        content = (DOCS / "pictures" / name).read_bytes()
        assert content.startswith(PNG) and len(content) < LARGEST, name


def test_no_picture_is_left_that_nothing_shows() -> None:
    there = {path.name for path in (DOCS / "pictures").glob("console-*.png")}
    assert there == {one.name for one in (*AUTHORED, *SHOWN)}
