"""The page of `streamer blobl server`, put together from its parts; it loads nothing else."""

from __future__ import annotations

import html
import json
import re
from functools import cache
from importlib import resources
from typing import Final

_PLACEHOLDER: Final = re.compile(r"\{\{(\w+)\}\}")


@cache
def _read_part(name: str) -> str:
    folder = resources.files("streamer.cli.blobl") / "page"
    return (folder / name).read_text(encoding="utf-8")


def render_page(mapping: str, text: str, note: str, nonce: str) -> str:
    """Return the page.

    Args:
        mapping: the mapping that it begins with.
        text: the input that it begins with.
        note: a sentence for its foot.
        nonce: what marks the scripts and styles that may run.
    """
    start = json.dumps({"mapping": mapping, "input": text})
    filling = {
        "css": _read_part("page.css"),
        "js": _read_part("page.js"),
        "note": html.escape(note),
        "nonce": nonce,
        # No text may end the script that holds it.
        "start": start.replace("<", "\\u003c").replace("&", "\\u0026"),
    }
    return _PLACEHOLDER.sub(lambda hole: filling[hole[1]], _read_part("page.html"))


def build_content_policy(nonce: str) -> str:
    """Return the content security policy: this page's own scripts, styles and server only."""
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
