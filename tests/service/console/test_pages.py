"""What of the console is served, and how."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamer.service.console.pages import CONTENT_SECURITY_POLICY, ConsolePages
from tests.service.api.asking import asking

PAGES = ConsolePages()
TOKEN = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="
TEXTS = {name: text for name, text in PAGES.files.items() if not name.startswith("pictures/")}
_NAMED = re.compile(r"""(?:src|href)="\{assets\}/([^"]+)"|from "(\.[^"]+)"|import\("(\.[^"]+)"\)""")


@pytest.mark.parametrize("prefix", ["", "/behind/it"])
def test_the_page_and_its_files_are_served(tmp_path: Path, prefix: str) -> None:
    with asking(tmp_path, f"root_path: '{prefix}'") as server:
        page = server.ask("GET", f"{prefix}/")
        assert page.status_code == 200
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["cache-control"] == "no-cache"
        found = re.findall(r'(?:src|href)="(console/[^"]+)"', page.text)
        assert {path.rpartition(".")[2] for path in found} == {"svg", "css", "js"}
        for path in found:
            asset = server.ask("GET", f"{prefix}/{path}")
            assert asset.status_code == 200
            assert asset.headers["cache-control"].endswith("immutable")
            assert asset.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
            same = server.ask("GET", f"{prefix}/{path}", If_None_Match=asset.headers["etag"])
            assert (same.status_code, same.content) == (304, b"")
        if prefix:
            moved = server.ask("GET", prefix)
            assert (moved.status_code, moved.headers["location"]) == (308, "it/")


def test_the_page_takes_no_changes(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        assert server.ask("POST", "/", "x").status_code == 405


def test_without_the_api_there_is_no_console(tmp_path: Path) -> None:
    with asking(tmp_path, enabled=False) as server:
        assert "<script" not in server.ask("GET", "/").text
        script = next(name for name in PAGES.files if name.endswith("app.js"))
        assert server.ask("GET", f"/console/{PAGES.version}/{script}").status_code == 404


def test_the_page_is_seen_before_one_signs_in_and_data_are_not(tmp_path: Path) -> None:
    tokens = f"[ {{ name: ci, token_hash: '{TOKEN}' }} ]"
    http = f"bearer_auth: {{ enabled: true, tokens: {tokens} }}"
    with asking(tmp_path, http) as server:
        page = server.ask("GET", "/")
        assert page.status_code == 200
        [script] = re.findall(r'src="(console/[^"]+app.js)"', page.text)
        assert server.ask("GET", f"/{script}").status_code == 200
        for path in ("/streams", "/console/other", "/openapi.json", f"/{script}x"):
            assert server.ask("GET", path).status_code == 401
        assert server.ask("GET", "/streams", Authorization="Bearer abc").status_code == 200


def test_a_browser_does_not_ask_for_a_password_before_the_page_can(tmp_path: Path) -> None:
    hashed = "900150983cd24fb0d6963f7d28e17f72"
    import base64

    text = base64.b64encode(bytes.fromhex(hashed)).decode()
    http = (
        f"basic_auth: {{ enabled: true, username: ada, password_hash: '{text}', algorithm: md5 }}"
    )
    with asking(tmp_path, http) as server:
        assert server.ask("GET", "/streams").headers["www-authenticate"].startswith("Basic ")
        by_page = server.ask("GET", "/streams", X_Requested_With="XMLHttpRequest")
        assert by_page.status_code == 401
        challenge = by_page.headers["www-authenticate"]
        assert challenge.startswith("xBasic ") and not challenge.endswith("Bearer")
    tokens = f"bearer_auth: {{ enabled: true, tokens: [ {{ name: ci, token_hash: '{TOKEN}' }} ] }}"
    with asking(tmp_path / "both", f"{http}, {tokens}") as server:
        # The page asks for what there is, and so it has to know both.
        by_page = server.ask("GET", "/streams", X_Requested_With="XMLHttpRequest")
        assert by_page.headers["www-authenticate"].endswith('charset="UTF-8", Bearer')


def test_all_that_files_refer_to_is_there() -> None:
    for name, content in TEXTS.items():
        for groups in _NAMED.findall(content.decode()):
            given = next(filter(None, groups))
            there = Path(name).parent / given if given.startswith(".") else Path(given)
            parts: list[str] = []
            for part in there.parts:
                if part == "..":
                    parts.pop()
                else:
                    parts.append(part)
            assert "/".join(parts) in PAGES.files, f"{name} refers to {given}"
    views = re.findall(r'view: "([a-z]+)"', PAGES.files["routes.js"].decode())
    assert views
    for view in views:
        assert f"views/{view}.js" in PAGES.files


def test_no_file_makes_html_of_texts_or_asks_other_hosts() -> None:
    for name, content in TEXTS.items():
        text = content.decode()
        for bad in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert bad not in text, f"{name} has {bad}"
        if name != "icon.svg":
            assert "https://" not in text, name
            assert not re.search(r"http://(?!www\.w3\.org/2000/svg)", text), name
