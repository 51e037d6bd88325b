"""`streamer pack`: the environment of a cluster's workers, as one archive."""

from __future__ import annotations

from pathlib import Path

import click

from streamer.cli.completion.values import FILE
from streamer.core.errors import StreamerError


@click.command("pack", short_help="Pack the environment that a cluster's workers need.")
@click.argument("archive", metavar="[FILE]", type=FILE, default="streamer-environment.tar.gz")
def pack_cli(archive: str) -> int:
    """Pack this program and the packages that it needs into FILE, for a cluster's workers.

    A config takes it by `spark.environment: FILE`, or from where workers can read it
    (`s3a://...`). Without that, every start makes such an archive by itself, keeps it, and sends
    it to the workers. They need the same version of Python on their PATH, and the same platform.
    """
    from streamer.spark.worker_archive import write_archive

    path = Path(archive)
    if not path.name.endswith((".tar.gz", ".tgz")):
        raise click.UsageError(f"{archive}: expected a name that ends in .tar.gz")
    try:
        packages = write_archive(path)
    except OSError as e:
        raise StreamerError(f"{path} cannot be written: {e.strerror or e}") from None
    size = path.stat().st_size / 1e6
    click.echo(f"{path}: {len(packages.versions)} packages, {size:.0f} MB")
    return 0
