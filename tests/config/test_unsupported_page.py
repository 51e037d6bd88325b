from __future__ import annotations

from streamer.config import unsupported_page
from streamer.config.known_names import list_unavailable
from streamer.sdk.spec import Kind


def test_page_is_up_to_date() -> None:
    text = unsupported_page.PAGE.read_text(encoding="utf-8")
    assert unsupported_page.update_page(text) == text


def test_all_missing_components_are_in_it() -> None:
    tables = unsupported_page.format_tables()
    assert all(f"`{name}`" in tables for kind in Kind for name in list_unavailable(kind))
