"""Plugins in configs that come by API: refused unless they declare what they reach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamer.components import plugins
from streamer.config import parse_config
from streamer.core.permissions import NONE, NotPermittedError, limit_permissions
from streamer.plan import make_plan
from streamer.service.fleet.api_permissions import ApiPermissions
from tests.plugin_site import SHOUT, installed, write_package

TEXT = "pipeline: {processors: [{shout: {mark: /etc/passwd}}]}"
FIELD = '"mark", "string", "The end.", default="!", access=Access.NONE'


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "site").mkdir()
    with installed(tmp_path / "site"):
        yield tmp_path / "site"


def problems(site: Path, text: str, **allowed: bool) -> list[str]:
    write_package(
        site, "streamer-shout", {"shout_plugin": text}, {"processor.shout": "shout_plugin"}
    )
    plugins.forget_plugins()
    return [str(lint) for lint in ApiPermissions(**allowed).lint_config(parse_config(TEXT))]


def test_one_that_reaches_nothing_is_allowed(site: Path) -> None:
    assert problems(site, SHOUT) == []


@pytest.mark.parametrize(
    ("old", "new", "refusal", "allowed"),
    [
        (
            "    access=Access.NONE,\n)",
            ")",
            "processor shout of streamer-shout 1.0.0 declares no access, and it is off",
            {"local": True, "programs": True, "python": True},
        ),
        (FIELD, FIELD.replace(", access=Access.NONE", ""), "has no rule", {"local": True}),
        (FIELD, FIELD.replace("NONE", "FILE"), "names a file", {"local": True}),
        (FIELD, FIELD.replace("NONE", "PROGRAM"), "runs a program", {"programs": True}),
        (
            "    access=Access.NONE,\n)",
            "    access=Access.FILE,\n)",
            "reads files of the service's machine",
            {"local": True},
        ),
        (
            "    access=Access.NONE,\n)",
            "    access=Access.PROGRAM,\n)",
            "runs programs of the service's machine",
            {"programs": True},
        ),
        (
            "    access=Access.NONE,\n)",
            "    access=Access.PYTHON,\n)",
            "runs code of a config",
            {"python": True},
        ),
    ],
)
def test_what_it_declares_decides(
    site: Path, old: str, new: str, refusal: str, allowed: dict[str, bool]
) -> None:
    assert old in SHOUT
    [lint] = problems(site, SHOUT.replace(old, new))
    assert refusal in lint and "--allow-" in lint
    config = parse_config(TEXT)
    assert list(ApiPermissions(**allowed).lint_config(config)) == []


def test_it_is_refused_again_where_it_is_built(site: Path) -> None:
    assert len(problems(site, SHOUT.replace("    access=Access.NONE,\n)", ")"))) == 1
    with limit_permissions(NONE):
        plan = make_plan(parse_config(TEXT))
    with pytest.raises(NotPermittedError, match="declares no access"):
        plan.context().build_all(plan.processors)
