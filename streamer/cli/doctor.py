"""`streamer doctor`: what is wrong with this installation, and what to do about it."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from streamer.cli.completion.values import complete_config
from streamer.cli.options import Options, merge_options, open_config, parse_options, stream_options
from streamer.core.errors import ConfigError, StreamerError
from streamer.core.redaction import Redaction

if TYPE_CHECKING:
    from streamer.config import Config
    from streamer.tools.doctor.diagnosis import Diagnosis

_HELP: Final = """\
Check this machine and installation for what streams need, and say what to do about the rest.

Checked are Java, memory, cores, the disk, the HTTP server's port, the clock, time zones, versions
of packages, and the extras; with --checkpoint that directory; with a config what it needs:
variables, packages, files, servers, its checkpoint.
Nothing is started or changed. Exits with 1 for any error; warnings are none.

\b
  streamer doctor
  streamer doctor -c config.yaml
  streamer doctor --checkpoint /var/lib/streamer/orders --json
"""

_DEFAULT_ADDRESS: Final = "127.0.0.1:4195"
_COLOURS: Final = {"ok": "green", "warning": "yellow", "error": "red", "none": "bright_black"}
_WORDS: Final = {"ok": "ok", "warning": "WARNING", "error": "ERROR", "none": "-"}
_WORD_WIDTH: Final = 7
_NAME_WIDTH: Final = 16


@click.command("doctor", help=_HELP)
@click.argument("file", required=False, shell_complete=complete_config)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each check, a line.")
@stream_options
@click.pass_obj
def doctor_cli(root: Options, /, file: str | None, as_json: bool, **given: Any) -> int:
    """Check this machine and installation."""
    options = merge_options(root, parse_options(**given), file, "doctor")
    count: Counter[str] = Counter()
    with ExitStack() as closing:
        config, findings = _read_config(options, closing)
        redact = Redaction(config.secrets if config is not None else {}).redact_text
        for one in _run_checks(config, options):
            findings.append(one)
        for one in findings:
            count[one.severity] += 1
            _print_diagnosis(one, redact, as_json)
    if not as_json:
        click.echo(f"\n{_summarize(count)}")
    return int(count["error"] > 0)


def _read_config(options: Options, closing: ExitStack) -> tuple[Config | None, list[Diagnosis]]:
    """Return the config, None where there is none or it cannot be read, and what is wrong."""
    from streamer.tools.doctor.config import to_diagnoses
    from streamer.tools.doctor.diagnosis import Diagnosis, Severity

    if options.config is None:
        return None, []
    try:
        config = closing.enter_context(open_config(options, lambda _: None))
    except ConfigError as e:
        return None, list(to_diagnoses(e.lints))
    except StreamerError as e:
        return None, [Diagnosis("config", Severity.ERROR, str(e), "check the path")]
    return config, [
        Diagnosis("config", Severity.OK, str(config.path)),
        *to_diagnoses(config.lints, Severity.WARNING),
    ]


def _run_checks(config: Config | None, options: Options) -> Iterator[Diagnosis]:
    from streamer.plan import make_plan
    from streamer.tools.doctor import checkpoint, machine, packages
    from streamer.tools.doctor.config import check_reachability
    from streamer.tools.doctor.diagnosis import Diagnosis, Severity, diagnose

    directory, plan = options.checkpoint, None
    address, is_named = _DEFAULT_ADDRESS, False
    if config is not None:
        from streamer.cli.run_stream import choose_checkpoint

        try:
            plan = make_plan(config, "OFF")
        except StreamerError as e:
            yield Diagnosis("config", Severity.ERROR, str(e))
        directory = choose_checkpoint(config, options)
        address, is_named = config.http["address"], config.http.is_given("address")
    yield from diagnose("streamer", packages.check_versions)
    yield from diagnose("java", partial(machine.check_java, os.environ))
    yield from diagnose("memory", machine.check_memory)
    yield from diagnose("cores", machine.check_cores)
    yield from diagnose("disk", partial(machine.check_disk, _find_local_directory(directory)))
    if config is None or config.http["enabled"]:
        yield from diagnose("port", partial(machine.check_port, address, is_named))
    yield from diagnose("clock", machine.check_clock)
    yield from diagnose("time zones", machine.check_time_zones)
    if directory is not None:
        fingerprint = plan.fingerprint if plan is not None else None
        yield from diagnose(
            "checkpoint", partial(checkpoint.check_checkpoint, directory, fingerprint)
        )
    if plan is not None:
        yield from diagnose("config", partial(check_reachability, plan))
    yield from diagnose("extras", packages.check_extras)
    yield from diagnose("plugins", packages.check_plugins)


def _find_local_directory(checkpoint: str | None) -> Path:
    """Return where a checkpoint, or what a machine keeps of it, is; without one where all are."""
    from streamer.plan.checkpoint_dir import default_checkpoint, is_remote, local_directory

    if checkpoint is None:
        return Path(default_checkpoint("", os.environ))
    if is_remote(checkpoint):
        return local_directory(checkpoint, os.environ)
    return Path(checkpoint.removeprefix("file://"))


def _print_diagnosis(one: Diagnosis, redact: Any, as_json: bool) -> None:
    detail, remedy = redact(one.detail), redact(one.remedy)
    if as_json:
        row = {"name": redact(one.name), "status": str(one.severity), "detail": detail}
        click.echo(json.dumps({**row, "remedy": remedy}, ensure_ascii=False))
        return
    word = click.style(f"{_WORDS[one.severity]:{_WORD_WIDTH}}", fg=_COLOURS[one.severity])
    click.echo(f"{word}  {redact(one.name):{_NAME_WIDTH}}  {detail}")
    if remedy:
        indent = " " * (_WORD_WIDTH + _NAME_WIDTH + 4)
        click.echo(f"{indent}{click.style('→ ' + remedy, fg='cyan')}")


def _summarize(count: Counter[str]) -> str:
    parts = [
        f"{count[name]} {name}{'s' * (count[name] != 1)}"
        for name in ("error", "warning")
        if count[name]
    ]
    return ", ".join(parts) or "nothing is wrong"
