"""`streamer diff old.yaml new.yaml`: the effect that a deploy of a changed config would have."""

from __future__ import annotations

import json
from typing import Final

import click

from streamer.bloblang import forbid_impure
from streamer.cli.completion.values import FILE
from streamer.cli.environment import variable_options
from streamer.cli.error_output import print_lint, redact_errors
from streamer.cli.options import (
    Options,
    chilled_option,
    impure_option,
    resources_option,
    templates_option,
)
from streamer.cli.paths import expand_paths
from streamer.cli.shared_options import help_all_option
from streamer.config import Config, load_config
from streamer.plan.change_impact import Change, ChangeImpact, Effect, judge
from streamer.plan.used_plugins import list_used_plugins

EXIT_CODE_RESET: Final = 2
"""The exit code for a change that open windows or offsets do not survive."""

_HELP: Final = """\
Say what changes from one config to another, and what a running stream keeps of its windows.

Each change is made in place (open windows and offsets are kept, the next micro-batch runs the new
config), by migration (the same, and open windows go on by the new setting), by a reset (the
windows begin anew), or with the next start of the program. Comments, the order of keys and
resources that nothing uses change nothing.

Exits with 0 when nothing is lost, with 2 when there is a reset, with 1 when a config is wrong.

\b
  streamer diff running.yaml changed.yaml
  git show HEAD:config.yaml > /tmp/old.yaml && streamer diff --json /tmp/old.yaml config.yaml
"""

EFFECT_COLOURS: Final = {
    Effect.RESTART: "cyan",
    Effect.IN_PLACE: "green",
    Effect.MIGRATE: "yellow",
    Effect.RESET: "red",
}
_VERDICTS: Final = {
    None: "nothing changes",
    Effect.RESTART: "the running stream goes on as it is until the program is started anew",
    Effect.IN_PLACE: "open windows and offsets are kept",
    Effect.MIGRATE: "open windows and offsets are kept, and continue with the new settings",
}


@click.command("diff", help=_HELP)
@click.argument("old", metavar="OLD", type=FILE)
@click.argument("new", metavar="NEW", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@resources_option
@templates_option
@variable_options
@impure_option
@chilled_option
@help_all_option
@click.pass_obj
def diff_cli(
    root: Options,
    old: str,
    new: str,
    as_json: bool,
    resources: tuple[str, ...],
    impure: bool | None,
    chilled: bool | None,
) -> int:
    """Judge a change."""
    more = tuple(dict.fromkeys([*root.resources, *expand_paths(resources)]))
    tolerant = bool(chilled or root.chilled)
    with forbid_impure(impure is False or root.impure is False):
        left, right = (_load_and_print_lints(name, more, tolerant) for name in (old, new))
        with redact_errors({**left.secrets, **right.secrets}):
            judgement = judge(left, right)
    plugins = {**dict(list_used_plugins(left)), **dict(list_used_plugins(right))}
    if as_json:
        document = {**judgement.as_dict(), "plugins": plugins}
        click.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        lines = [f"plugin {name}: {package}" for name, package in sorted(plugins.items())]
        click.echo("\n".join([*lines, *format_judgement(judgement)]))
    return EXIT_CODE_RESET if judgement.resets else 0


def _load_and_print_lints(name: str, resources: tuple[str, ...], chilled: bool) -> Config:
    config = load_config(name, resources=resources, chilled=chilled)
    for lint in config.lints:
        print_lint(lint)
    return config


def format_judgement(judgement: ChangeImpact) -> list[str]:
    """Return a judgement as lines of text, in colour; the last gives its effect."""
    lines = [line for change in judgement.changes for line in _format_change(change)]
    effect = judgement.effect
    if effect == Effect.RESET:
        verdict = click.style("reset", fg=EFFECT_COLOURS[effect])
        lines.append(f"{verdict}: this is lost unless it is drained before:")
        lines += [f"  {what}" for what in judgement.losses]
        lines.append(
            f"  deploy with {click.style('--on-reset drain', fg='cyan')} to emit open windows "
            f"first, or {click.style('--on-reset discard', fg='cyan')} to drop them"
        )
        return lines
    name = click.style(str(effect), fg=EFFECT_COLOURS[effect]) + ": " if effect else ""
    return [*lines, f"{name}{_VERDICTS[effect]}"]


def _format_change(change: Change) -> list[str]:
    at = f"{change.file}({change.line})" if change.line else change.file
    label = f" [{change.label}]" if change.label else ""
    effect = click.style(str(change.effect), fg=EFFECT_COLOURS[change.effect])
    note = click.style(f"; {change.note}", dim=True) if change.note else ""
    head = f"{click.style(at, bold=True)} {change.path}{label}: "
    values = [value for value in (change.old, change.new) if value is not None]
    if any("\n" in value.strip() or len(value) > 60 for value in values):
        return [f"{head}{effect}{note}", *_format_diff(change)]
    return [f"{head}{_format_inline(change)}, {effect}{note}"]


def _format_inline(change: Change) -> str:
    match change.old, change.new:
        case None, str(new):
            return f"{new.strip()} is new"
        case str(old), None:
            return f"{old.strip()} is gone"
        case old, new:
            return f"{(old or '').strip()} → {(new or '').strip()}"


def _format_diff(change: Change) -> list[str]:
    """Return the lines that were taken out and put in, with those around them."""
    from difflib import unified_diff

    before, after = (value.splitlines() if value else [] for value in (change.old, change.new))
    rows = [
        row
        for row in list(unified_diff(before, after, lineterm="", n=1))[2:]
        if not row.startswith("@@")
    ]
    colours = {"-": "red", "+": "green"}
    return [click.style(f"    {row}", fg=colours.get(row[:1])) for row in rows]
