"""Components of other packages: they are like ours, and bad ones are named and left out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from streamer.cli.completion.values import complete_created
from streamer.cli.main import cli
from streamer.components import catalog, plugins
from streamer.components.component_names import COMPONENTS
from streamer.config import load_config, parse_config
from streamer.core.errors import ConfigError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.plan import make_plan
from streamer.plan.used_plugins import describe_plugin_changes
from streamer.sdk.spec import Kind
from tests.plugin_site import SHOUT, installed, write_package

USES_SHOUT = 'pipeline: {processors: [{shout: {mark: "?"}}]}'


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "site"
    write_package(
        place, "streamer-shout", {"shout_plugin": SHOUT}, {"processor.shout": "shout_plugin"}
    )
    with installed(place):
        yield place


def add(site: Path, name: str, text: str, point: str = "processor.extra") -> None:
    """Add a package with one plugin to a directory that is in use."""
    module = name.replace("-", "_") + "_module"
    write_package(site, name, {module: text}, {point: module})
    plugins.forget_plugins()


def test_a_plugin_has_the_place_of_a_component_of_ours(site: Path) -> None:
    assert "shout" in catalog.component_names(Kind.PROCESSOR)
    assert "shout" not in catalog.component_names(Kind.INPUT)
    spec = catalog.find_spec(Kind.PROCESSOR, "shout")
    assert spec is not None and spec.distribution == "streamer-shout 1.0.0"
    config = parse_config(USES_SHOUT)
    plan = make_plan(config)
    assert plan.plugins == (("processor shout", "streamer-shout 1.0.0"),)
    [processor] = plan.context().build_all(plan.processors)
    [batch] = processor.process([Message(b"hi")], Execution(lambda: 0))
    assert [one.raw for one in batch] == [b"HI?"]


def test_a_plugin_is_linted_by_its_spec(site: Path) -> None:
    with pytest.raises(ConfigError, match="field makr not recognised.*did you mean mark"):
        parse_config("pipeline: {processors: [{shout: {makr: x}}]}")


def test_nothing_of_a_plugin_is_imported_before_a_config_names_it(site: Path) -> None:
    assert "shout" in catalog.component_names(Kind.PROCESSOR)
    parse_config("pipeline: {processors: [{mapping: root = this}]}")
    assert "shout_plugin" not in sys.modules
    parse_config(USES_SHOUT)
    assert "shout_plugin" in sys.modules


BAD = {
    "it cannot be imported: ModuleNotFoundError: No module named 'nowhere'": "import nowhere",
    "it cannot be imported: ValueError: no luck today": 'raise ValueError("no luck\\n today")',
    "it cannot be imported: SystemExit: 3": "import sys; sys.exit(3)",
    "it cannot be imported: SyntaxError": "def",
    "it declares no API_VERSION": "SPEC = None",
    "built for version 2.0 of streamer.sdk; expected 1.1, or an earlier 1.x": 'API_VERSION = "2.0"',
    "built for version 1.9 of": 'API_VERSION = "1.9"',
    "its API_VERSION is 1.0; expected a text": "API_VERSION = 1.0",
    "its SPEC is NoneType; expected a Spec": 'API_VERSION = "1.0"',
    "its spec is that of processor 'shout'; expected processor 'extra'": SHOUT,
    "no function build": SHOUT.replace('"shout"', '"extra"').replace("def build", "def make"),
    "the default of the field 'mark' is 5; expected str": SHOUT.replace(
        '"shout"', '"extra"'
    ).replace('default="!"', "default=5"),
    "the field 'Mark!' is named so; expected a name such as": SHOUT.replace(
        '"shout"', '"extra"'
    ).replace('"mark"', '"Mark!"'),
    "its spec has no summary": SHOUT.replace('"shout"', '"extra"').replace("Makes text loud.", ""),
    "its spec cannot be read: TypeError": SHOUT.replace('"shout"', '"extra"').replace(
        "access=Access.NONE),)", "examples=(object(),)),)"
    ),
}


@pytest.mark.parametrize("reason", BAD)
def test_a_bad_plugin_is_named_and_left_out(
    site: Path, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    add(site, "streamer-extra", BAD[reason])
    with pytest.raises(ConfigError) as raised:
        parse_config("pipeline: {processors: [{extra: {}}]}")
    [lint] = raised.value.lints
    text = f"processor 'extra' of the package streamer-extra 1.0.0 is left out: {reason}"
    start, _, rest = text.partition(": ")
    assert lint.code == "unavailable_component"
    assert lint.message.startswith(start) and rest in lint.message
    printed = capsys.readouterr().err
    assert printed.count("is left out") == 1 and rest in printed and "\n " not in printed
    # The others are there all the same, and it is gone from lists.
    assert {spec.name for spec in catalog.kind_specs(Kind.PROCESSOR)} == {
        *COMPONENTS[Kind.PROCESSOR],
        "shout",
    }
    assert "extra" not in catalog.component_names(Kind.PROCESSOR)
    assert len(plugins.list_plugin_problems()) == 1


def test_names_of_ours_stay_ours(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(site, "evil", SHOUT.replace('"shout"', '"mapping"'), "processor.mapping")
    spec = catalog.find_spec(Kind.PROCESSOR, "mapping")
    assert spec is not None and not spec.distribution
    assert catalog.component_names(Kind.PROCESSOR).count("mapping") == 1
    assert "streamer has a component of that name itself" in capsys.readouterr().err
    assert "evil_module" not in sys.modules
    parse_config("pipeline: {processors: [{mapping: root = this}]}")


def test_of_two_with_one_name_none_is_taken(site: Path) -> None:
    add(site, "another", SHOUT, "processor.shout")
    with pytest.raises(ConfigError, match="another 1.0.0 and streamer-shout 1.0.0 both provide"):
        parse_config(USES_SHOUT)


@pytest.mark.parametrize("point", ["shout", "window.shout", "processor.Shout", "processor."])
def test_an_entry_point_needs_the_kind_and_the_name(
    site: Path, point: str, capsys: pytest.CaptureFixture[str]
) -> None:
    add(site, "odd", SHOUT, point)
    plugins.warn_of_name_problems()
    plugins.warn_of_name_problems()
    assert capsys.readouterr().err.count(f"{point!r} of the package odd 1.0.0 is left out") == 1
    parse_config(USES_SHOUT)


RAISING = (
    SHOUT.replace('"shout"', '"extra"')
    .replace("access=Access.NONE),)", "access=Access.NONE, check=lambda value: 1 / len(value)),)")
    .replace(
        "    access=Access.NONE,\n)", '    access=Access.NONE,\n    check=lambda p: p["x"],\n)'
    )
)


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        ('""', "the check of processor extra of the package streamer-extra 1.0.0 raised ZeroDiv"),
        ("{}", "expected string value"),
    ],
)
def test_code_in_a_spec_that_raises_is_a_finding(site: Path, mark: str, text: str) -> None:
    add(site, "streamer-extra", RAISING)
    with pytest.raises(ConfigError, match=text):
        parse_config(f"pipeline: {{processors: [{{extra: {{mark: {mark}}}}}]}}")


def test_a_check_of_the_whole_that_raises_is_a_finding(site: Path) -> None:
    add(site, "streamer-extra", RAISING.replace("1 / len(value)", "None"))
    with pytest.raises(ConfigError, match="raised KeyError: 'x'"):
        parse_config("pipeline: {processors: [{extra: {mark: a}}]}")


def test_a_plugin_that_cannot_be_built_is_named(site: Path) -> None:
    add(
        site,
        "streamer-extra",
        SHOUT.replace('"shout"', '"extra"').replace("return Shout", 'raise OSError("no"); Shout'),
    )
    plan = make_plan(parse_config("pipeline: {processors: [{extra: {}}]}"))
    with pytest.raises(StreamerError, match="processor extra cannot be built: OSError: no"):
        plan.context().build_all(plan.processors)


def test_a_worker_without_the_package_is_told_so(tmp_path: Path, site: Path) -> None:
    plan = make_plan(parse_config(USES_SHOUT))
    (site / "streamer_shout-1.0.0.dist-info" / "entry_points.txt").unlink()
    plugins.forget_plugins()
    with pytest.raises(StreamerError, match="no processor 'shout' here: the package"):
        plan.context().build_all(plan.processors)


def test_a_removed_package_leaves_nothing_behind(site: Path) -> None:
    parse_config(USES_SHOUT)
    (site / "streamer_shout-1.0.0.dist-info" / "entry_points.txt").unlink()
    plugins.forget_plugins()
    with pytest.raises(ConfigError, match="processor 'shout' is not known"):
        parse_config(USES_SHOUT)


def test_a_package_of_an_archive_is_there_too(tmp_path: Path) -> None:
    import zipfile

    source = tmp_path / "source"
    write_package(source, "zipped", {"zipped_plugin": SHOUT}, {"processor.shout": "zipped_plugin"})
    archive = tmp_path / "packages.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in source.rglob("*"):
            file.write(path, path.relative_to(source).as_posix())
    with installed(archive):
        assert parse_config(USES_SHOUT)


def test_another_version_than_in_the_run_before_is_told() -> None:
    before = {"processor shout": "a 1.0", "input x": "b 1", "cache y": "c 1"}
    now = {"processor shout": "a 1.1", "input x": "b 1", "output z": "d 2"}
    assert describe_plugin_changes(before, now) == [
        "processor shout comes from a 1.1, and came from a 1.0"
    ]


def test_every_command_shows_it(site: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(USES_SHOUT)
    assert load_config(str(config))

    def run(*words: str) -> str:
        done = CliRunner().invoke(cli, words, standalone_mode=False)
        assert done.return_value == 0, done.output
        return done.output

    assert "- shout" in run("list", "processors")
    assert "(streamer-shout 1.0.0) Makes text loud" in run("list", "processors")
    assert "It comes from the package streamer-shout 1.0.0." in run("docs", "processors", "shout")
    schema = json.loads(run("list", "--format", "jsonschema"))
    assert "from the package streamer-shout 1.0.0" in str(
        schema["definitions"]["processor"]["properties"]["shout"]
    )
    context = click.Context(click.Command("create"))
    [item] = complete_created(context, click.Argument(["expression"]), "stdin/sho")
    assert (item.value, item.help) == ("stdin/shout", "from streamer-shout 1.0.0")
    assert "shout:\n" in run("create", "stdin/shout/stdout")
    assert "shout (from streamer-shout 1.0.0)" in run("explain", "-c", str(config))
